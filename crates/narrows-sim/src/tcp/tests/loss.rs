//! Tests of losses and their repair.

use narrows_control::congestion::State;

use super::*;

#[test]
fn a_lost_segment_is_repaired_one_round_trip_later_without_a_timeout() {
    let app = segments(100);
    let mut pair = Pair::new("reno", &app, lose(&[30]));
    pair.run_until(at(60_000)).assert_complete(100 * MSS);
    assert_eq!((pair.sender.counters.retransmits, pair.sender.counters.timeouts), (1, 0));
    let times = pair.times_of(30);
    // The SACK of the third segment after the lost one triggers the retransmission. This SACK arrives 0.3 ms after the
    // time at which the ACK of the lost segment would have arrived.
    let gap = times[1].since(times[0]);
    assert!(gap > ms(40) && gap < ms(42), "{gap:?}");
    assert_eq!(pair.sender.counters.spurious, 0);
}

#[test]
fn the_window_is_halved_once_for_all_losses_of_a_round_trip() {
    let app = segments(3_000);
    let mut before = 0;
    let mut pair = Pair::new("reno", &app, lose(&[300, 310, 330, 350]));
    while pair.sender.recovery.state != State::Recovery {
        before = pair.sender.control.window.cwnd;
        let next = pair.now + Span::from_micros(50);
        pair.run_until(next);
        assert!(pair.now < at(5_000));
    }
    while pair.sender.recovery.state == State::Recovery {
        let next = pair.now + Span::from_micros(50);
        pair.run_until(next);
    }
    let ssthresh = pair.sender.control.window.ssthresh;
    assert!(ssthresh.abs_diff(before / 2) <= 1, "{ssthresh} of {before}");
    assert!(pair.sender.control.window.cwnd.abs_diff(ssthresh) <= 1);
    assert_eq!(pair.sender.counters.retransmits, 4);
}

#[test]
fn proportional_rate_reduction_sends_smoothly() {
    let app = segments(1_000);
    let mut pair = Pair::new("reno", &app, lose(&[300]));
    pair.slot = ms(1);
    pair.run_until(at(60_000)).assert_complete(1_000 * MSS);
    let start = pair.times_of(300)[1];
    // During the round trip of the recovery, only about every second ACK permits a segment. The sender therefore sends
    // no burst.
    let recovery: Vec<Time> =
        pair.data().map(|s| s.at).filter(|&t| t >= start && t < start + ms(38)).collect();
    let burst = recovery.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap();
    assert!(burst <= 3, "{burst} segments at one time");
    let longest = recovery.windows(2).map(|w| w[1].since(w[0])).max().unwrap();
    assert!(longest < ms(10), "{longest:?} without a transmission");
}

#[test]
fn a_probe_finds_a_tail_loss_without_a_timeout() {
    for lost in [vec![39], vec![38, 39], vec![36, 37, 38, 39]] {
        let app = segments(40);
        let mut pair = Pair::new("reno", &app, lose(&lost));
        pair.run_until(at(60_000)).assert_complete(40 * MSS);
        assert_eq!(pair.sender.counters.timeouts, 0, "{lost:?}");
        // The probe is sent two RTTs after the loss. The ACK of the probe takes one RTT, and the repair of the other
        // losses takes another RTT. If the only segment in flight is lost, the probe is sent later, at the RTO of 240
        // ms. The reason is that the receiver may delay the ACK of a single segment.
        let done = pair.sender.completed_at().unwrap().since(pair.times_of(39)[0]);
        let wait = if lost.len() == 1 { 330 } else { 2 * 40 };
        assert!(done < ms(wait + 5 * 40), "{lost:?}: {done:?}");
    }
}

/// A segment takes 187 ms on the link, so the RTT grows faster than the timeout. A virtual machine with Linux 6.1
/// behaves in the same way: its first timeout is spurious, and it undoes this timeout at the next ACK.
#[test]
fn while_a_probe_is_outstanding_the_timeout_begins_at_the_first_segment() {
    let app = segments(100);
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    pair.slot = Span::from_micros(187_500);
    pair.run_until(at(10_000));
    let sent = pair.times_of(1);
    assert_eq!((sent.len(), pair.sender.counters.timeouts), (2, 1));
    // The ACK of segment 0 has set the timeout to about 330 ms.
    let wait = sent[1].since(sent[0]);
    assert!(wait > ms(280) && wait < ms(360), "{wait:?}");
    // The ACK of segment 1 echoes the time of its first transmission. It does not show that later segments are lost.
    assert_eq!((pair.sender.counters.retransmits, pair.sender.recovery.state), (1, State::Open));
}

