use super::*;
use crate::congestion::bbr::full_pipe::FullPipe;
use crate::congestion::harness::{Path, Sender, ack_at, connection};
use crate::congestion::{RateSample, State};

pub(in super::super) const LINK: Rate = Rate::from_bits_per_sec(100_000_000);

/// Results of a closed loop.
pub(in super::super) struct Outcome {
    /// Share of the link's rate that the flow uses.
    pub(in super::super) share: f64,
    /// Mean queueing delay, ms.
    pub(in super::super) delay: f64,
    /// Lost packets as a percentage of the packets sent.
    pub(in super::super) lost: f64,
    /// Number of lost packets, including those of the first two seconds.
    pub(in super::super) lost_ever: u64,
    /// The controller's estimate of the propagation time at the end, s.
    pub(in super::super) min_rtt: f64,
}

/// Runs the controller for two seconds and then for `seconds`. The results are measured over the last `seconds`, except
/// where [`Outcome`] says otherwise.
pub(in super::super) fn run(controller: Box<dyn Controller>, path: Path, seconds: u64) -> Outcome {
    let rate = path.rate.as_bits_per_sec();
    let mut sender = Sender::new(controller, path);
    sender.run_for(Span::from_secs(2));
    let (delivered, lost, queue) = (sender.delivered(), sender.lost(), sender.queue_seconds());
    sender.run_for(Span::from_secs(seconds));
    let (delivered, lost) = ((sender.delivered() - delivered) as f64, (sender.lost() - lost) as f64);
    Outcome {
        share: delivered * 12_000.0 / seconds as f64 / rate,
        delay: (sender.queue_seconds() - queue) / seconds as f64 * 1e3,
        lost: 100.0 * lost / (delivered + lost),
        lost_ever: sender.lost(),
        min_rtt: sender.figure("min_rtt"),
    }
}

/// Checks that the bandwidth estimate follows the rate of the link within `seconds`. The link doubles its rate at 3 s
/// and halves it later.
pub(in super::super) fn follows_the_link(controller: Box<dyn Controller>, seconds: u64) {
    let name = controller.name();
    let mut sender = Sender::new(controller, Path::new(LINK, 20));
    sender.run_for(Span::from_secs(3));
    for (mbit, within) in [(200.0, 4.0), (50.0, 2.0)] {
        sender.path().rate = Rate::from_bits_per_sec(mbit as u64 * 1_000_000);
        sender.run_for(Span::from_secs(seconds));
        let bw = sender.figure("bw") * 8.0 / 1e6;
        assert!((bw - mbit).abs() < within, "{name}: {bw:.1} of {mbit} Mbit/s");
    }
}

/// Returns a function that drops the packets that exceed a token bucket of 20 Mbit/s and 300 packets.
pub(in super::super) fn policer() -> Box<dyn FnMut(u64, Time) -> bool> {
    let (mut tokens, mut filled) = (300.0, Time::ZERO);
    Box::new(move |_, now| {
        tokens = f64::min(300.0, tokens + now.since(filled).as_secs_f64() * 20e6 / 12_000.0);
        filled = now;
        let conforms = tokens >= 1.0;
        tokens -= if conforms { 1.0 } else { 0.0 };
        !conforms
    })
}

fn established(rtt_millis: u64) -> (Bbr, Window) {
    let mut bbr = Bbr::default();
    let mut window = Window { cwnd: 10, ssthresh: 7, pacing_rate: None };
    let rtt = Some(Span::from_millis(rtt_millis));
    let handshake = Connection { seed: 3, ..connection(rtt, None) };
    bbr.on_established(&handshake, &mut window);
    (bbr, window)
}

/// Checks test vector TV-G4.
#[test]
fn at_100_mbit_and_20_ms_the_figures_are_those_of_the_test_vector() {
    let (bbr, _) = established(20);
    assert_eq!(bbr.model.bdp(LINK, Gain::ONE), 167);
    assert_eq!(bbr.model.bdp(LINK, Gain::ratio(2, 1)), 334);
    for (gain, mbit) in [(Gain::ratio(5, 4), 123.75), (Gain::ratio(3, 4), 74.25), (Gain::ONE, 99.0)] {
        assert_eq!(bbr.pacing_rate(LINK, gain).as_bits_per_sec() / 1e6, mbit);
    }
}

