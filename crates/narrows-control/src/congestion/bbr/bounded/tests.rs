use super::phase::{Cruise, Down, Drain, ProbeRtt, Refill};
use super::*;
use crate::congestion::bbr::v1::Bbr;
use crate::congestion::bbr::v1::tests::{LINK, first_after_equal_rtts, follows_the_link, run};
use crate::congestion::bbr::{v2, v3};
use crate::congestion::harness::{Path, Sender, ack_at, connection, initial_window};
use crate::congestion::{RateSample, State};

/// Minimum share of the link that a flow must use. Pacing leaves 1 % unused. v3 halves its window for 0.2 s of every 5
/// s (ProbeRTT).
const UTILISED: f64 = 0.965;

fn both() -> [Bounded; 2] {
    [v2::bbr2(), v3::bbr3()]
}

/// Returns an ECN echo.
fn echo(now: Time) -> Congestion {
    Congestion { again: false, signal: Signal::Ecn, now, in_flight: 200, srtt: Span::from_millis(20) }
}

fn established(mut bbr: Bounded) -> (Bounded, Window) {
    let mut window = initial_window();
    let handshake = Connection { seed: 3, ..connection(Some(Span::from_millis(20)), None) };
    bbr.on_established(&handshake, &mut window);
    (bbr, window)
}

fn phases() -> [Phase; 7] {
    let (bbr, window) = established(v3::bbr3());
    let Bounded { mut shared, .. } = bbr;
    [
        Phase::Startup(Startup),
        Phase::Drain(Drain { since: 0 }),
        Phase::Down(Down),
        Phase::Cruise(Cruise),
        Phase::Refill(Refill),
        Up::enter(&mut shared, Time::ZERO, &window, LINK),
        Phase::ProbeRtt(ProbeRtt::default()),
    ]
}

/// Checks the gains of v2's module and of the draft, in units of 1/256.
#[test]
fn the_gains_match_the_table() {
    let v2 = [
        (2.88672, 2.88672),
        (0.34375, 2.88672),
        (0.75, 2.0),
        (1.0, 2.0),
        (1.0, 2.0),
        (1.25, 2.0),
        (1.0, 0.5),
    ];
    let v3 = [(2.77, 2.0), (0.5, 2.0), (0.9, 2.0), (1.0, 2.0), (1.0, 2.0), (1.25, 2.25), (1.0, 0.5)];
    for (mut bbr, table) in both().into_iter().zip([v2, v3]) {
        for (phase, (pacing, cwnd)) in phases().into_iter().zip(table) {
            bbr.phase = phase;
            let gains = bbr.gains();
            let near = |gain: Gain, value: f64| (gain.as_f64() - value).abs() < 1.0 / 256.0;
            assert!(near(gains.pacing, pacing) && near(gains.cwnd, cwnd), "{:?}: {gains:?}", bbr.phase);
        }
    }
}

/// The bounds apply as in the draft's table. Cruise and ProbeRTT also subtract the headroom.
#[test]
fn the_window_is_capped_as_in_the_table() {
    for mut bbr in both() {
        bbr.shared.bounds.longterm = 100;
        let caps = phases().map(|phase| {
            bbr.phase = phase;
            bbr.cap()
        });
        assert_eq!(caps, [UNBOUNDED, 100, 100, 85, 100, 100, 85]);
        bbr.shared.bounds.shortterm = 60;
        assert_eq!(bbr.cap(), 60);
        bbr.shared.bounds.shortterm = 1;
        assert_eq!(bbr.cap(), 4, "the cap is at least four segments");
    }
}

/// Checks rule BBR2-1.
#[test]
fn the_bandwidth_in_use_is_the_smaller_of_the_measured_one_and_the_short_term_bound() {
    for (mut bbr, _) in both().map(established) {
        bbr.shared.model.update_bw(LINK, false);
        assert_eq!(bbr.shared.bw(), LINK);
        bbr.shared.bounds.bw_shortterm = Rate::from_bits_per_sec(70_000_000);
        assert_eq!(bbr.shared.bw(), Rate::from_bits_per_sec(70_000_000));
    }
}

