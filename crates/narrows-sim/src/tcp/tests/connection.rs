//! Tests of opening and closing connections, of ACKs, and of the receive window.

use std::sync::{Arc, Mutex};

use narrows_control::congestion::{Ack, Congestion, Controller, Timestamps, Window};

use super::*;

fn first_syn(p: &Packet) -> bool {
    p.is(flag::SYN) && !p.is(flag::REVERSE)
}

#[test]
fn a_short_flow_takes_two_round_trips_and_its_transmission_time() {
    let app = segments(4);
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    pair.run_until(at(10_000)).assert_complete(4 * MSS);
    // The handshake takes an RTT of 40 ms. The data and its ACK take another RTT, and 4 x 0.1 ms for the transmission.
    assert_eq!(pair.sender.completed_at(), Some(Time::ZERO + Span::from_micros(80_400)));
    assert_eq!(pair.sender.counters.retransmits, 0);
}

#[test]
fn a_lost_syn_is_retransmitted_after_a_second() {
    let app = segments(4);
    let mut pair = Pair::new("reno", &app, first(Fate::Drop, first_syn));
    pair.run_until(at(10_000)).assert_complete(4 * MSS);
    let syns: Vec<Time> = pair.log.iter().filter(|s| first_syn(&s.packet)).map(|s| s.at).collect();
    assert_eq!(syns, [at(0), at(1_000)]);
    // RFC 7323: the timestamp echo shows which SYN was answered, so there is an RTT sample. By Karn's rule alone, there
    // would be none.
    assert_eq!(pair.sender.flight.rtt.min.as_nanos() / 1_000_000, 40);
}

#[test]
fn a_lost_syn_ack_is_retransmitted() {
    let app = segments(4);
    let lost = |p: &Packet| p.is(flag::SYN) && p.is(flag::REVERSE);
    let mut pair = Pair::new("reno", &app, first(Fate::Drop, lost));
    pair.run_until(at(10_000)).assert_complete(4 * MSS);
    let done = pair.sender.completed_at().unwrap();
    assert!(done > at(1_050) && done < at(1_100), "{done:?}");
}

#[test]
fn data_replaces_a_lost_ack_of_the_handshake() {
    let app = segments(4);
    let bare = |p: &Packet| !p.is(flag::REVERSE | flag::SYN) && p.payload == 0;
    let mut pair = Pair::new("reno", &app, first(Fate::Drop, bare));
    pair.run_until(at(10_000)).assert_complete(4 * MSS);
    assert_eq!(pair.sender.completed_at(), Some(Time::ZERO + Span::from_micros(80_400)));
}

#[test]
fn an_idle_client_answers_a_repeated_syn_ack() {
    let app = AppPlan::Limited { rate: Rate::from_bytes_per_sec(300), on: None, off: None };
    let bare = |p: &Packet| !p.is(flag::REVERSE | flag::SYN) && p.payload == 0;
    let mut pair = Pair::new("reno", &app, first(Fate::Drop, bare));
    pair.run_until(at(4_000));
    assert_eq!(pair.log.iter().filter(|s| s.packet.is(flag::SYN) && s.packet.is(flag::REVERSE)).count(), 2);
    assert_eq!(pair.receiver.phase, super::super::receiver::Phase::Established);
}

#[test]
fn the_client_gives_up_if_the_network_drops_everything() {
    let app = segments(4);
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Drop);
    pair.run_until(at(1_000_000));
    assert_eq!(pair.sender.phase, Phase::Closed);
    let times: Vec<u64> = pair.log.iter().map(|s| s.at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(times, [0, 1, 3, 7, 15, 31, 63], "Linux: six retries, doubling");
}

#[test]
fn the_loss_of_each_closing_packet_is_repaired() {
    let from_receiver = |p: &Packet| p.is(flag::FIN) && p.is(flag::REVERSE);
    let from_sender = |p: &Packet| p.is(flag::FIN) && !p.is(flag::REVERSE) && p.payload > 0;
    let last_ack = |p: &Packet| p.is(flag::FIN) && !p.is(flag::REVERSE) && p.payload == 0;
    let which: [&dyn Fn(&Packet) -> bool; 3] = [&from_sender, &from_receiver, &last_ack];
    for (k, lost) in which.into_iter().enumerate() {
        let app = segments(4);
        let mut pair = Pair::new("reno", &app, first(Fate::Drop, lost));
        pair.run_until(at(10_000));
        assert!(pair.log.iter().any(|s| s.fate == Fate::Drop), "case {k}: nothing was lost");
        pair.assert_complete(4 * MSS);
        assert!(pair.now < at(1_000), "case {k}: {:?}", pair.now);
    }
}