#[test]
fn the_first_rate_is_startups_gain_times_the_initial_window_per_rtt() {
    let (_, window) = established(20);
    let expected = 2.88672 * 10.0 * 1500.0 / 0.020 * 0.99;
    let rate = window.pacing_rate.map_or(0.0, Rate::as_f64);
    assert!((rate / expected - 1.0).abs() < 1e-3, "{rate} and {expected}");
    assert_eq!(window.ssthresh, INFINITE_SSTHRESH);
}

#[test]
fn without_a_handshake_rtt_the_rate_is_set_again_at_the_first_srtt() {
    let mut bbr = Bbr::default();
    let mut window = Window { cwnd: 10, ssthresh: 7, pacing_rate: None };
    let handshake = Connection { seed: 3, ..connection(None, None) };
    bbr.on_established(&handshake, &mut window);
    let nominal = window.pacing_rate.map_or(0.0, Rate::as_f64);
    assert!((nominal / (2.88672 * 15_000.0 / 1e-3 * 0.99) - 1.0).abs() < 1e-3);
    let srtt = Span::from_millis(100);
    bbr.on_ack(&Ack { srtt, rtt: Some(srtt), ..ack_at(Time::ZERO + srtt) }, &mut window);
    assert!(window.pacing_rate.map_or(0.0, Rate::as_f64) < nominal / 50.0);
}

/// TV-B4: Startup doubles the window log2(16.7) = 4.06 times, from 10 to 167 packets. Three more rounds detect the full
/// pipe.
#[test]
fn startup_takes_about_five_rounds_to_fill_and_three_to_detect() {
    let mut sender = Sender::new(Box::new(Bbr::default()), Path::new(LINK, 20));
    sender.run_until(Time::from_secs_f64(2.0), |s| s.figure("phase") != 0.0);
    let rounds = sender.figure("round");
    assert!((8.0..=10.0).contains(&rounds), "left Startup after {rounds} rounds");
    let bw = sender.figure("bw") * 8.0 / 1e6;
    assert!((bw - 100.0).abs() < 1.0, "estimate {bw:.1} Mbit/s");
}

#[test]
fn a_lone_flow_fills_the_link_and_keeps_the_queue_short() {
    let o = run(Box::new(Bbr::default()), Path::new(LINK, 20), 5);
    assert!(o.share > 0.97, "utilisation {:.3}", o.share);
    // The window has room for three additional quanta. These quanta, 24 packets or 2.9 ms, stay in the queue, as in
    // Linux.
    assert!(o.delay < 4.5, "mean queueing delay {:.2} ms", o.delay);
    assert!((o.min_rtt - 0.02).abs() < 3e-4);
    assert_eq!(o.lost_ever, 0);
}

#[test]
fn two_per_cent_of_random_loss_costs_little_more_than_itself() {
    let loss = Box::new(|seq: u64, _| seq.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 < (1u64 << 32) / 50);
    let mut sender = Sender::new(Box::new(Bbr::default()), Path { loss, ..Path::new(LINK, 20) });
    sender.run_for(Span::from_secs(10));
    let share = sender.delivered() as f64 * 12_000.0 / 10.0 / 1e8;
    assert!(share > 0.9, "goodput {share:.3} of the link");
}

