use super::*;
use crate::catalogue;
use crate::congestion::Controller;
use crate::congestion::bbr::v1::Bbr;
use crate::congestion::bbr::v1::params::Params as BbrParams;
use crate::congestion::bbr::v1::probe_bw::ProbeBw;
use crate::congestion::bbr::v1::tests::{LINK, policer, run};
use crate::congestion::bbr::v1::view::View;
use crate::congestion::harness::{Path, Sender, ack_at, connection};
use crate::congestion::{Connection, RateSample, Window};

const VARIANTS: [Variant; 3] = [Variant::A, Variant::B, Variant::C];
const NAMES: [&str; 3] = ["bbr-a", "bbr-b", "bbr-c"];

fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// Returns the model of a path of 100 Mbit/s and 20 ms, with a bandwidth-delay product of 167 segments.
fn model() -> Model {
    let params = BbrParams::default();
    let mut model = Model::new(Time::ZERO, Some(Span::from_millis(20)), 1500, params.initial_cwnd);
    let rate = RateSample { delivered: 100, interval: Span::from_millis(12), ..RateSample::default() };
    model.update_bw(&Ack { rate, ..ack_at(Time::ZERO) }, params.bw_rounds);
    model
}

/// Passes a round with this RTT that begins at `at`. The start of the next round completes this round.
fn round(cycle: &mut GainModel, at: u64, rtt_millis: u64) {
    let mut model = model();
    model.round_start = true;
    cycle.on_ack(&Ack { rtt: Some(Span::from_millis(rtt_millis)), ..ack_at(ms(at)) }, &model);
}

fn rounds(cycle: &mut GainModel, rounds: &[(u64, u64)]) {
    rounds.iter().for_each(|&(at, rtt)| round(cycle, at, rtt));
}

fn lose(cycle: &mut GainModel) {
    cycle.on_ack(&Ack { lost: 1, ..ack_at(Time::ZERO) }, &model());
}

/// Checks test vector TV-G3.
#[test]
fn the_gains_use_the_last_rounds_mean_over_the_largest_rtt() {
    for (p, omega) in [(10, 512), (50, 717)] {
        for variant in VARIANTS {
            let mut cycle = GainModel::new("x", variant, Params::default());
            // Three rounds with queues of 50, 20 and 0 ms. The last round is not complete.
            for (n, queue) in [50, 20, 0].into_iter().enumerate() {
                round(&mut cycle, 100 * n as u64, p + queue);
            }
            assert_eq!(cycle.gain(PROBE), gain_model::up(variant, omega));
            assert_eq!(cycle.gain(DRAIN), gain_model::down(variant, omega));
            assert_eq!(cycle.gain(2), Gain::ONE);
        }
    }
}

#[test]
fn without_a_completed_round_omega_is_one() {
    let mut cycle = GainModel::new("x", Variant::A, Params::default());
    assert_eq!(cycle.gain(PROBE), Gain::ONE);
    round(&mut cycle, 0, 20);
    assert_eq!(cycle.gain(DRAIN), gain_model::down(Variant::A, 1024));
}

/// Checks rule GAIN-4.
#[test]
fn a_gain_is_kept_until_its_entry_ends() {
    let mut cycle = GainModel::new("x", Variant::B, Params::default());
    rounds(&mut cycle, &[(0, 100), (100, 50), (200, 50)]);
    // With the random number 0, the cycle begins with its first entry.
    let mut probe = ProbeBw::enter(ms(200), &mut cycle, 0);
    assert_eq!((probe.index(), probe.pacing_gain(false)), (PROBE, gain_model::up(Variant::B, 512)));
    rounds(&mut cycle, &[(210, 90), (215, 90)]);
    step(&mut probe, &mut cycle, 216, 1, 0);
    assert_eq!((probe.index(), probe.pacing_gain(false)), (PROBE, gain_model::up(Variant::B, 512)));
    // A loss ends the probe. The draining entry samples omega again.
    step(&mut probe, &mut cycle, 221, 1, 1);
    assert_eq!((probe.index(), probe.pacing_gain(false)), (DRAIN, gain_model::down(Variant::B, 922)));
}

