//! Opening, acknowledging and closing.

use super::*;

fn first_syn(p: &Packet) -> bool {
    p.is(flag::SYN) && !p.is(flag::REVERSE)
}

#[test]
fn a_short_flow_takes_two_round_trips_and_its_serialisation() {
    let app = segments(4);
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    pair.run_until(at(10_000)).assert_complete(4 * MSS);
    // SYN, SYN-ACK, data (4 x 0.1 ms), ACK.
    assert_eq!(pair.sender.completed_at, Some(Time::ZERO + Span::from_micros(80_400)));
    assert_eq!(pair.sender.counters.retransmits, 0);
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second() {
    let app = segments(4);
    let mut pair = Pair::new("reno", &app, first(Fate::Drop, first_syn));
    pair.run_until(at(10_000)).assert_complete(4 * MSS);
    let syns: Vec<Time> = pair.log.iter().filter(|s| first_syn(&s.packet)).map(|s| s.at).collect();
    assert_eq!(syns, [at(0), at(1_000)]);
    // RFC 7323: the echo tells which SYN was answered, so there is a sample (Karn's rule would give none).
    assert_eq!(pair.sender.rtt.min.as_nanos() / 1_000_000, 40);
}

#[test]
fn a_lost_syn_ack_is_asked_for_again() {
    let app = segments(4);
    let lost = |p: &Packet| p.is(flag::SYN) && p.is(flag::REVERSE);
    let mut pair = Pair::new("reno", &app, first(Fate::Drop, lost));
    pair.run_until(at(10_000)).assert_complete(4 * MSS);
    let done = pair.sender.completed_at.unwrap();
    assert!(done > at(1_050) && done < at(1_100), "{done:?}");
}

#[test]
fn data_stands_in_for_a_lost_ack_of_the_handshake() {
    let app = segments(4);
    let bare = |p: &Packet| !p.is(flag::REVERSE | flag::SYN) && p.payload == 0;
    let mut pair = Pair::new("reno", &app, first(Fate::Drop, bare));
    pair.run_until(at(10_000)).assert_complete(4 * MSS);
    assert_eq!(pair.sender.completed_at, Some(Time::ZERO + Span::from_micros(80_400)));
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
fn a_dead_network_lets_the_client_give_up() {
    let app = segments(4);
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Drop);
    pair.run_until(at(1_000_000));
    assert_eq!(pair.sender.phase, Phase::Closed);
    let times: Vec<u64> = pair.log.iter().map(|s| s.at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(times, [0, 1, 3, 7, 15, 31, 63], "Linux: six retries, doubling");
}

#[test]
fn each_lost_packet_of_the_close_is_repaired() {
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
fn after_the_quick_start_every_second_segment_is_acknowledged() {
    let app = segments(2_000);
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    pair.run_until(at(60_000)).assert_complete(2_000 * MSS);
    let acks = pair.acks().count() as i64;
    // The first 16 cover a segment each, the others two.
    assert!((acks - (16 + (2_000 - 16) / 2)).abs() <= 20, "{acks}");
}

#[test]
fn a_lone_segment_is_acknowledged_after_forty_milliseconds() {
    // A segment every 100 ms: no second one comes in time.
    let app = AppPlan::Limited { rate: Rate::from_bytes_per_sec(MSS * 10), on: None, off: None };
    let mut pair = Pair::new("reno", &app, |_, _| Fate::Pass);
    pair.run_until(at(5_000));
    let last_data = pair.data().filter(|s| s.at < at(4_900)).last().unwrap();
    let ack = pair.acks().find(|a| a.packet.ack > last_data.packet.seq).unwrap();
    assert_eq!(ack.at.since(last_data.at), ms(20 + 40) + Span::from_micros(100));
    assert_eq!(pair.sender.counters.retransmits, 0, "a delayed ACK must not cause a probe");
}

#[test]
fn after_a_pause_the_receiver_acknowledges_quickly_again() {
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
    assert_eq!(pair.sender.counters.retransmits, 10, "each hole once");
}

#[test]
fn the_receive_window_limits_what_is_out() {
    let app = segments(500);
    let mut pair = Pair::new("cubic", &app, |_, _| Fate::Pass);
    pair.sender.config.receive_window = 20;
    pair.run_until(at(300));
    assert!(pair.sender.board.packets_out() <= 20);
    pair.run_until(at(60_000)).assert_complete(500 * MSS);
    // 20 segments in 40 ms and the time they take.
    let rounds = 500.0 / 20.0;
    let seconds = pair.sender.completed_at.unwrap().as_secs_f64();
    assert!((seconds / (rounds * 0.041) - 1.0).abs() < 0.15, "{seconds}");
    assert!(
        pair.sender.window.cwnd <= 2 * 20 + 1,
        "a window that is not used does not grow: {}",
        pair.sender.window.cwnd
    );
}
