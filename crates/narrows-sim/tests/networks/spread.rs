//! Tests flow plans with many flows: paths by ECMP, starts with jitter, and sizes from a measured distribution.

use crate::common::*;
use narrows_control::units::{Span, Time};
use narrows_sim::model::{Arrivals, starts};
use narrows_sim::plan::{AppPlan, FlowPlan, LimitPlan, Plan, SizePlan};
use proptest::prelude::*;

/// Returns a plan with two hosts: node 0 at switch 2, and node 1 at switch 3. Between these switches are `n` paths.
/// Each path has one more switch.
fn parallel(n: u32, flows: u32) -> Plan {
    let mut plan = path(mbit(1_000), ms(0), fifo(packets(1_000)), 2);
    let mut pairs = vec![(0, 2), (3, 1)];
    for middle in 4..4 + n {
        pairs.extend([(2, middle), (middle, 3)]);
    }
    plan.nodes = (0..4 + n).map(|i| format!("n{i}")).collect();
    let endless = || fifo(LimitPlan::default());
    plan.links = pairs
        .into_iter()
        .flat_map(|(a, b)| [(a, b), (b, a)])
        .map(|(a, b)| link(a, b, mbit(1_000), ms(1), endless()))
        .collect();
    plan.flows = vec![FlowPlan { count: flows, ..sized("reno", 50_000) }];
    plan.probes.links = Vec::new();
    plan.ecmp = true;
    plan
}

/// Runs the plan. Selects the links whose start matches `from` and whose end matches `to`. Returns the number of
/// packets on each of them.
fn on(plan: &Plan, from: impl Fn(u32) -> bool, to: impl Fn(u32) -> bool) -> Vec<u64> {
    let results = run(plan);
    let links = plan.links.iter().enumerate();
    links
        .filter(|(_, l)| from(l.from) && to(l.to))
        .map(|(i, _)| results.u("links", "offered_packets", i))
        .collect()
}

#[test]
fn equal_paths_share_the_flows_and_ack_paths_are_drawn_anew() {
    let plan = parallel(4, 400);
    let up = on(&plan, |from| from == 2, |to| to >= 4);
    let back = on(&plan, |from| from == 3, |to| to >= 4);
    let all: u64 = up.iter().sum();
    // 100 flows are expected on each path, with a standard deviation of 8.7.
    for packets in &up {
        let flows = *packets as f64 / all as f64 * 400.0;
        assert!((65.0..135.0).contains(&flows), "{up:?}");
    }
    assert!(back.iter().all(|&packets| packets > 0), "{back:?}");
    let other = on(&Plan { seed: 2, ..plan }, |from| from == 2, |to| to >= 4);
    assert_ne!(up, other, "another seed gives other paths");
}

#[test]
fn without_ecmp_all_flows_take_one_path() {
    let plan = Plan { ecmp: false, ..parallel(4, 40) };
    let used = on(&plan, |from| from == 2, |to| to >= 4).into_iter().filter(|&packets| packets > 0);
    assert_eq!(used.count(), 1);
}

/// A longer path is not used. The packets of a flow stay in order, so nothing is retransmitted.
#[test]
fn only_shortest_paths_count_and_a_flow_stays_on_its_path() {
    let mut plan = parallel(3, 100);
    for link in &mut plan.links {
        if link.from == 4 || link.to == 4 {
            link.delay = vec![(Time::ZERO, ms(2))];
        }
    }
    let up = on(&plan, |from| from == 2, |to| to >= 4);
    assert_eq!(up[0], 0, "{up:?}");
    assert!(up[1] > 0 && up[2] > 0, "{up:?}");
    let results = run(&plan);
    assert!((0..100).all(|flow| results.u("flows", "retransmits", flow) == 0));
}

#[test]
fn flows_with_jitter_start_at_different_times_within_it() {
    let mut plan = path(mbit(100), ms(10), fifo(packets(100)), 3);
    plan.flows = vec![FlowPlan { start_jitter: ms(100), start: at(500), ..group("reno", 20, 0) }];
    let first = run(&plan).all("flows", "start_s");
    assert!(first.windows(2).all(|pair| pair[0] <= pair[1]), "{first:?}");
    assert!(first[0] >= 0.5 && first[19] < 0.6 && first[19] - first[0] > 0.05, "{first:?}");
    plan.seed = 2;
    assert_ne!(run(&plan).all("flows", "start_s"), first);
}

proptest! {
    /// Without jitter, the starts are evenly spaced. Jitter delays each start by at most `jitter`.
    #[test]
    fn starts_are_ordered_and_within_their_jitter(
        count in 1u32..50, spacing in 0u64..20, jitter in 0u64..30, seed in any::<u64>(),
    ) {
        let plan = FlowPlan { start_jitter: ms(jitter), ..group("reno", count, spacing) };
        let drawn = starts(&plan, seed, 3);
        prop_assert_eq!(drawn.len(), count as usize);
        prop_assert!(drawn.is_sorted());
        for (i, &start) in drawn.iter().enumerate() {
            let even = Time::ZERO + ms(spacing).scale(i as u64, 1);
            // `starts` returns sorted times. They are also within these bounds, because both bounds rise with `i`.
            prop_assert!(even <= start && start <= even + ms(jitter), "{i}: {start:?}");
        }
    }
}

#[test]
fn measured_sizes_have_the_mean_of_their_distribution() {
    let points = vec![(0.0, 0.0), (1_000.0, 0.5), (10_000.0, 0.9), (1_000_000.0, 1.0)];
    // The mean of each segment of the distribution is the middle of the segment, so the mean is 0.5 x 500 + 0.4 x 5,500
    // + 0.1 x 505,000.
    let expected = 250.0 + 2_200.0 + 50_500.0;
    let size = SizePlan::Empirical { points };
    let source = FlowPlan { app: AppPlan::Poisson { per_sec: 1_000.0, size }, ..bulk("reno") };
    let arrivals = Arrivals::new(&source, 4, 0).expect("a Poisson source");
    let sizes: Vec<f64> = arrivals
        .until(Time::ZERO, Time::ZERO + Span::from_secs(100))
        .map(|(_, bytes)| bytes as f64)
        .collect();
    let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
    assert!((mean / expected - 1.0).abs() < 0.03, "{mean}");
    let small = sizes.iter().filter(|&&bytes| bytes <= 1_000.0).count() as f64 / sizes.len() as f64;
    assert!((small - 0.5).abs() < 0.01, "{small}");
}