#[test]
fn every_second_segment_is_acknowledged_after_the_quick_acks() {
    let app = segments(2_000);
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    pair.limit_window(40);
    pair.run_until(at(60_000)).assert_complete(2_000 * MSS);
    let acks = pair.acks().count() as i64;
    // Each of the first 16 ACKs covers one segment. Each later ACK covers two segments.
    assert!((acks - (16 + (2_000 - 16) / 2)).abs() <= 20, "{acks}");
}

#[test]
fn the_window_opens_by_two_segments_per_arrival_and_each_is_acknowledged_meanwhile() {
    let app = segments(6_000);
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    pair.sender.control.window.cwnd = 10_000;
    // Number of segments in flight after 2, 3 and 4 round trips. By then, ACKs have reported 0, 45 and 180 segments.
    for (rounds, out) in [(2, 45), (3, 45 + 2 * 45), (4, 45 + 2 * 180)] {
        pair.run_until(at(rounds * 40 - 1));
        assert_eq!(pair.sender.flight.board.packets_out(), out, "after {rounds} rounds");
    }
    pair.run_until(at(60_000)).assert_complete(6_000 * MSS);
    // The window grows up to 2172 segments (3 MiB). The receiver then sends its 16 quick ACKs. Each later ACK covers
    // two segments.
    let opening = (2_172 - 45_i64) / 2 + 1;
    let acks = pair.acks().count() as i64;
    assert!((acks - (opening + 16 + (6_000 - opening - 16) / 2)).abs() <= 20, "{acks}");
}

/// The receiver offers half of its buffer (Linux tcp_win_from_space).
#[test]
fn the_window_opens_to_half_of_the_buffer() {
    let mut offer = Offer::new(1448, None, Some(Bytes::new(8 << 20)), true);
    let half = (4 << 20) / 1448;
    assert_eq!(offer.edge(), 45);
    offer.on_ack(10, 0, 10);
    assert_eq!(offer.edge(), 10 + 45 + 20);
    offer.on_ack(100, 0, half);
    assert_eq!(offer.edge(), 100 + half);
    let mut free = Offer::new(1448, None, Some(Bytes::new(8 << 20)), false);
    free.on_ack(0, 0, half);
    assert!(free.edge() > 1 << 29, "an open window is not a limit");
    let mut small = Offer::new(1448, None, Some(Bytes::new(1)), true);
    small.on_ack(0, 0, 10);
    assert_eq!(small.edge(), 1);
}

/// A full segment takes 2304 bytes of the receive buffer (Linux skb->truesize). The receiver offers half of the free
/// memory, and never takes back a window that it has offered.
#[test]
fn out_of_order_segments_reduce_the_next_offered_window() {
    let mut offer = Offer::new(1448, None, Some(Bytes::new(8 << 20)), true);
    offer.on_ack(0, 0, u32::MAX);
    let half = (4 << 20) / 1448;
    offer.on_ack(0, 1000, 0);
    assert_eq!(offer.edge(), half, "an offer is not taken back");
    offer.on_ack(1000, 1000, 0);
    let left = ((8 << 20) - 1000 * 2304) / 2 / 1448;
    assert!((left..=left + 1).contains(&(offer.edge() - 1000)), "{} {left}", offer.edge());
    let before = offer.edge();
    offer.on_ack(1001, 5000, 0);
    assert_eq!(offer.edge(), before, "no memory is left");
    let mut limited = Offer::new(1448, Some(30), None, true);
    limited.on_ack(7, 20, 9);
    assert_eq!(limited.edge(), 37, "a scenario's limit does not depend on memory");
}

#[test]
fn a_lone_segment_is_acknowledged_after_forty_milliseconds() {
    // The application sends a segment every 100 ms. The receiver sends its delayed ACK before the next segment arrives.
    let app = AppPlan::Limited { rate: Rate::from_bytes_per_sec(MSS * 10), on: None, off: None };
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    // The receive window has a small limit, because a growing window would cause additional ACKs.
    pair.limit_window(40);
    pair.run_until(at(5_000));
    let last_data = pair.data().filter(|s| s.at < at(4_900)).last().unwrap();
    let ack = pair.acks().find(|a| a.packet.ack > last_data.packet.seq).unwrap();
    assert_eq!(ack.at.since(last_data.at), ms(20 + 40) + Span::from_micros(100));
    assert_eq!(pair.sender.counters.retransmits, 0, "a delayed ACK must not cause a probe");
}

