//! For arbitrary reports in any order, all values are finite and within their bounds, and allocations do not
//! exceed the link.

use proptest::prelude::*;

use super::*;
use crate::parameter::Reading;
use crate::units::{Bytes, Rate, Span, Time};

#[derive(Clone, Debug)]
enum Step {
    Report(Report, u64, Option<u64>),
    Bytes(u64, u64),
    Timer(u64, u64, Option<u64>),
    Wait(u64),
}

/// Generates mostly plausible values, sometimes arbitrary ones.
fn figure(usual: u64) -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..usual, 1 => Just(0), 1 => any::<u64>()]
}

fn report() -> impl Strategy<Value = Report> {
    let spans = (figure(300_000_000), figure(300_000_000));
    (any::<(bool, bool, bool)>(), spans, any::<u32>(), figure(1500)).prop_map(
        |((syn, fin, first_data), (t_rep, time), size_cwin, packet)| Report {
            syn,
            fin,
            first_data,
            t_rep: Span::from_nanos(t_rep),
            size_cwin,
            time_per_cwin: Span::from_nanos(time),
            packet_size: Bytes::new(packet),
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let limit = || proptest::option::of(figure(1_000_000));
    prop_oneof![
        8 => (report(), figure(100_000), limit()).prop_map(|(r, q, l)| Step::Report(r, q, l)),
        3 => (figure(100_000), figure(100_000)).prop_map(|(own, other)| Step::Bytes(own, other)),
        3 => (figure(1_000_000_000), figure(100_000), limit()).prop_map(|(c, q, l)| Step::Timer(c, q, l)),
        6 => (0..50_000_000u64).prop_map(Step::Wait),
        1 => any::<u64>().prop_map(|wait| Step::Wait(wait >> 20)),
    ]
}

fn run(params: Params, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut now, mut capacity) = (Time::from_nanos(1), Rate::from_bits_per_sec(100_000_000));
    let mut law = Law::new(params.clone(), capacity, now);
    let literal = params.mode == Reading::Literal;
    for step in steps.iter().cloned() {
        match step {
            Step::Report(report, queued, limit) => {
                let said = law.on_report(now, &report, Bytes::new(queued), limit.map(Bytes::new));
                match said {
                    Recommendation::Rate(rate) => prop_assert!(!literal && rate == law.rate(now)),
                    Recommendation::Gain(_) => prop_assert!(literal),
                }
            }
            Step::Bytes(own, other) => law.on_bytes(Bytes::new(own), Bytes::new(other)),
            Step::Timer(c, queued, limit) => {
                capacity = Rate::from_bytes_per_sec(c);
                law.on_timer(now, capacity, Bytes::new(queued), limit.map(Bytes::new));
                prop_assert!(law.next() > now, "the timer is due again at once");
            }
            Step::Wait(nanos) => now += Span::from_nanos(nanos),
        }
        let (flows, rate) = (law.flows(now), law.rate(now));
        let floor = if literal { 0.0 } else { 1.0 };
        prop_assert!(flows.is_finite() && flows >= floor, "{} flows", flows);
        prop_assert!(law.utilisation().is_finite() && law.redistribution() >= 1.0);
        prop_assert!(law.mean_report() > Span::ZERO && law.mean_report() <= params.t_rep_max);
        if !literal {
            let most = params.eta * capacity.as_f64();
            prop_assert!(rate.as_f64() <= most, "{:?} of {:?}", rate, capacity);
            if !params.redistribution {
                prop_assert!(rate.as_f64() * flows <= most * (1.0 + 1e-9), "{:?} x {}", rate, flows);
            }
        }
        let field = Rate::from_bytes_per_sec(1_000_000);
        prop_assert!(law.stamp(now, Some(field)) <= field);
    }
    Ok(())
}

proptest! {
    #[test]
    fn resolved_without_redistribution_allocates_at_most_the_link(
        steps in proptest::collection::vec(step(), 1..200), anticipation: bool,
    ) {
        run(Params { redistribution: false, anticipation, ..Params::default() }, &steps)?;
    }

    #[test]
    fn resolved(steps in proptest::collection::vec(step(), 1..200)) {
        run(Params::default(), &steps)?;
    }

    #[test]
    fn sliding(steps in proptest::collection::vec(step(), 1..200)) {
        run(Params { estimator: Estimator::Sliding, ..Params::default() }, &steps)?;
    }

    #[test]
    fn literal(steps in proptest::collection::vec(step(), 1..200)) {
        run(Params { mode: Reading::Literal, ..Params::default() }, &steps)?;
    }
}
