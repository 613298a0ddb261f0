//! Compares the estimated number of flows with the true number, for random flows.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::*;
use crate::congestion::network::bdr::designator::Designator;
use crate::units::{Bytes, Rate, Span, Time};

const PACKET: Bytes = Bytes::new(1000);

/// Draws a uniform number in (0, 1].
fn uniform(rng: &mut Pcg32) -> f64 {
    (f64::from(rng.next_u32()) + 1.0) / (f64::from(u32::MAX) + 1.0)
}

/// Draws one of the paper's flow sizes: Pareto with mean 12.5 packets and shape 1.8.
fn pareto(rng: &mut Pcg32) -> f64 {
    12.5 * (0.8 / 1.8) * libm::pow(uniform(rng), -1.0 / 1.8)
}

/// A designated packet at the router, with its report.
struct Event {
    at: Time,
    report: Report,
}

/// Returns the events of flows that arrive as a Poisson process, `lambda` per second, for `secs` seconds. `rtts` draws
/// the number of windows that a flow sends after its handshake. Each window takes 0.1 s.
fn poisson(seed: u64, lambda: f64, secs: f64, rtts: impl Fn(&mut Pcg32) -> u32) -> Vec<Event> {
    let mut rng = Pcg32::seed_from_u64(seed);
    let (mut start, mut events) = (0.0, Vec::new());
    while start < secs {
        start -= libm::log(uniform(&mut rng)) / lambda;
        let mut now = Time::from_secs_f64(start);
        let mut sender = Designator::default();
        events.push(Event { at: now, report: sender.connect(now, PACKET) });
        sender.on_established();
        for n in 1..=u64::from(rtts(&mut rng)) {
            now += Span::from_millis(100);
            let report = sender.on_send(now, n, Span::from_secs(1), PACKET);
            events.extend(report.map(|report| Event { at: now, report }));
            sender.on_ack(now, true, n + 1);
        }
        now += Span::from_millis(100);
        events.extend(sender.finish(now, PACKET).map(|report| Event { at: now, report }));
    }
    events.sort_by_key(|event| event.at);
    events
}

/// Statistics from 5 s on: mean and standard deviation of the estimate, mean of the true number, and mean relative
/// error.
struct Outcome {
    mean: f64,
    sd: f64,
    truth: f64,
    error: f64,
}

fn run(params: Params, events: &[Event], secs: f64) -> Outcome {
    let mut law = Law::new(params, Rate::from_bits_per_sec(1_000_000_000), Time::ZERO);
    let mut events = events.iter().peekable();
    let (mut active, mut samples) = (0.0, Vec::new());
    // The time between reports is not a multiple of the time between samples, so the samples are not synchronised with
    // the flows.
    for tick in 1.. {
        let now = Time::from_secs_f64(f64::from(tick) * 0.0137);
        while let Some(event) = events.next_if(|event| event.at <= now) {
            active += f64::from(u8::from(event.report.syn)) - f64::from(u8::from(event.report.fin));
            law.on_report(event.at, &event.report, Bytes::ZERO, None);
        }
        if now >= law.next() {
            law.on_timer(now, Rate::from_bits_per_sec(1_000_000_000), Bytes::ZERO, None);
        }
        if now.as_secs_f64() > secs {
            break;
        }
        if now.as_secs_f64() > 5.0 {
            samples.push((law.flows(now), active));
        }
    }
    let n = samples.len() as f64;
    let mean = samples.iter().map(|s| s.0).sum::<f64>() / n;
    let sd = libm::sqrt(samples.iter().map(|s| (s.0 - mean) * (s.0 - mean)).sum::<f64>() / n);
    let truth = samples.iter().map(|s| s.1).sum::<f64>() / n;
    let error = samples.iter().map(|s| (s.0 / s.1 - 1.0).abs()).sum::<f64>() / n;
    Outcome { mean, sd, truth, error }
}

/// BDR-21: if reports are a Poisson process, the standard deviation is sqrt(N T_rep / (2 tau)). This is 6.3 for N = 400
/// and 1.0 for N = 10. In this test, each flow sends a single report, of 0.1 s.
#[test]
fn independent_reports_have_the_deviation_of_the_formula() {
    for (lambda, sd) in [(4000.0, 6.32), (100.0, 1.0)] {
        let events = poisson(1, lambda, 200.0, |_| 0);
        let seen = run(Params { anticipation: false, ..Params::default() }, &events, 200.0);
        assert!((seen.truth / (lambda * 0.1) - 1.0).abs() < 0.02, "{}", seen.truth);
        assert!((seen.mean / seen.truth - 1.0).abs() < 0.01, "{} of {}", seen.mean, seen.truth);
        assert!((seen.sd / sd - 1.0).abs() < 0.15, "{}", seen.sd);
    }
}

/// The paper's traffic at 1 Gbit/s, with windows of 30 packets. In this traffic, the reports of a flow are not
/// independent. For flows with two reports of 0.1 s, the variance is 1 + exp(-0.1 / tau) times the variance of the
/// formula (Campbell's theorem). For flows with more reports the variance is larger.
#[test]
fn the_papers_traffic_is_counted() {
    let windows = |rng: &mut Pcg32| libm::ceil(pareto(rng) / 30.0) as u32;
    let events = poisson(2, 2000.0, 60.0, windows);
    for estimator in [Estimator::Exponential, Estimator::Sliding] {
        let seen = run(Params { estimator, ..Params::default() }, &events, 60.0);
        assert!((seen.mean / seen.truth - 1.0).abs() < 0.02, "{} of {}", seen.mean, seen.truth);
        assert!(seen.error < 0.05, "{}", seen.error);
        if estimator == Estimator::Exponential {
            let formula = libm::sqrt(seen.truth * 0.1 / (2.0 * 0.5));
            assert!((1.2..1.6).contains(&(seen.sd / formula)), "{} of {formula}", seen.sd);
        }
    }
}

/// TV-D6: P(size > x) = (5.556 / x)^1.8.
#[test]
fn tv_d6_the_papers_sizes() {
    let mut rng = Pcg32::seed_from_u64(3);
    let sizes: Vec<f64> = (0..1_000_000).map(|_| pareto(&mut rng)).collect();
    for (size, part) in [(30.0, 0.0480), (100.0, 0.0055)] {
        let found = sizes.iter().filter(|s| **s > size).count() as f64 / 1e6;
        assert!((found / part - 1.0).abs() < 0.03, "{found} above {size}");
    }
}
