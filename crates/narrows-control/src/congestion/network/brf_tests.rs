use super::*;
use crate::congestion::Signal;
use crate::congestion::harness::{Path, Sender, ack_at, connection, initial_window, periodic_loss};

const RTT: Span = Span::from_millis(20);

fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_sec(rate * 1_000_000)
}

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

/// Returns the parameters of a sender with equal gaps, for tests of low rates.
fn exact() -> Params {
    Params { vary_gaps: false, ..Params::default() }
}

/// Returns a sender whose handshake carried `feedback`.
fn established(params: Params, feedback: Option<Rate>) -> (Brf, Window) {
    let mut brf = Brf::new("brf", params);
    let mut window = initial_window();
    let connection = connection(Some(RTT), feedback);
    brf.on_established(&connection, &mut window);
    (brf, window)
}

fn ack(at: Time, feedback: Option<Rate>) -> Ack {
    Ack { feedback, srtt: RTT, min_rtt: RTT, rtt: Some(RTT), ..ack_at(at) }
}

#[test]
fn the_rate_of_the_handshake_is_obeyed_from_the_first_packet() {
    let (brf, window) = established(Params::default(), Some(mbit(50)));
    assert_eq!(window.pacing_rate, Some(mbit(50)));
    // 2 x 50 Mbit/s x 20 ms / 1500 B = 166.7.
    assert_eq!(window.cwnd, 167);
    assert_eq!(brf.recovery(), Recovery::Controller);
    assert!(brf.wants_feedback());
}

#[test]
fn a_rate_falls_at_once_and_rises_by_doubling_per_rtt() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(50)));
    brf.on_ack(&ack(ms(5), Some(mbit(10))), &mut w);
    assert_eq!(w.pacing_rate, Some(mbit(10)));
    let mut rates = Vec::new();
    for n in 1..=5 {
        brf.on_ack(&ack(ms(5 + 20 * n), Some(mbit(100))), &mut w);
        rates.push(w.pacing_rate);
    }
    assert_eq!(rates, [20, 40, 80, 100, 100].map(|r| Some(mbit(r))));
}

#[test]
fn many_acks_within_one_rtt_do_not_double_more_than_once() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(5)));
    for n in 0..40 {
        brf.on_ack(&ack(Time::ZERO + Span::from_micros(400 * n), Some(mbit(1000))), &mut w);
    }
    assert_eq!(w.pacing_rate, Some(mbit(10)));
}

#[test]
fn a_rate_of_zero_becomes_a_packet_per_second() {
    let (mut brf, mut w) = established(exact(), Some(mbit(50)));
    brf.on_ack(&ack(ms(5), Some(Rate::ZERO)), &mut w);
    assert_eq!(w.pacing_rate, Some(Rate::from_bytes_per_sec(1_500)));
    assert_eq!(w.cwnd, 4);
}

/// With a hundred flows on 10 Mbit/s, each flow may send a sixth of a packet per RTT.
#[test]
fn a_rate_of_less_than_a_packet_per_rtt_is_obeyed() {
    let (mut brf, mut w) = established(exact(), Some(mbit(50)));
    let share = Rate::from_bytes_per_sec(12_250);
    for n in 1..100 {
        brf.on_ack(&ack(ms(122 * n), Some(share)), &mut w);
        assert_eq!(w.pacing_rate, Some(share));
    }
}

#[test]
fn a_flow_below_two_packets_per_rtt_varies_its_gaps_but_keeps_its_rate() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(50)));
    let share = Rate::from_bytes_per_sec(12_250);
    let gaps: Vec<f64> = (1..1000)
        .map(|n| {
            brf.on_ack(&ack(ms(122 * n), Some(share)), &mut w);
            share.as_f64() / w.pacing_rate.unwrap().as_f64()
        })
        .collect();
    let mut sent = 0.0;
    for (n, gap) in gaps.iter().enumerate() {
        sent += gap;
        assert!((sent - (n as f64 + 1.0)).abs() < 3.0, "{sent} mean gaps after {} gaps", n + 1);
    }
    let [least, most] = [f64::min, f64::max].map(|of| gaps.iter().copied().fold(1.0, of));
    assert!((0.5..0.7).contains(&least) && (1.3..1.5).contains(&most), "{least} to {most}");
    // 150,000 bytes/s are two packets per RTT.
    brf.on_ack(&ack(ms(200_000), Some(Rate::from_bytes_per_sec(150_000))), &mut w);
    assert_eq!(w.pacing_rate, Some(Rate::from_bytes_per_sec(150_000)));
}