/// With an RTT of 8 ms, ProbeRTT lasts longer than the bandwidth filter's window.
#[test]
fn probe_rtt_comes_after_ten_seconds_lasts_200_ms_and_keeps_the_bandwidth() {
    let mut sender = Sender::new(Box::new(Bbr::default()), Path { queue: 5000, ..Path::new(LINK, 5) });
    // The path becomes longer, so no RTT is as short as the old propagation time.
    sender.run_for(Span::from_secs(1));
    sender.path().rtt = Span::from_millis(8);
    sender.run_until(Time::from_secs_f64(20.0), |s| s.figure("phase") == 3.0);
    let entered = sender.now();
    assert!((10.0..11.2).contains(&entered.as_secs_f64()), "entered at {entered:?}");
    sender.run_until(Time::from_secs_f64(20.0), |s| s.window().cwnd > 4);
    let visit = sender.now().since(entered).as_secs_f64();
    assert!((0.2..0.25).contains(&visit), "stayed {visit:.3} s");
    let bw = sender.figure("bw") * 8.0 / 1e6;
    assert!((bw - 100.0).abs() < 2.0, "estimate after the visit {bw:.1} Mbit/s");
    assert!(sender.window().cwnd > 100);
    sender.run_for(Span::from_secs(1));
    assert!((sender.figure("min_rtt") - 0.008).abs() < 3e-4);
}

/// Returns the first time, ms, at which a condition holds. An ACK of four segments arrives every 20 ms (one RTT) for
/// 11 s.
pub(in super::super) fn first_after_equal_rtts<C: Controller>(
    cc: &mut C,
    window: &mut Window,
    is: impl Fn(&C) -> bool,
) -> Option<u64> {
    let rtt = Span::from_millis(20);
    (20..11_000).step_by(20).find(|&at: &u64| {
        let rate =
            RateSample { delivered: 4, interval: rtt, prior_delivered: at / 5, ..RateSample::default() };
        let now = Time::ZERO + Span::from_millis(at);
        cc.on_ack(&Ack { rtt: Some(rtt), rate, delivered: at / 5 + 4, ..ack_at(now) }, window);
        is(cc)
    })
}

/// Checks the change of Linux 5.10, "tcp: only postpone PROBE_RTT if RTT is < current min_rtt estimate".
#[test]
fn a_constant_rtt_does_not_postpone_probe_rtt() {
    let (mut bbr, mut window) = established(20);
    let entered =
        first_after_equal_rtts(&mut bbr, &mut window, |bbr| matches!(bbr.phase, Phase::ProbeRtt(_)));
    assert_eq!(entered, Some(10_020));
}

#[test]
fn the_next_probe_rtt_is_due_ten_seconds_after_the_last_one_ended() {
    let (mut bbr, mut window) = established(20);
    bbr.phase = Phase::ProbeRtt(ProbeRtt::default());
    let at =
        |ms| Ack { in_flight: 4, srtt: Span::from_millis(20), ..ack_at(Time::ZERO + Span::from_millis(ms)) };
    // Without RTT samples, only the end of ProbeRTT updates `min_rtt_at`.
    let mut delivered = 0;
    for ms in (20..=300).step_by(20) {
        delivered += 4;
        let sample = RateSample {
            delivered: 4,
            interval: Span::from_millis(20),
            prior_delivered: delivered - 4,
            ..RateSample::default()
        };
        bbr.on_ack(&Ack { delivered, rate: sample, ..at(ms) }, &mut window);
    }
    assert_eq!(bbr.phase.number(), 0, "the pipe was never full, so BBR returns to Startup");
    assert_eq!(bbr.model.min_rtt_at, Time::ZERO + Span::from_millis(240));
}

#[test]
fn a_faster_link_is_found_by_probing_and_a_slower_one_within_about_ten_rounds() {
    follows_the_link(Box::new(Bbr::default()), 3);
}

#[test]
fn a_policed_path_is_recognised_and_its_losses_avoided() {
    let mut sender = Sender::new(Box::new(Bbr::default()), Path { loss: policer(), ..Path::new(LINK, 20) });
    sender.run_until(Time::from_secs_f64(20.0), |s| s.figure("policed") == 1.0);
    assert_eq!(sender.figure("policed"), 1.0, "not recognised in 20 s");
    let bw = sender.figure("bw") * 8.0 / 1e6;
    assert!((17.0..23.0).contains(&bw), "policed rate {bw:.1} Mbit/s at {:?}", sender.now());
    // First, the data that was sent too fast must be delivered or lost.
    sender.run_for(Span::from_millis(100));
    let (lost, delivered) = (sender.lost(), sender.delivered());
    sender.run_for(Span::from_millis(500));
    let share = (sender.lost() - lost) as f64 / (sender.delivered() - delivered) as f64;
    assert!(share < 0.1, "loss at the policed rate {share:.3}");
}