#[test]
fn the_receiver_sends_quick_acks_again_after_a_pause() {
    let app = AppPlan::Limited {
        rate: Rate::from_bits_per_sec(50_000_000),
        on: Some(ms(30)),
        off: Some(ms(2_000)),
    };
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    pair.run_until(at(4_000));
    let burst: Vec<u32> = pair.data().filter(|s| s.at > at(2_000)).map(|s| s.packet.seq).take(8).collect();
    for seq in burst {
        assert!(pair.acks().any(|a| a.packet.ack == seq + 1), "segment {seq} has no ACK of its own");
    }
}

#[test]
fn at_most_three_sack_blocks_fit_beside_the_timestamps() {
    let app = segments(200);
    let holes: Vec<u32> = (20..40).step_by(2).collect();
    let mut pair = Pair::new("reno", &app, lose(&holes));
    pair.run_until(at(60_000)).assert_complete(200 * MSS);
    assert_eq!(pair.acks().map(|a| a.packet.sacks).max(), Some(3));
    assert!(pair.acks().all(|a| a.packet.size as u32 <= 52 + 4 + 24));
    assert_eq!(pair.sender.counters.retransmits, 10, "one for each hole");
}

#[test]
fn the_receive_window_limits_the_segments_in_flight() {
    let app = segments(500);
    let mut pair = Pair::new("cubic", &app, |_, _| Fate::Pass);
    pair.limit_window(20);
    pair.run_until(at(300));
    assert!(pair.sender.flight.board.packets_out() <= 20);
    pair.run_until(at(60_000)).assert_complete(500 * MSS);
    // The receive window allows 20 segments per RTT. The RTT is 40 ms plus the transmission time.
    let rounds = 500.0 / 20.0;
    let seconds = pair.sender.completed_at().unwrap().as_secs_f64();
    assert!((seconds / (rounds * 0.041) - 1.0).abs() < 0.15, "{seconds}");
    assert!(
        pair.sender.control.window.cwnd <= 2 * 20 + 1,
        "an unused window does not grow: {}",
        pair.sender.control.window.cwnd
    );
}

/// A controller that records the timestamps of ACKs. It never changes the window.
struct TimestampRecorder(Arc<Mutex<Vec<Timestamps>>>);

impl Controller for TimestampRecorder {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn on_sample(&mut self, ack: &Ack) {
        self.0.lock().unwrap().extend(ack.timestamps);
    }

    fn on_ack(&mut self, _: &Ack, _: &mut Window) {}

    fn on_congestion(&mut self, _: &Congestion, window: &mut Window) {
        window.ssthresh = 2;
    }
}

#[test]
fn timestamps_of_acks_never_decrease() {
    let app = segments(400);
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    let seen = Arc::new(Mutex::new(Vec::new()));
    pair.sender.control.cc = Box::new(TimestampRecorder(seen.clone()));
    (pair.delay, pair.slot) = (Span::from_micros(2500), Span::from_micros(370));
    pair.run_until(at(60_000)).assert_complete(400 * MSS);
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 100, "{}", seen.len());
    assert!(seen.windows(2).all(|w| w[0].value <= w[1].value && w[0].echo <= w[1].echo), "{seen:?}");
    // The timestamps that the receiver wrote into its packets.
    let written: Vec<u32> =
        pair.log.iter().filter(|s| s.packet.is(flag::REVERSE)).map(|s| s.packet.ts).collect();
    assert!(seen.iter().all(|s| written.contains(&s.value)));
    // The difference between value and echo is at least the one-way delay of 2.9 ms. Queueing adds to it. A delayed ACK
    // adds up to 40 ms.
    assert!(seen.iter().all(|s| (2..=50).contains(&(s.value - s.echo))), "{seen:?}");
}

#[test]
fn the_timestamp_clock_skips_zero_when_it_wraps() {
    let at_tick = |n: u64| Timestamps::clock(Time::ZERO + Timestamps::TICK.scale(n, 1));
    let turn = 1 << 32;
    assert_eq!([0, 1, turn - 2, turn - 1, turn, turn + 1].map(at_tick), [1, 2, u32::MAX, 1, 1, 2]);
    assert!(super::super::before(at_tick(turn - 2), at_tick(turn)));
}