#[test]
fn a_rate_above_the_own_link_is_limited_to_the_link() {
    let (_, w) = established(Params { link: mbit(1000), ..Params::default() }, Some(Rate::MAX));
    assert_eq!(w.pacing_rate, Some(mbit(1000)));
}

#[test]
fn a_loss_or_timeout_does_not_change_the_rate() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(50)));
    for signal in [Signal::Loss, Signal::Ecn, Signal::Timeout] {
        let event = Congestion { again: false, signal, now: ms(5), in_flight: 50, srtt: RTT };
        brf.on_congestion(&event, &mut w);
        w.cwnd = 1;
        brf.on_ack(&Ack { state: State::Loss, lost: 5, ..ack(ms(6), Some(mbit(50))) }, &mut w);
        assert_eq!((w.pacing_rate, w.cwnd), (Some(mbit(50)), 167));
    }
}

#[test]
fn without_feedback_in_the_handshake_cubic_runs_and_forged_feedback_is_ignored() {
    let (mut brf, mut w) = established(Params::default(), None);
    assert_eq!(brf.recovery(), Recovery::Transport);
    let mut cubic = Cubic::default();
    let mut plain = initial_window();
    let connection = connection(Some(RTT), None);
    cubic.on_established(&connection, &mut plain);
    for n in 1..2000 {
        if n % 700 == 0 {
            let event =
                Congestion { again: false, signal: Signal::Loss, now: ms(n), in_flight: 50, srtt: RTT };
            brf.on_congestion(&event, &mut w);
            cubic.on_congestion(&event, &mut plain);
            w.cwnd = w.ssthresh;
            plain.cwnd = plain.ssthresh;
        }
        brf.on_ack(&ack(ms(n), Some(mbit(1))), &mut w);
        cubic.on_ack(&ack(ms(n), None), &mut plain);
        assert_eq!(w, plain);
    }
}

/// Tests BRF-92 and BRF-105 with one ACK per millisecond.
#[test]
fn silence_halves_the_rate_every_rtt_and_then_cubic_takes_over() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(64)));
    let mut changes = Vec::new();
    let mut last = w.pacing_rate;
    for n in 1..1000 {
        brf.on_ack(&ack(ms(n), None), &mut w);
        if w.pacing_rate != last {
            last = w.pacing_rate;
            changes.push((n, last));
        }
        if last.is_none() {
            break;
        }
    }
    // Silence begins after max(4 x 20 ms, 200 ms).
    let expected = [(201, 32), (221, 16), (241, 8), (261, 4)].map(|(n, r)| (n, Some(mbit(r))));
    assert_eq!(changes[..4], expected);
    assert_eq!(changes[4], (281, None));
    assert_eq!(brf.recovery(), Recovery::Transport);
    // The last allocation filled 64 Mbit/s x 20 ms = 107 packets.
    assert_eq!(w.ssthresh, 53);
    assert!((4..12).contains(&w.cwnd), "window {}", w.cwnd);
}

#[test]
fn the_halving_stops_at_two_packets_per_rtt() {
    let (mut brf, mut w) = established(Params::default(), Some(Rate::from_bytes_per_sec(300_000)));
    for n in 1..275 {
        brf.on_ack(&ack(ms(n), None), &mut w);
    }
    assert_eq!(w.pacing_rate, Some(Rate::from_bytes_per_sec(150_000)));
    for n in 275..290 {
        brf.on_ack(&Ack { cwnd_limited: false, ..ack(ms(n), None) }, &mut w);
    }
    assert_eq!(w, Window { cwnd: 4, ssthresh: 4, pacing_rate: None });
}

#[test]
fn the_first_feedback_after_silence_restores_the_rate() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(64)));
    for n in 1..250 {
        brf.on_ack(&ack(ms(n), None), &mut w);
    }
    assert_eq!(w.pacing_rate, Some(mbit(8)));
    brf.on_ack(&ack(ms(250), Some(mbit(64))), &mut w);
    assert_eq!(w.pacing_rate, Some(mbit(64)));
}

#[test]
fn feedback_that_returns_takes_over_from_cubic_without_a_jump() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(64)));
    for n in 1..400 {
        brf.on_ack(&ack(ms(n), None), &mut w);
    }
    assert_eq!(brf.recovery(), Recovery::Transport);
    let cubic_rate = Rate::of(Bytes::new(u64::from(w.cwnd) * 1500), RTT);
    brf.on_ack(&ack(ms(401), Some(mbit(640))), &mut w);
    assert_eq!(brf.recovery(), Recovery::Controller);
    let rate = w.pacing_rate.map_or(0.0, Rate::as_f64);
    assert!(rate >= cubic_rate.as_f64() && rate <= 2.1 * cubic_rate.as_f64(), "{rate} after {cubic_rate:?}");
    for n in 0..10 {
        brf.on_ack(&ack(ms(421 + 20 * n), Some(mbit(640))), &mut w);
    }
    assert_eq!(w.pacing_rate, Some(mbit(640)));
}