#[test]
fn recovery_conserves_packets_for_a_round_and_restores_the_window() {
    let (mut bbr, mut window) = established(20);
    window.cwnd = 100;
    let event = Congestion {
        again: false,
        signal: Signal::Loss,
        now: Time::ZERO,
        in_flight: 60,
        srtt: Span::from_millis(20),
    };
    bbr.on_congestion(&event, &mut window);
    let at = |ms| ack_at(Time::ZERO + Span::from_millis(ms));
    // This bandwidth is so high that the window would grow if BBR did not conserve packets.
    let rate = RateSample { delivered: 200, interval: Span::from_millis(20), ..RateSample::default() };
    let ack =
        Ack { state: State::Recovery, acked: 2, lost: 3, in_flight: 60, delivered: 200, rate, ..at(20) };
    bbr.on_ack(&ack, &mut window);
    assert_eq!(window.cwnd, 62);
    bbr.on_ack(&Ack { state: State::Recovery, in_flight: 61, delivered: 201, ..at(21) }, &mut window);
    assert_eq!(window.cwnd, 62);
    bbr.on_ack(&Ack { state: State::Open, in_flight: 40, delivered: 260, ..at(60) }, &mut window);
    assert!(window.cwnd >= 100, "window after recovery {}", window.cwnd);
}

#[test]
fn after_a_timeout_the_window_grows_from_four_and_is_restored_at_the_end() {
    let (mut bbr, mut window) = established(20);
    window.cwnd = 100;
    let event = Congestion {
        again: false,
        signal: Signal::Timeout,
        now: Time::ZERO,
        in_flight: 60,
        srtt: Span::from_millis(20),
    };
    bbr.on_congestion(&event, &mut window);
    window.cwnd = 1;
    let at = |ms| ack_at(Time::ZERO + Span::from_millis(ms));
    bbr.on_ack(&Ack { state: State::Loss, delivered: 1, ..at(200) }, &mut window);
    assert_eq!(window.cwnd, 4);
    bbr.on_ack(&Ack { state: State::Open, delivered: 2, ..at(220) }, &mut window);
    assert!(window.cwnd >= 100, "window after the timeout {}", window.cwnd);
}

#[test]
fn before_the_pipe_is_full_a_low_sample_does_not_lower_the_rate() {
    let (mut bbr, mut window) = established(20);
    let first = window.pacing_rate;
    let rate = RateSample { delivered: 1, interval: Span::from_millis(40), ..RateSample::default() };
    bbr.on_ack(&Ack { rate, delivered: 1, ..ack_at(Time::ZERO + Span::from_millis(40)) }, &mut window);
    assert_eq!(window.pacing_rate, first);
}

#[test]
fn the_window_has_room_for_three_quanta_an_even_number_and_the_probe() {
    let params = Params::default();
    assert_eq!(quantise(167, 8, false, &params), 192);
    assert_eq!(quantise(168, 8, false, &params), 192);
    assert_eq!(quantise(168, 8, true, &params), 194);
}

#[test]
fn restarting_from_idle_paces_at_the_bandwidth() {
    let (mut bbr, mut window) = established(20);
    bbr.model.full_pipe = model_full();
    bbr.enter_probe_bw(Time::ZERO);
    let sample = RateSample { delivered: 100, interval: Span::from_millis(12), ..RateSample::default() };
    bbr.on_ack(&Ack { rate: sample, ..ack_at(Time::ZERO) }, &mut window);
    bbr.on_restart(Time::from_secs_f64(1.0), Span::from_secs(1), true, &mut window);
    assert_eq!(window.pacing_rate, Some(Rate::from_bits_per_sec(99_000_000)));
    assert!(bbr.idle_restart);
}

fn model_full() -> FullPipe {
    let mut pipe = FullPipe::default();
    (0..4).for_each(|_| pipe.on_round(LINK, Gain::ratio(5, 4), 3));
    assert!(pipe.has_been_full());
    pipe
}