/// BBR3-1: the quantum of v3 is 1 ms of the pacing rate, but at least two segments and at most 64 KB.
#[test]
fn a_send_quantum_is_a_millisecond_of_the_pacing_rate_within_bounds() {
    let (bbr, mut window) = established(v3::bbr3());
    let mut room = |mbit: u64| {
        window.pacing_rate = Some(Rate::from_bits_per_sec(mbit * 1_000_000));
        bbr.shared.quantise(0, &window)
    };
    assert_eq!([room(1), room(100), room(10_000)], [6, 3 * 8, 3 * 45]);
}

fn loss(tx_in_flight: u32, lost: u32) -> Lost {
    Lost { now: Time::from_secs_f64(1.0), delivered: 5000, tx_in_flight, lost, app_limited: false }
}

/// Puts the controller into Up, with a bandwidth-delay product of 167 segments.
fn probing_up(bbr: Bounded) -> (Bounded, Window) {
    let (mut bbr, mut window) = established(bbr);
    bbr.shared.model.update_bw(LINK, false);
    bbr.shared.model.full_pipe.reach();
    window.cwnd = 300;
    bbr.phase = Refill::enter(&mut bbr.shared);
    bbr.phase = Up::enter(&mut bbr.shared, Time::ZERO, &window, LINK);
    (bbr, window)
}

/// Checks rules BBR2-3 and BBR3-6.
#[test]
fn a_probe_that_loses_more_than_two_per_cent_sets_the_bound_there_and_ends() {
    for (mut bbr, window) in both().map(probing_up) {
        bbr.on_lost(&loss(200, 4), &window);
        assert!(matches!(bbr.phase, Phase::Up(_)), "two per cent are accepted");
        assert_eq!(bbr.shared.bounds.longterm, UNBOUNDED);
        bbr.on_lost(&loss(200, 5), &window);
        assert_eq!(bbr.shared.bounds.longterm, 199, "{}", bbr.name());
        assert!(matches!(bbr.phase, Phase::Down(_)));
        assert!(bbr.shared.cycle.too_high);
        bbr.on_lost(&loss(120, 50), &window);
        assert_eq!(bbr.shared.bounds.longterm, 199);
    }
}

#[test]
fn a_probe_never_cuts_below_70_per_cent_of_the_target() {
    for (mut bbr, window) in both().map(probing_up) {
        bbr.on_lost(&loss(50, 30), &window);
        // 0.7 * 167 = 116.9.
        assert_eq!(bbr.shared.bounds.longterm, 116);
    }
}

#[test]
fn a_probe_limited_by_the_application_ends_without_changing_the_bound() {
    for (mut bbr, window) in both().map(probing_up) {
        bbr.on_lost(&Lost { app_limited: true, ..loss(200, 5) }, &window);
        assert_eq!(bbr.shared.bounds.longterm, UNBOUNDED);
        assert!(matches!(bbr.phase, Phase::Down(_)));
    }
}

/// Checks section 5.5.11.2 of the draft. v2's module restores only the bounds.
#[test]
fn a_probe_ended_by_spurious_losses_resumes_in_v3_and_both_restore_the_bounds() {
    for ((mut bbr, mut window), goes_on) in both().map(probing_up).into_iter().zip([false, true]) {
        bbr.shared.bounds.longterm = 250;
        bbr.on_lost(&loss(200, 5), &window);
        assert_eq!(bbr.shared.bounds.longterm, 199);
        assert!(matches!(bbr.phase, Phase::Down(_)));
        bbr.on_undo(Time::from_secs_f64(1.1), &mut window);
        assert_eq!(bbr.shared.bounds.longterm, 250);
        let resumes = matches!(bbr.phase, Phase::Up(_));
        let is_down = matches!(bbr.phase, Phase::Down(_));
        assert_eq!((resumes, is_down), (goes_on, !goes_on), "{}: {:?}", bbr.name(), bbr.phase);
        assert_eq!(bbr.shared.cycle.sampling, goes_on);
    }
}