#[test]
fn a_tail_loss_that_a_probe_repairs_reduces_the_window() {
    // The application sends bursts of about 40 segments. The last segment of the first burst is lost. As in Linux, the
    // window is reduced when data that was sent after the probe is acknowledged.
    let app = AppPlan::Limited {
        rate: Rate::from_bits_per_sec(10_000_000),
        on: Some(ms(50)),
        off: Some(ms(1_000)),
    };
    let mut clean = Pair::new("reno", &app, |_, _| Fate::Pass);
    let last = clean.run_until(at(1_000)).data().last().unwrap().packet.seq;
    let mut pair = Pair::new("reno", &app, lose(&[last]));
    pair.run_until(at(1_000));
    assert_eq!((pair.sender.counters.retransmits, pair.sender.counters.timeouts), (1, 0));
    pair.run_until(at(1_300));
    assert!(pair.sender.control.window.ssthresh < 100, "{}", pair.sender.control.window.ssthresh);
}

#[test]
fn a_spurious_probe_does_not_reduce_the_window() {
    // The last ACK is lost. The receiver therefore answers the probe with a DSACK.
    let app = segments(40);
    let mut pair = Pair::new("reno", &app, first(Fate::Drop, |p| p.is(flag::REVERSE) && p.ack == 40));
    pair.run_until(at(60_000)).assert_complete(40 * MSS);
    assert!(pair.sender.control.window.ssthresh > 1_000_000);
    assert_eq!(pair.sender.counters.timeouts, 0);
}

#[test]
fn a_lost_retransmission_is_detected_without_a_timeout() {
    let app = segments(400);
    let mut pair = Pair::new("reno", &app, lose_times([(100, 2)].into()));
    pair.run_until(at(60_000)).assert_complete(400 * MSS);
    assert_eq!((pair.sender.counters.retransmits, pair.sender.counters.timeouts), (2, 0));
    let t = pair.times_of(100);
    assert!(t[2].since(t[1]) < ms(60), "{:?}", t[2].since(t[1]));
}

#[test]
fn an_outage_causes_timeouts_with_backoff_and_the_flow_recovers() {
    let app = segments(4_000);
    let (from, to) = (at(300), at(3_300));
    let mut pair =
        Pair::new("cubic", &app, move |_, now| if now >= from && now < to { Fate::Drop } else { Fate::Pass });
    pair.run_until(at(60_000)).assert_complete(4_000 * MSS);
    let c = &pair.sender.counters;
    assert!((3..=5).contains(&c.timeouts), "{}", c.timeouts);
    let lost: Vec<Time> =
        pair.data().filter(|s| s.fate == Fate::Drop && s.at > at(450)).map(|s| s.at).collect();
    let gaps: Vec<u64> =
        lost.windows(2).map(|w| w[1].since(w[0]).as_nanos() / 1_000_000).filter(|&g| g > 100).collect();
    assert!(gaps.windows(2).all(|g| g[1].abs_diff(2 * g[0]) <= 1), "doubling: {gaps:?}");
    // Each segment that the outage has lost is retransmitted about once.
    assert!(c.retransmits < 800, "{}", c.retransmits);
}

#[test]
fn a_timeout_in_recovery_does_not_reduce_the_threshold_again() {
    // Segment 300 is lost, and SACKs of later segments start the recovery. Afterwards, all segments are lost for some
    // time.
    let app = segments(2_000);
    let gone = std::cell::Cell::new(false);
    let mut pair = Pair::new("reno", &app, |p, now| {
        if p.seq == 300 && !p.is(flag::REVERSE) {
            gone.set(true);
        }
        let later = now > at(230);
        if gone.get() && (p.seq == 300 || later && !p.is(flag::REVERSE)) && now < at(900) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    while pair.sender.recovery.state != State::Recovery {
        let next = pair.now + Span::from_micros(100);
        pair.run_until(next);
        assert!(pair.now < at(2_000), "the flow did not recover");
    }
    let ssthresh = pair.sender.control.window.ssthresh;
    while pair.sender.recovery.state != State::Loss {
        let next = pair.now + ms(1);
        pair.run_until(next);
        assert!(pair.now < at(5_000), "the timeout did not expire");
    }
    assert_eq!(pair.sender.control.window.ssthresh, ssthresh);
    pair.run_until(at(60_000)).assert_complete(2_000 * MSS);
}

#[test]
fn all_data_arrives_if_every_third_packet_is_lost() {
    // Packets of both directions are dropped, from the handshake to the close.
    for cc in ["reno", "cubic", "bbr"] {
        let app = segments(60);
        let mut n = 0;
        let mut pair = Pair::new(cc, &app, |_, _| {
            n += 1;
            if n % 3 == 2 { Fate::Drop } else { Fate::Pass }
        });
        pair.run_until(at(600_000)).assert_complete(60 * MSS);
    }
}