/// During a reduction, the transport sets CUBIC's window, and the controller gets only samples.
#[test]
fn feedback_that_returns_takes_over_during_a_recovery() {
    for state in [State::Cwr, State::Recovery, State::Loss] {
        let (mut brf, mut w) = established(Params::default(), Some(mbit(64)));
        for n in 1..400 {
            brf.on_ack(&ack(ms(n), None), &mut w);
        }
        w.cwnd = 40;
        let (silent, rated) = (ack(ms(400), None), Ack { state, ..ack(ms(401), Some(mbit(64))) });
        brf.on_sample(&Ack { state, ..silent });
        assert_eq!(brf.recovery(), Recovery::Transport, "{state:?}");
        brf.on_sample(&rated);
        brf.on_ack(&rated, &mut w);
        assert_eq!(brf.recovery(), Recovery::Controller, "{state:?}");
        // CUBIC's rate is 40 packets per 20 ms, or 24 Mbit/s. After one RTT the rate is at most twice as high.
        assert_eq!(w.pacing_rate, Some(mbit(48)), "{state:?}");
    }
}

/// If the transport runs a reduction, the controller gets the window back with the first ACK after the feedback.
#[test]
fn feedback_during_a_reduction_returns_the_window_to_the_controller() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(64)));
    for n in 1..400 {
        brf.on_ack(&ack(ms(n), None), &mut w);
    }
    brf.on_sample(&ack(ms(400), Some(mbit(64))));
    assert_eq!(brf.recovery(), Recovery::Transport, "on_ack() handles this feedback");
    brf.on_sample(&Ack { state: State::Recovery, ..ack(ms(401), Some(mbit(64))) });
    assert_eq!(brf.recovery(), Recovery::Controller);
    brf.on_ack(&Ack { state: State::Recovery, ..ack(ms(402), None) }, &mut w);
    assert!(w.pacing_rate.is_some());
}

#[test]
fn silence_leads_to_cubic_during_a_recovery() {
    for state in [State::Cwr, State::Recovery, State::Loss] {
        let (mut brf, mut w) = established(Params::default(), Some(mbit(64)));
        for n in 1..282 {
            brf.on_ack(&Ack { state, ..ack(ms(n), None) }, &mut w);
        }
        assert_eq!((brf.recovery(), w.pacing_rate, w.ssthresh), (Recovery::Transport, None, 53), "{state:?}");
    }
}

#[test]
fn the_threshold_of_a_recovery_is_half_of_the_unacknowledged_data() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(1)));
    for n in 1..282 {
        let outstanding = Ack { snd_una: 100, snd_nxt: 1900, ..ack(ms(n), None) };
        brf.on_ack(&Ack { state: State::Recovery, ..outstanding }, &mut w);
    }
    assert_eq!((w.pacing_rate, w.ssthresh), (None, 900));
}

#[test]
fn after_idling_longer_than_a_timeout_ten_packets_per_rtt_until_the_next_feedback() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(64)));
    brf.on_restart(ms(300), Span::from_millis(219), true, &mut w);
    assert_eq!(w.pacing_rate, Some(mbit(64)));
    brf.on_restart(ms(5000), Span::from_secs(4), true, &mut w);
    // 10 x 1500 B / 20 ms = 6 Mbit/s.
    assert_eq!(w.pacing_rate, Some(mbit(6)));
    brf.on_ack(&ack(ms(5020), None), &mut w);
    assert_eq!(w.pacing_rate, Some(mbit(6)), "idle time does not count as silence");
    brf.on_ack(&ack(ms(5025), Some(mbit(64))), &mut w);
    assert_eq!(w.pacing_rate, Some(mbit(64)));
}

#[test]
fn a_rate_that_varies_within_an_rtt_does_not_jump() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(50)));
    brf.on_ack(&ack(ms(5), Some(mbit(5))), &mut w);
    brf.on_ack(&ack(ms(10), Some(mbit(50))), &mut w);
    assert_eq!(w.pacing_rate, Some(mbit(10)));
}

/// Bursts of 30 ms with pauses of 100 ms. In the seventh burst, the flow has sent for more than 200 ms in total.
#[test]
fn short_bursts_detect_the_silence_of_their_switch_too() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(64)));
    let mut bursts = 0;
    while bursts < 20 && w.pacing_rate.is_some_and(|rate| rate > mbit(6)) {
        let start = 130 * bursts;
        brf.on_restart(ms(start), Span::from_millis(if bursts == 0 { 0 } else { 100 }), true, &mut w);
        for n in 0..30 {
            brf.on_ack(&ack(ms(start + n), None), &mut w);
        }
        bursts += 1;
    }
    assert!((7..=12).contains(&bursts), "after {bursts} bursts: {:?}", w.pacing_rate);
}