/// BBR returns to the state in which the episode began. It does not matter what ended that state.
#[test]
fn a_probe_that_ended_by_itself_during_spurious_losses_resumes_in_v3() {
    let (mut bbr, mut window) = probing_up(v3::bbr3());
    bbr.on_lost(&loss(200, 1), &window);
    bbr.phase = Down::enter(&mut bbr.shared, Time::ZERO);
    bbr.on_undo(Time::from_secs_f64(1.1), &mut window);
    assert!(matches!(bbr.phase, Phase::Up(_)));
}

fn in_state(state: State) -> Ack {
    let rate = RateSample { delivered: 1, interval: Span::from_millis(20), ..RateSample::default() };
    Ack { rate, state, delivered: 5000, in_flight: 200, ..ack_at(Time::from_secs_f64(1.0)) }
}

#[test]
fn an_undo_restores_the_bounds_of_its_own_episode_only() {
    for (mut bbr, mut window) in both().map(probing_up) {
        // An episode of real losses ends the probe at 199 segments.
        bbr.shared.bounds.longterm = 250;
        bbr.on_lost(&loss(200, 5), &window);
        bbr.on_ack(&in_state(State::Recovery), &mut window);
        bbr.on_recovered(Time::from_secs_f64(1.1), &mut window);
        bbr.on_ack(&in_state(State::Open), &mut window);
        // Later, an echo and spurious losses occur in the same round.
        bbr.shared.bounds.forget_round();
        let now = Time::from_secs_f64(1.5);
        bbr.on_congestion(&echo(now), &mut window);
        bbr.shared.bounds.shortterm = 120;
        bbr.on_lost(&loss(200, 1), &window);
        bbr.shared.bounds.shortterm = 90;
        bbr.on_lost(&loss(200, 2), &window);
        bbr.on_undo(Time::from_secs_f64(1.6), &mut window);
        assert_eq!((bbr.shared.bounds.longterm, bbr.shared.bounds.shortterm), (199, 120), "{}", bbr.name());
        assert!(matches!(bbr.phase, Phase::Down(_) | Phase::Cruise(_)), "{:?}", bbr.phase);
    }
}

/// BBR3-10: an echo counts as a loss in v3. v2's reaction to ECN is off by default.
#[test]
fn an_ecn_echo_outside_of_a_probe_counts_as_a_loss_in_v3_only() {
    for (bbr, bound) in both().into_iter().zip([f64::NAN, 210.0]) {
        let (mut bbr, mut window) = probing_up(bbr);
        bbr.phase = Down::enter(&mut bbr.shared, Time::ZERO);
        let now = Time::from_secs_f64(0.1);
        bbr.on_congestion(&echo(now), &mut window);
        let rate = RateSample { delivered: 20, interval: Span::from_millis(20), ..RateSample::default() };
        bbr.on_ack(&Ack { rate, in_flight: 200, ..ack_at(now) }, &mut window);
        let shown = bbr.shared.bounds.shortterm;
        assert_eq!(shown != UNBOUNDED, bound.is_finite(), "{}: {shown}", bbr.name());
        if bound.is_finite() {
            assert_eq!(f64::from(shown), bound);
        }
    }
}

#[test]
fn the_window_before_a_timeout_is_kept_as_a_bound_and_restored() {
    for (mut bbr, mut window) in both().map(probing_up) {
        bbr.phase = Down::enter(&mut bbr.shared, Time::ZERO);
        let event = Congestion {
            again: false,
            signal: Signal::Timeout,
            now: Time::from_secs_f64(0.5),
            in_flight: 0,
            srtt: Span::from_millis(20),
        };
        bbr.on_congestion(&event, &mut window);
        window.cwnd = 1;
        assert_eq!(bbr.shared.bounds.shortterm, 300);
        bbr.on_recovered(Time::from_secs_f64(0.6), &mut window);
        assert_eq!(window.cwnd, 300);
    }
}