/// Passes an ACK with this many segments in flight.
fn step(probe: &mut ProbeBw, cycle: &mut GainModel, at: u64, in_flight: u32, lost: u32) {
    let (model, params) = (model(), BbrParams::default());
    let ack = Ack { prior_in_flight: in_flight, lost, ..ack_at(ms(at)) };
    cycle.on_ack(&ack, &model);
    let view = View { ack: &ack, model: &model, params: &params, quantum: 2, policed: false };
    probe.on_ack(&view, cycle);
}

/// GAIN-6: with omega 1 the gain is 1, so the data in flight never reaches the end condition.
#[test]
fn a_probe_with_gain_one_ends_like_a_cruise() {
    let mut cycle = GainModel::new("x", Variant::C, Params::default());
    rounds(&mut cycle, &[(0, 100), (100, 100)]);
    let mut probe = ProbeBw::enter(ms(100), &mut cycle, 0);
    assert_eq!((probe.index(), probe.pacing_gain(false)), (PROBE, Gain::ONE));
    step(&mut probe, &mut cycle, 120, 500, 0);
    assert_eq!(probe.index(), PROBE);
    step(&mut probe, &mut cycle, 121, 1, 0);
    assert_eq!(probe.index(), DRAIN);
}

#[test]
fn a_probe_ends_when_its_own_gain_times_the_bdp_is_in_flight() {
    let mut cycle = GainModel::new("x", Variant::A, Params::default());
    rounds(&mut cycle, &[(0, 100), (100, 60), (200, 60)]);
    let level = Gain::ratio(320, 197);
    assert!(gain_model::up(Variant::A, 614) < level);
    let mut probe = ProbeBw::enter(ms(200), &mut cycle, 0);
    // 1.25 times 167 segments, three quanta of 2 segments, 1 segment to round up to an even number, and 2 segments for
    // the probe.
    let full = 209 + 6 + 1 + 2;
    step(&mut probe, &mut cycle, 230, full - 2, 0);
    assert_eq!(probe.index(), PROBE);
    step(&mut probe, &mut cycle, 230, full, 0);
    assert_eq!(probe.index(), DRAIN);
}

#[test]
fn literally_a_probe_ends_at_1_25_bdp_and_after_two_rtts_at_the_latest() {
    let start = |cycle: &mut GainModel| {
        rounds(cycle, &[(0, 100), (100, 20), (200, 20)]);
        ProbeBw::enter(ms(200), cycle, 0)
    };
    let mut cycle = GainModel::new("x", Variant::A, Params { exit_125: true, ..Params::default() });
    let mut probe = start(&mut cycle);
    assert!(probe.pacing_gain(false) > Gain::ratio(3, 2));
    step(&mut probe, &mut cycle, 201, 218, 0);
    assert_eq!(probe.index(), DRAIN);
    let mut probe = start(&mut cycle);
    step(&mut probe, &mut cycle, 201, 10, 1);
    assert_eq!(probe.index(), DRAIN);
    let mut probe = start(&mut cycle);
    step(&mut probe, &mut cycle, 240, 10, 0);
    assert_eq!(probe.index(), PROBE);
    step(&mut probe, &mut cycle, 241, 10, 0);
    assert_eq!(probe.index(), DRAIN);
}

#[test]
fn literally_only_a_loss_while_probing_leads_to_draining() {
    let params = Params { down_needs_loss: true, ..Params::default() };
    let mut cycle = GainModel::new("x", Variant::B, params);
    rounds(&mut cycle, &[(0, 100), (100, 60), (200, 60)]);
    cycle.gain(PROBE);
    assert_eq!(cycle.gain(DRAIN), Gain::ONE);
    // A loss in a cruising entry does not count as a loss of the probe.
    cycle.gain(2);
    lose(&mut cycle);
    cycle.gain(PROBE);
    assert_eq!(cycle.gain(DRAIN), Gain::ONE);
    cycle.gain(PROBE);
    lose(&mut cycle);
    assert_eq!(cycle.gain(DRAIN), gain_model::down(Variant::B, 614));
}

