use super::*;
use crate::congestion::bbr::v1::Bbr;
use crate::congestion::bbr::v1::params::Params as BbrParams;
use crate::congestion::bbr::v1::tests::{LINK, run};
use crate::congestion::harness::{Path, ack_at};
use crate::units::Time;

/// Returns a cycle after complete rounds with these mean RTTs on a path with the propagation time `min_rtt`. All
/// times are in µs.
fn after(min_rtt: u64, rounds: &[u64]) -> Bbq {
    let params = BbrParams::default();
    let mut model = Model::new(Time::ZERO, Some(Span::from_micros(min_rtt)), 1500, params.initial_cwnd);
    model.round_start = true;
    let mut cycle = Bbq::default();
    // A round is complete when the next round begins.
    for &rtt in rounds.iter().chain(rounds.last()) {
        cycle.on_ack(&Ack { rtt: Some(Span::from_micros(rtt)), ..ack_at(Time::ZERO) }, &model);
    }
    cycle
}

/// Returns the length of the probe in µs, and its end condition.
fn probe(cycle: &mut Bbq, min_rtt: u64) -> (u64, ProbeEnd) {
    assert_eq!(cycle.gain(PROBE), Gain::ratio(5, 4));
    (cycle.length(PROBE, Span::from_micros(min_rtt)).as_micros(), cycle.probe_end())
}

/// Checks rule BBQ-2.
#[test]
fn a_probe_lasts_3_ms_while_a_queue_persists_and_a_round_trip_or_more_otherwise() {
    assert_eq!(probe(&mut after(50_000, &[60_000; 2]), 50_000), (3_000, ProbeEnd::Time));
    assert_eq!(probe(&mut after(10_000, &[60_000; 2]), 10_000), (3_000, ProbeEnd::Time));
    assert_eq!(probe(&mut after(2_000, &[60_000; 2]), 2_000), (2_000, ProbeEnd::Time));
    assert_eq!(probe(&mut after(50_000, &[50_000; 2]), 50_000), (50_000, ProbeEnd::Both));
    let mut cycle = after(50_000, &[60_000; 2]);
    probe(&mut cycle, 50_000);
    assert_eq!(cycle.gain(1), Gain::ratio(3, 4));
    assert_eq!(cycle.length(1, Span::from_millis(50)), Span::from_millis(50));
}

/// Checks rule BBQ-3.
#[test]
fn a_queue_persists_after_two_consecutive_rounds_above_1_ms_and_5_per_cent() {
    let stands = |min_rtt, rounds: &[u64]| after(min_rtt, rounds).has_standing_queue();
    assert!(!stands(50_000, &[60_000]));
    assert!(stands(50_000, &[60_000, 60_000]));
    assert!(!stands(50_000, &[60_000, 50_000, 60_000]));
    assert!(!stands(50_000, &[52_500; 4]));
    assert!(stands(50_000, &[52_501; 4]));
    assert!(!stands(10_000, &[11_000; 4]));
    assert!(stands(10_000, &[11_001; 4]));
}

/// A test of the eBPF program uses the same test vectors.
#[test]
fn probes_are_those_of_the_vectors() {
    let vectors = include_str!("../../../../../tests/vectors/bbq-probes.csv");
    let rows = vectors.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let mut count = 0;
    for row in rows {
        let row: Vec<u64> = row.split(',').map(|field| field.parse().unwrap_or(u64::MAX)).collect();
        let &[min_rtt, ref rounds @ .., is_short, length] = &row[..] else { panic!("{row:?}") };
        let rounds: Vec<u64> = rounds.iter().copied().filter(|rtt| *rtt > 0).collect();
        let end = if is_short == 1 { ProbeEnd::Time } else { ProbeEnd::Both };
        assert_eq!(probe(&mut after(min_rtt, &rounds), min_rtt), (length, end), "{row:?}");
        count += 1;
    }
    assert_eq!(count, 21);
}

/// The length does not change if the queue drains during the probe.
#[test]
fn a_short_probe_stays_short() {
    let mut cycle = after(50_000, &[60_000; 2]);
    cycle.gain(PROBE);
    cycle.queued_rounds = 0;
    assert_eq!(cycle.probe_end(), ProbeEnd::Time);
    assert_eq!(probe(&mut cycle, 50_000), (50_000, ProbeEnd::Both));
}

#[test]
fn a_lone_flow_fills_the_link_as_bbr_does() {
    let o = run(Box::new(Bbr::with_cycle(Bbq::default())), Path::new(LINK, 20), 5);
    assert!(o.share > 0.97, "utilisation {:.3}", o.share);
    assert!(o.delay < 4.5, "mean queueing delay {:.2} ms", o.delay);
}