/// BBR3-4: v2 drains until the queue is empty, and v3 drains for at most three rounds.
#[test]
fn drain_ends_with_the_queue_and_in_v3_after_three_rounds_at_the_latest() {
    for (bbr, expected) in both().into_iter().zip([None, Some(4)]) {
        let (mut bbr, mut window) = established(bbr);
        bbr.shared.model.update_bw(LINK, false);
        bbr.shared.model.full_pipe.reach();
        let (mut delivered, mut left) = (0, None);
        for round in 0..50 {
            let now = Time::ZERO + Span::from_millis(20 * round);
            let prior_delivered = delivered;
            delivered += 1;
            let rate = RateSample {
                delivered: 1,
                interval: Span::from_millis(20),
                prior_delivered,
                ..RateSample::default()
            };
            // There are always more than 167 segments in flight.
            bbr.on_ack(&Ack { rate, delivered, in_flight: 500, ..ack_at(now) }, &mut window);
            if left.is_none() && !matches!(bbr.phase, Phase::Drain(_)) {
                left = Some(round);
            }
        }
        assert_eq!(left, expected, "{}", bbr.name());
    }
}

/// Returns whether a round of recovery ends Startup, and the long-term bound after the round. In this round of 100 ACKs
/// and 200 segments, `reports` ACKs reported losses and `lost` segments were lost.
fn startup_ends(bbr: Bounded, reports: u64, lost: u32, state: State) -> (bool, u32) {
    let (mut bbr, mut window) = established(bbr);
    window.cwnd = 200;
    bbr.on_lost(&loss(200, 1), &window);
    for n in 0..=100 {
        let rate = RateSample {
            delivered: 180,
            interval: Span::from_millis(20),
            // The last ACK is for a segment that was sent after the first loss, so this ACK ends the loss round.
            prior_delivered: 4900 + n,
            tx_in_flight: 200,
            lost,
            ..RateSample::default()
        };
        let now = Time::ZERO + Span::from_millis(20);
        let ack = Ack { rate, lost: u32::from(n < reports), delivered: 5000 + n, state, ..ack_at(now) };
        bbr.on_ack(&ack, &mut window);
    }
    (bbr.shared.model.full_pipe.has_been_full(), bbr.shared.bounds.longterm)
}

/// Checks BBR3-3. v2 needs eight ACKs that report losses, and v3 needs six.
#[test]
fn a_round_of_recovery_with_many_losses_in_many_places_ends_startup() {
    for (build, needed) in [(v2::bbr2 as fn() -> Bounded, 8), (v3::bbr3, 6)] {
        let ends = |reports, lost, state| startup_ends(build(), reports, lost, state).0;
        assert!(ends(needed, 20, State::Recovery));
        assert!(!ends(needed - 1, 20, State::Recovery), "too few ACKs reported losses");
        assert!(!ends(needed, 4, State::Recovery), "two per cent of losses are not excessive");
        assert!(!ends(needed, 20, State::Disorder), "the connection is not in recovery");
    }
    // 180 segments in 20 ms are a bandwidth-delay product of 180. The volume delivered in the round is 180 as well.
    assert_eq!(startup_ends(v3::bbr3(), 8, 20, State::Recovery).1, 180);
}

// Closed loops.

