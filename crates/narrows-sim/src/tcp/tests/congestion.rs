//! Tests of ECN, of pacing, and of how much of the window is used.

use narrows_control::congestion::State;

use super::*;

#[test]
fn marks_reduce_the_window_once_per_round_trip_and_cause_no_retransmission() {
    let app = segments(3_000);
    let mut pair = Pair::new("reno", &app, |p, _| {
        if p.payload > 0 && (300..320).contains(&p.seq) { Fate::Mark } else { Fate::Pass }
    });
    pair.run_until(at(60_000)).assert_complete(3_000 * MSS);
    assert_eq!(pair.sender.counters.retransmits, 0);
    assert_eq!(pair.data().filter(|s| s.packet.is(flag::CWR)).count(), 1);
    let echoes = pair.acks().filter(|a| a.packet.is(flag::ECE)).count();
    assert!(echoes > 10, "the echo continues until the CWR: {echoes}");
    assert!(pair.sender.control.window.ssthresh < 300, "{}", pair.sender.control.window.ssthresh);
}

#[test]
fn marks_in_every_round_trip_reduce_the_window_in_every_round_trip() {
    let app = segments(2_000);
    let mut pair = Pair::new("reno", &app, |p, _| if p.payload > 0 { Fate::Mark } else { Fate::Pass });
    pair.run_until(at(1_000));
    let cwr: Vec<Time> = pair.data().filter(|s| s.packet.is(flag::CWR)).map(|s| s.at).collect();
    assert!(cwr.len() > 5);
    assert!(cwr.windows(2).all(|w| w[1].since(w[0]) >= ms(40)), "{cwr:?}");
    assert!(pair.sender.control.window.cwnd <= 3, "{}", pair.sender.control.window.cwnd);
}

#[test]
fn retransmissions_are_not_ecn_capable() {
    let app = segments(300);
    let mut pair = Pair::new("reno", &app, lose(&[100, 102]));
    pair.run_until(at(60_000)).assert_complete(300 * MSS);
    for seq in [100, 102] {
        let ect: Vec<bool> =
            pair.data().filter(|s| s.packet.seq == seq).map(|s| s.packet.is(flag::ECT)).collect();
        assert_eq!(ect, [true, false]);
    }
    assert_eq!(
        pair.data().filter(|s| s.packet.is(flag::CWR)).count(),
        1,
        "a loss sets CWR too (RFC 3168 section 6.1.2)"
    );
}

#[test]
fn a_limited_application_gets_its_rate_and_does_not_grow_the_window() {
    let app = limited(5);
    let mut pair = Pair::new("cubic", &app, |_, _| Fate::Pass);
    pair.run_until(at(20_000));
    let rate = pair.receiver.delivered as f64 * 8.0 / 20.0;
    assert!((rate / 5e6 - 1.0).abs() < 0.01, "{rate}");
    // With an RTT of 40 ms and delayed ACKs, a flow of 5 Mbit/s needs a window of fewer than 20 segments.
    assert!(pair.sender.control.window.cwnd <= 64, "{}", pair.sender.control.window.cwnd);
}

/// Linux `tcp_cong_avoid` records the time of each ACK. `tcp_cwnd_application_limited` reduces the window only if no
/// ACK has arrived for an RTO.
#[test]
fn the_window_of_a_limited_application_does_not_shrink_while_acks_arrive() {
    let app = limited(20);
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    let mut most = 0;
    for t in 1..=100 {
        pair.run_until(at(100 * t));
        let cwnd = pair.sender.control.window.cwnd;
        assert!(cwnd >= most, "{cwnd} after {most}");
        most = cwnd;
    }
    assert!(most > 67, "{most}: the application's 20 Mbit/s are 67 segments per RTT");
}

#[test]
fn slow_start_begins_again_after_an_idle_period() {
    let app = AppPlan::Limited {
        rate: Rate::from_bits_per_sec(100_000_000),
        on: Some(ms(500)),
        off: Some(ms(9_500)),
    };
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    pair.run_until(at(490));
    let grown = pair.sender.control.window.cwnd;
    assert!(grown > 100, "{grown}");
    pair.run_until(at(9_900));
    let start = pair.log.len();
    pair.run_until(at(10_035));
    let burst = pair.log[start..].iter().filter(|s| s.is_data()).count();
    assert!((1..=10).contains(&burst), "{burst} segments in the first round trip");
    assert!(
        pair.sender.control.window.ssthresh >= grown / 2,
        "the threshold is at least half of the old window"
    );
}

#[test]
fn pacing_spaces_the_packets_of_a_window() {
    for (pacing, most) in [(false, 20), (true, 2)] {
        let app = segments(1_000);
        let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
        pair.sender.config.pacing = pacing;
        pair.run_until(at(60_000)).assert_complete(1_000 * MSS);
        let times: Vec<Time> = pair.data().map(|s| s.at).collect();
        let burst = times.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap();
        assert!(burst <= most, "pacing {pacing}: {burst} at once");
        assert!(pacing || burst >= 10, "the initial window is sent at once: {burst}");
    }
}

#[test]
fn the_reordering_timer_does_not_send_a_burst() {
    // Reordering was observed, and then segment 240 is lost. RACK's timer finds this loss. Before the timer expires,
    // each transmission follows an ACK. When it expires, the sender may send the retransmission and at most one more
    // segment.
    let app = segments(2_000);
    let mut lost = lose(&[240]);
    let mut pair = Pair::new("reno", &app, |p, now| match lost(p, now) {
        Fate::Pass if p.payload > 0 && p.seq == 100 => Fate::Late(ms(5)),
        // Segments after 244 are delayed. No ACK therefore starts the loss detection.
        Fate::Pass if p.payload > 0 && p.seq > 244 && now < at(290) => Fate::Late(ms(200)),
        fate => fate,
    });
    pair.run_until(at(60_000)).assert_complete(2_000 * MSS);
    let repair = pair.times_of(240)[1];
    let together = pair.data().filter(|s| s.at == repair).count();
    assert!(together <= 2, "{together} segments with the retransmission");
    assert_ne!(pair.sender.recovery.state, State::Loss);
}

#[test]
fn dctcp_echoes_exactly_the_segments_that_were_marked() {
    // RFC 8257 section 3.2: no ACK covers both marked and unmarked segments, not even a delayed ACK.
    let app = segments(400);
    let marked = |seq: u32| (100..107).contains(&seq) || seq == 150;
    let mut pair =
        Pair::new("dctcp", &app, |p, _| if p.payload > 0 && marked(p.seq) { Fate::Mark } else { Fate::Pass });
    pair.run_until(at(60_000)).assert_complete(400 * MSS);
    let mut acknowledged = 0;
    for ack in pair.acks() {
        for seq in acknowledged..ack.packet.ack {
            assert_eq!(ack.packet.is(flag::ECE), marked(seq), "segment {seq}");
        }
        acknowledged = ack.packet.ack;
    }
    assert!(acknowledged > 300, "{acknowledged}");
}
