//! Tests of packets that arrive late, arrive twice, or arrive after the sender has marked them lost.

use std::sync::{Arc, Mutex};

use narrows_control::congestion::{Ack, Congestion, Controller, Signal, State, Window};

use super::*;

#[test]
fn reordering_by_less_than_three_segments_causes_no_retransmission() {
    let app = segments(400);
    let mut pair = Pair::new("reno", &app, |p, _| {
        let late = p.payload > 0 && p.seq % 20 == 10;
        if late { Fate::Late(Span::from_micros(210)) } else { Fate::Pass }
    });
    pair.run_until(at(60_000)).assert_complete(400 * MSS);
    assert_eq!(pair.sender.counters.retransmits, 0);
}

#[test]
fn a_spurious_recovery_is_undone_and_the_window_is_restored() {
    // Segment 100 arrives 5 ms late, after 50 later segments. The sender has already retransmitted it. But the ACK of
    // segment 100 echoes the timestamp of the original transmission.
    let app = segments(1_000);
    let mut pair = Pair::new("reno", &app, first(Fate::Late(ms(5)), |p| p.payload > 0 && p.seq == 100));
    let mut highest = 0;
    while !pair.is_closed() {
        highest = highest.max(pair.sender.control.window.cwnd);
        let next = pair.now + ms(1);
        pair.run_until(next);
        assert!(pair.now < at(60_000));
    }
    assert_eq!(pair.sender.counters.retransmits, 1);
    assert_eq!(pair.sender.counters.spurious, 1);
    assert!(pair.sender.control.window.cwnd >= highest, "{} of {highest}", pair.sender.control.window.cwnd);
    assert!(
        pair.sender.control.window.ssthresh > 1_000_000,
        "slow start continues: {}",
        pair.sender.control.window.ssthresh
    );
    assert!(pair.sender.flight.rack.reordering_seen);
}

#[test]
fn after_reordering_the_sender_waits_for_a_quarter_of_the_rtt() {
    // Several segments are delayed by 5 ms. The reordering window is min_rtt/4 = 10 ms, which is longer.
    let app = segments(4_000);
    let mut pair = Pair::new("reno", &app, |p, _| {
        if p.payload > 0 && p.seq < 800 && p.seq % 200 == 100 { Fate::Late(ms(5)) } else { Fate::Pass }
    });
    pair.run_until(at(60_000)).assert_complete(4_000 * MSS);
    let again: Vec<u32> =
        pair.data().filter(|s| pair.times_of(s.packet.seq).len() > 1).map(|s| s.packet.seq).collect();
    assert_eq!(again, [100, 100], "only the first segment is retransmitted");
}

#[test]
fn a_spurious_timeout_after_a_delay_spike_is_undone() {
    // The link stops from 300 ms to 1300 ms. All segments that are sent during this time arrive late, but in order.
    let app = segments(3_000);
    let (from, to) = (at(300), at(1_300));
    let mut pair = Pair::new("cubic", &app, |p, now| {
        if p.payload > 0 && now >= from && now < to { Fate::Held(to) } else { Fate::Pass }
    });
    pair.open_window();
    pair.run_until(at(600));
    let before = (pair.sender.control.window.cwnd, pair.sender.control.window.ssthresh);
    pair.run_until(at(1_250));
    assert_eq!(pair.sender.recovery.state, State::Loss);
    assert!(pair.sender.counters.timeouts >= 1);
    pair.run_until(at(1_390));
    assert_ne!(pair.sender.recovery.state, State::Loss);
    assert!(
        pair.sender.control.window.cwnd >= before.0,
        "{} of {}",
        pair.sender.control.window.cwnd,
        before.0
    );
    assert!(pair.sender.control.window.ssthresh >= before.1);
    pair.run_until(at(60_000)).assert_complete(3_000 * MSS);
    // After the stop, RACK attributes the first ACK to the retransmission, because RACK checks only the RTT of the ACK,
    // as in Linux. (RFC 8985 section 6.2 also checks the timestamp echo.) Each ACK therefore causes a spurious
    // retransmission. This ends when the retransmitted segments are acknowledged and the reduction is undone.
    assert!(pair.sender.counters.retransmits < 30, "{}", pair.sender.counters.retransmits);
}