/// Checks rule GAIN-5.
#[test]
fn a_spike_counts_forever_or_for_the_length_of_the_window() {
    for (window, omega) in [(None, 102), (Some(Span::from_secs(60)), 1024)] {
        let params = Params { tmax_window: window, ..Params::default() };
        let mut cycle = GainModel::new("x", Variant::C, params);
        round(&mut cycle, 0, 1000);
        for second in 1..=61 {
            round(&mut cycle, 1000 * second, 100);
        }
        assert_eq!(cycle.gain(PROBE), gain_model::up(Variant::C, omega), "{window:?}");
    }
}

/// GAIN-6: on a policed path BBR-22 takes precedence.
#[test]
fn on_a_policed_path_the_gain_is_one_for_any_omega() {
    for name in NAMES {
        let controller = catalogue::build(name).expect(name);
        let mut sender = Sender::new(controller, Path { loss: policer(), ..Path::new(LINK, 20) });
        sender.run_until(Time::from_secs_f64(60.0), |s| s.figure("policed") == 1.0);
        assert_eq!(sender.figure("policed"), 1.0, "{name}: not recognised in 60 s");
        let end = sender.now() + Span::from_millis(300);
        sender.run_until(end, |s| s.figure("pacing_gain") != 1.0 && s.figure("phase") == 2.0);
        assert_eq!(sender.figure("pacing_gain"), 1.0, "{name}");
    }
}

#[test]
fn a_lone_flow_fills_the_link() {
    for name in NAMES {
        let o = run(catalogue::build(name).expect(name), Path::new(LINK, 20), 5);
        assert!(o.share > 0.97, "{name}: utilisation {:.3}", o.share);
        // GAIN-7: at a low omega the mean gain exceeds 1, so a queue persists. With BBR-A, the queue grows until the
        // window of two BDP is full.
        let most = if name == "bbr-a" { 21.0 } else { 12.0 };
        assert!((5.0..most).contains(&o.delay), "{name}: mean queueing delay {:.2} ms", o.delay);
        assert!((o.min_rtt - 0.02).abs() < 3e-4);
    }
}

/// Checks test vector TV-B5.
#[test]
fn the_cycle_begins_with_any_entry_but_the_draining_one() {
    let mut cycle = GainModel::new("x", Variant::C, Params::default());
    let firsts = |n: u32| ProbeBw::enter(Time::ZERO, &mut cycle, n << 27).index();
    let mut firsts: Vec<usize> = (0..32).map(firsts).collect();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts, [0, 2, 3, 4, 5, 6, 7]);
}

/// TV-B6: if the RTT of the path grows steadily, ProbeRTT takes 0.2 s of every 10.2 s.
#[test]
fn probe_rtt_costs_a_fiftieth() {
    for name in ["bbq", "bbr-a", "bbr-b", "bbr-c"] {
        let mut sender = Sender::new(catalogue::build(name).expect(name), Path::new(LINK, 20));
        let (mut inside, mut last) = (0.0, sender.now());
        for second in 1..=53 {
            sender.run_until(Time::from_secs_f64(f64::from(second)), |s| {
                inside += if s.figure("phase") == 3.0 { s.now().since(last).as_secs_f64() } else { 0.0 };
                last = s.now();
                false
            });
            sender.path().rtt += Span::from_millis(1);
        }
        let share = inside / 53.0;
        assert!((0.018..0.028).contains(&share), "{name}: {share:.4} of the time in ProbeRTT");
    }
}

#[test]
fn the_name_matches_the_catalogue() {
    let mut bbr = Bbr::with_cycle(GainModel::new("bbr-c", Variant::C, Params::default()));
    let mut window = Window { cwnd: 10, ssthresh: 7, pacing_rate: None };
    let handshake = Connection { seed: 3, ..connection(None, None) };
    bbr.on_established(&handshake, &mut window);
    assert_eq!(bbr.name(), "bbr-c");
}