#[test]
fn the_literal_sender_has_no_window_no_silence_response_and_no_bound() {
    let (mut brf, mut w) = established(Params::literal(), Some(mbit(10)));
    assert_eq!(w.cwnd, INFINITE_SSTHRESH);
    brf.on_ack(&ack(ms(1), Some(mbit(900))), &mut w);
    assert_eq!(w.pacing_rate, Some(mbit(900)));
    for n in 2..5000 {
        brf.on_ack(&ack(ms(n), None), &mut w);
    }
    assert_eq!(w.pacing_rate, Some(mbit(900)));
}

#[test]
fn ten_per_cent_of_loss_costs_ten_per_cent() {
    let path =
        Path { loss: periodic_loss(10), feedback: Box::new(|_| Some(mbit(50))), ..Path::new(mbit(100), 20) };
    let mut sender = Sender::new(Box::new(Brf::default()), path);
    sender.run_for(Span::from_secs(10));
    let goodput = sender.delivered() as f64 * 12_000.0 / 10.0 / 1e6;
    assert!((goodput - 45.0).abs() < 0.5, "{goodput:.2} Mbit/s");
}

#[test]
fn a_flow_whose_switch_fails_recovers_by_itself() {
    let feedback = Box::new(|now: Time| (now < Time::from_secs_f64(2.0)).then(|| mbit(40)));
    let path = Path { feedback, queue: 170, ..Path::new(mbit(100), 20) };
    let mut sender = Sender::new(Box::new(Brf::default()), path);
    sender.run_for(Span::from_secs(3));
    assert_eq!(sender.figure("mode"), 2.0);
    let before = sender.delivered();
    sender.run_for(Span::from_secs(10));
    let goodput = (sender.delivered() - before) as f64 * 12_000.0 / 10.0 / 1e6;
    assert!(goodput > 60.0, "{goodput:.1} Mbit/s");
}

/// The first RTT sample after an outage is as long as the outage, and srtt remains high for a long time.
#[test]
fn after_an_outage_the_rate_doubles_per_rtt_of_the_path() {
    let (mut brf, mut w) = established(Params::default(), Some(mbit(50)));
    brf.on_ack(&ack(ms(5), Some(Rate::ZERO)), &mut w);
    let long = Span::from_secs(5);
    let late = |n| Ack { srtt: long, min_rtt: RTT, rtt: Some(long), ..ack(ms(n), Some(mbit(50))) };
    let mut rates = Vec::new();
    for n in 0..6 {
        // The rate starts from two packets per RTT.
        brf.on_ack(&late(5_000 + 20 * n), &mut w);
        rates.extend(w.pacing_rate.map(|r| r.as_bits_per_sec() / 1e5));
    }
    assert_eq!(rates, [24.0, 48.0, 96.0, 192.0, 384.0, 500.0]);
}

#[test]
fn the_floor_of_silence_falls_when_a_queue_builds() {
    let (mut brf, mut w) = established(exact(), Some(Rate::from_bytes_per_sec(150_000)));
    // The rate is halved three times.
    for n in 1..=250 {
        brf.on_ack(&ack(ms(n), None), &mut w);
    }
    let mut rate = |rtt: Span| {
        brf.on_ack(&Ack { rtt: Some(rtt), ..ack(ms(250), None) }, &mut w);
        w.pacing_rate.unwrap().as_bytes_per_sec()
    };
    assert_eq!([20, 40, 100, 10_000].map(|n| rate(Span::from_millis(n))), [150_000, 75_000, 30_000, 18_750]);
}

/// The sender uses CUBIC until the first rate arrives (BRF-63, BRF-93).
#[test]
fn feedback_that_begins_late_is_obeyed_if_the_handshake_had_the_option() {
    let (mut brf, mut w) = (Brf::new("brf", exact()), initial_window());
    let connection = Connection { feedback_possible: true, ..connection(Some(RTT), None) };
    brf.on_established(&connection, &mut w);
    for n in 1..1200 {
        brf.on_ack(&ack(ms(n), None), &mut w);
    }
    assert_eq!((brf.recovery(), w.pacing_rate), (Recovery::Transport, None));
    brf.on_ack(&ack(ms(1200), Some(mbit(1))), &mut w);
    assert_eq!((brf.recovery(), w.pacing_rate), (Recovery::Controller, Some(mbit(1))));
}