#[test]
fn a_sack_undoes_a_spurious_timeout_too() {
    // The link stops as in the previous test. In addition, the first segment of the flight is lost, so only
    // retransmissions of this segment can arrive. No cumulative ACK can therefore echo a timestamp from before the
    // timeout. But SACKs report segments that were sent only once, before the timeout (F-RTO, RFC 5682 section 3.1 step
    // 3b).
    let app = segments(3_000);
    let (from, to) = (at(300), at(1_300));
    let mut lost = None;
    let mut pair = Pair::new("cubic", &app, |p, now| {
        if p.payload == 0 || now < from || now >= to {
            return Fate::Pass;
        }
        if *lost.get_or_insert(p.seq) == p.seq { Fate::Drop } else { Fate::Held(to) }
    });
    pair.run_until(at(1_250));
    assert_eq!(pair.sender.recovery.state, State::Loss);
    pair.run_until(at(1_345));
    assert_ne!(pair.sender.recovery.state, State::Loss);
    pair.run_until(at(60_000)).assert_complete(3_000 * MSS);
    assert!(pair.sender.counters.retransmits < 30, "{}", pair.sender.counters.retransmits);
}

#[test]
fn duplicates_made_by_the_network_do_not_count_as_spurious_retransmissions() {
    let app = segments(2_000);
    let mut pair =
        Pair::new(
            "reno",
            &app,
            |p, _| if p.payload > 0 && p.seq % 10 == 5 { Fate::Twice } else { Fate::Pass },
        );
    pair.run_until(at(60_000)).assert_complete(2_000 * MSS);
    let c = &pair.sender.counters;
    assert_eq!((c.retransmits, c.timeouts), (0, 0));
    assert_eq!(c.spurious, 200, "DSACKs report each duplicate");
    let window = pair.sender.flight.rack.window(State::Disorder, 0, &pair.sender.flight.rtt);
    assert_eq!(window, pair.sender.flight.rtt.min.scale(1, 4), "the reordering window does not grow");
}

#[test]
fn a_duplicate_of_a_lost_segment_does_not_undo_the_reduction() {
    let app = segments(2_000);
    let mut lost = lose(&[300]);
    let mut pair = Pair::new("reno", &app, |p, now| match lost(p, now) {
        Fate::Pass if p.payload > 0 && p.seq == 200 => Fate::Twice,
        fate => fate,
    });
    pair.run_until(at(60_000)).assert_complete(2_000 * MSS);
    assert!(pair.sender.control.window.ssthresh < 1_000, "{}", pair.sender.control.window.ssthresh);
}

/// A controller that records its events. It halves the window on congestion, and uses slow start below the threshold.
struct EventRecorder(Arc<Mutex<Vec<String>>>);

impl EventRecorder {
    fn record(&self, event: impl Into<String>) {
        self.0.lock().unwrap().push(event.into());
    }
}

impl Controller for EventRecorder {
    fn name(&self) -> &'static str {
        "events"
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if window.cwnd < window.ssthresh {
            window.cwnd += ack.acked;
        }
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        let again = if event.again { " again" } else { "" };
        self.record(match event.signal {
            Signal::Timeout => format!("timeout{again}"),
            signal => format!("{signal:?}{again}"),
        });
        window.ssthresh = (window.cwnd / 2).max(2);
    }

    fn on_recovered(&mut self, _: Time, _: &mut Window) {
        self.record("recovered");
    }

    fn on_restart(&mut self, _: Time, _: Span, _: bool, _: &mut Window) {
        self.record("restart");
    }

    fn on_undo(&mut self, _: Time, _: &mut Window) {
        self.record("undo");
    }
}

fn events_of(network: impl FnMut(&Packet, Time) -> Fate) -> Vec<String> {
    let app = segments(130);
    let mut pair = Pair::new("reno", &app, network);
    let events = Arc::new(Mutex::new(Vec::new()));
    pair.sender.control.cc = Box::new(EventRecorder(events.clone()));
    pair.run_until(at(60_000)).assert_complete(130 * MSS);
    let events = events.lock().unwrap();
    events.clone()
}

/// After tcp_try_undo_recovery(), Linux calls tcp_end_cwnd_reduction(). This call sends CA_EVENT_COMPLETE_CWR to the
/// controller. Westwood+ sets its window at this event.
#[test]
fn the_controller_is_notified_of_the_end_of_a_recovery_that_its_last_ack_undoes() {
    // The late segment arrives after the other segments of its flight, but before its retransmission.
    let events = events_of(first(Fate::Late(ms(10)), |p| p.payload > 0 && p.seq == 100));
    assert_eq!(events, ["Loss", "undo", "recovered"]);
}

/// Linux tcp_enter_loss() reduces the threshold once per episode of loss.
#[test]
fn a_timeout_within_a_recovery_is_reported_as_a_repeated_signal() {
    let events =
        events_of(
            |p, now| if p.payload > 0 && p.seq == 100 && now < at(1_000) { Fate::Drop } else { Fate::Pass },
        );
    // No segment is in flight. The retransmission is therefore a start, and the controller is notified
    // (CA_EVENT_TX_START).
    assert_eq!(events[..3], ["Loss", "timeout again", "restart"], "{events:?}");
    assert!(
        events[1..].iter().all(|e| ["timeout again", "restart", "recovered"].contains(&e.as_str())),
        "{events:?}"
    );
}