/// Returns a function that drops packets at random, but reproducibly.
fn random_loss(share: f64) -> Box<dyn FnMut(u64, Time) -> bool> {
    Box::new(move |seq, _| {
        let hash = (seq + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((hash ^ (hash >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 48) < (share * 65536.0) as u64
    })
}

fn boxed() -> [Box<dyn Controller>; 2] {
    both().map(|bbr| Box::new(bbr) as Box<dyn Controller>)
}

fn v1() -> Box<dyn Controller> {
    Box::new(Bbr::default())
}

#[test]
fn a_lone_flow_fills_the_link_with_less_of_a_queue_than_v1() {
    let v1 = run(v1(), Path::new(LINK, 20), 20);
    for bbr in boxed() {
        let name = bbr.name();
        let o = run(bbr, Path::new(LINK, 20), 20);
        assert!(o.share > UTILISED, "{name}: utilisation {:.3}", o.share);
        assert!(o.delay < v1.delay, "{name}: {:.2} ms, v1 {:.2} ms", o.delay, v1.delay);
        assert_eq!(o.lost, 0.0, "{name}");
    }
}

/// The bounds prevent losses. v1 has no bounds and keeps two bandwidth-delay products in flight at any loss rate.
#[test]
fn where_the_queue_holds_half_a_bandwidth_delay_product_hardly_anything_is_lost() {
    let path = || Path { queue: 83, ..Path::new(LINK, 20) };
    let v1 = run(v1(), path(), 20);
    for bbr in boxed() {
        let name = bbr.name();
        let o = run(bbr, path(), 20);
        assert!(o.share > UTILISED, "{name}: utilisation {:.3}", o.share);
        assert!(o.lost < 0.5 && o.lost < v1.lost / 10.0, "{name}: {:.2} %, v1 {:.2} %", o.lost, v1.lost);
    }
}

#[test]
fn one_per_cent_of_random_loss_is_tolerated_and_five_are_not() {
    for (one, five) in boxed().into_iter().zip(boxed()) {
        let name = one.name();
        let path = |share| Path { loss: random_loss(share), ..Path::new(LINK, 20) };
        let (one, five) = (run(one, path(0.01), 20).share, run(five, path(0.05), 20).share);
        assert!(one > 0.75, "{name}: {one:.3} of the link at 1 %");
        assert!(five < 0.25, "{name}: {five:.3} of the link at 5 %");
    }
}

#[test]
fn a_faster_link_is_found_and_a_slower_one_is_accepted_after_two_cycles() {
    boxed().into_iter().for_each(|bbr| follows_the_link(bbr, 10));
}

/// Checks BBR3-9 and section A.10 of the draft.
#[test]
fn probe_rtt_comes_after_five_seconds_with_half_a_bandwidth_delay_product() {
    for bbr in boxed() {
        let name = bbr.name();
        let mut sender = Sender::new(bbr, Path { queue: 5000, ..Path::new(LINK, 20) });
        sender.run_for(Span::from_secs(1));
        // The path becomes longer, so no RTT is as short as the old propagation time.
        sender.path().rtt = Span::from_millis(32);
        sender.run_until(Time::from_secs_f64(20.0), |s| s.figure("phase") == 3.0);
        let entered = sender.now();
        assert!((5.0..6.3).contains(&entered.as_secs_f64()), "{name}: entered at {entered:?}");
        // The estimate is still the old 20 ms.
        assert!((70..=84).contains(&sender.window().cwnd), "{name}: {} segments", sender.window().cwnd);
        sender.run_until(Time::from_secs_f64(20.0), |s| s.figure("phase") != 3.0);
        let visit = sender.now().since(entered).as_secs_f64();
        assert!((0.2..0.3).contains(&visit), "{name}: stayed {visit:.3} s");
        assert_eq!(sender.figure("step"), 2.0, "{name}: straight to Cruise");
        let bw = sender.figure("bw") * 8.0 / 1e6;
        assert!((bw - 100.0).abs() < 2.0, "{name}: {bw:.1} Mbit/s");
        sender.run_for(Span::from_secs(12));
        assert!((sender.figure("min_rtt") - 0.032).abs() < 3e-4, "{name}");
    }
}

/// v3 has the change of Linux's commit "tcp: only postpone PROBE_RTT if RTT is < current min_rtt estimate". The module
/// of v2 is older than this commit.
#[test]
fn a_constant_rtt_postpones_probe_rtt_in_v2_only() {
    for ((mut bbr, mut window), expected) in both().map(established).into_iter().zip([None, Some(5020)]) {
        let entered =
            first_after_equal_rtts(&mut bbr, &mut window, |bbr| matches!(bbr.phase, Phase::ProbeRtt(_)));
        assert_eq!(entered, expected, "{}", bbr.name());
    }
}

#[test]
fn restarting_from_idle_paces_at_the_bandwidth_and_needs_no_probe_rtt() {
    for (mut bbr, mut window) in both().map(probing_up) {
        let later = Time::from_secs_f64(6.0);
        bbr.on_restart(later, Span::from_secs(6), true, &mut window);
        assert_eq!(window.pacing_rate, Some(Rate::from_bits_per_sec(99_000_000)));
        let rtt = Some(Span::from_millis(25));
        let rate = RateSample { delivered: 1, interval: Span::from_millis(25), ..RateSample::default() };
        bbr.on_ack(&Ack { rtt, rate, ..ack_at(later + Span::from_millis(25)) }, &mut window);
        assert!(bbr.phase.is_probe_bw(), "the idle time replaces ProbeRTT");
    }
}
