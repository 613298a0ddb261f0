//! Tests RCP and BDR with rates in ACKs, as on real switches. The switch runs the control law of RCP or BDR, and the
//! senders are those of BRF.

use crate::common::*;
use narrows_sim::Results;
use narrows_sim::plan::{AppPlan, ControllerPlan, FlowPlan, LimitPlan, Plan, SizePlan, TransportPlan};
use serde_json::json;

const LAWS: [&str; 2] = ["rcp", "bdr"];

/// Returns a plan with one bottleneck of 100 Mbit/s, whose rate controller writes rates into ACKs.
fn stamped(kind: &str, rtt: u64, seconds: u64) -> Plan {
    let mut plan = dumbbell(kind, rtt, 1_000, seconds);
    plan.rate_controllers[0].params = values(json!({ "signal": "ack" }));
    plan
}

/// Returns a group of flows with `brf`. If the law is BDR, the senders add a report to some of their packets
/// (designated packets).
fn senders(kind: &str, flows: u32, spacing: u64) -> FlowPlan {
    designating(kind == "bdr", group("brf", flows, spacing))
}

fn designating(designate: bool, mut flow: FlowPlan) -> FlowPlan {
    if let TransportPlan::Tcp { cc, .. } = &mut flow.transport {
        cc.params = values(json!({ "designate": designate }));
    }
    flow
}

/// Runs `flows` flows. Returns their goodputs in the second half of the run in Mbit/s, and the results.
fn settled(kind: &str, cc: &str, flows: u32, rtt: u64) -> (Vec<f64>, Results) {
    let mut plan = if cc == "brf" { stamped(kind, rtt, 12) } else { dumbbell(kind, rtt, 1_000, 12) };
    plan.warmup = ms(6_000);
    plan.probes.traces = true;
    plan.flows.push(if cc == "brf" { senders(kind, flows, 100) } else { group(cc, flows, 100) });
    let r = run(&plan);
    (shares(&r, flows as usize, 6.0, 12.0), r)
}

#[test]
fn any_number_of_flows_share_a_link_equally_and_fill_it() {
    for (kind, least) in [("rcp", 0.95), ("bdr", 0.90)] {
        for flows in [1, 2, 4, 16] {
            let (shares, r) = settled(kind, "brf", flows, 20);
            assert!(jain(&shares) > 0.99, "{kind}: {shares:?}");
            assert!(utilisation(&r) > least, "{kind}, {flows}: {}", utilisation(&r));
            assert_eq!(r.u("links", "dropped_packets", 0), 0, "{kind}, {flows}");
        }
    }
}

/// Returns the mean of the traced variable `wanted` after 6 s.
fn traced(r: &Results, wanted: &str) -> f64 {
    let traces = r.tables.iter().find(|t| t.name == "traces").expect("traces");
    let (key, value) = (traces.str("key").expect("text"), traces.f64("value").expect("numbers"));
    let at = traces.f64("t_s").expect("numbers");
    let values: Vec<f64> =
        (0..at.len()).filter(|&i| key[i] == wanted && at[i] > 6.0).map(|i| value[i]).collect();
    assert!(values.len() > 100, "{}", values.len());
    values.iter().sum::<f64>() / values.len() as f64
}

/// A law computes the same rate whether the feedback is in a header or in an option of ACKs. The test does not compare
/// goodputs, because BDR's own sender rounds its window down to whole packets. With a window of 20 packets, this
/// reduces goodput by up to 5 %.
#[test]
fn both_forms_of_a_law_give_the_same_rate() {
    for (kind, key) in [("rcp", "rate"), ("bdr", "share")] {
        for (flows, rtt) in [(1, 20), (2, 20), (4, 40), (8, 20), (16, 100)] {
            let given = |cc: &str| {
                let (_, r) = settled(kind, cc, flows, rtt);
                traced(&r, key)
            };
            let (header, stamped) = (given(kind), given("brf"));
            assert!((stamped / header - 1.0).abs() < 0.05, "{kind}, {flows}, {rtt}: {header} and {stamped}");
        }
    }
}

#[test]
fn flows_with_different_rtts_get_equal_shares() {
    for kind in LAWS {
        let mut plan = stamped(kind, 10, 14);
        plan.warmup = ms(7_000);
        // The path to the third node has 90 ms more delay.
        plan.nodes.push("c".into());
        let fast = mbit(10_000);
        plan.links.push(link(1, 2, fast, ms(0), fifo(LimitPlan::default())));
        plan.links.push(link(2, 1, fast, ms(90), fifo(LimitPlan::default())));
        plan.flows.push(senders(kind, 2, 300));
        plan.flows.push(FlowPlan { to: 2, ..senders(kind, 2, 300) });
        let r = run(&plan);
        let shares = shares(&r, 4, 7.0, 14.0);
        assert!(jain(&shares) > 0.99, "{kind}: {shares:?}");
        assert!(utilisation(&r) > 0.9, "{kind}: {}", utilisation(&r));
    }
}

#[test]
fn on_a_path_with_two_controllers_the_lower_rate_applies() {
    for kinds in [("rcp", "bdr"), ("bdr", "rcp")] {
        let mut plan = stamped(kinds.0, 20, 10);
        plan.warmup = ms(5_000);
        plan.nodes.push("c".into());
        plan.links.push(link(1, 2, mbit(30), ms(0), fifo(packets(1_000))));
        plan.links.push(link(2, 1, mbit(1_000), ms(0), fifo(LimitPlan::default())));
        plan.rate_controllers.push(ControllerPlan { link: 2, ..plan.rate_controllers[0].clone() });
        plan.rate_controllers[1].kind = kinds.1.into();
        plan.flows.push(FlowPlan { to: 2, ..senders("bdr", 2, 500) });
        let r = run(&plan);
        let shares = shares(&r, 2, 5.0, 10.0);
        let sum: f64 = shares.iter().sum();
        assert!((25.0..30.0).contains(&sum) && jain(&shares) > 0.99, "{kinds:?}: {shares:?}");
        assert_eq!(r.u("links", "dropped_packets", 0), 0, "{kinds:?}");
    }
}

/// CUBIC gets the share of its class, and the law divides the rest among the other flows.
#[test]
fn flows_keep_the_guarantee_of_their_class_against_cubic() {
    for kind in LAWS {
        let mut plan = stamped(kind, 20, 12);
        plan.warmup = ms(6_000);
        plan.flows.push(senders(kind, 2, 300));
        plan.flows.push(bulk("cubic"));
        let r = run(&plan);
        // Flows are numbered by their starts, so the CUBIC flow is the second flow.
        let shares = shares(&r, 3, 6.0, 12.0);
        assert!(jain(&[shares[0], shares[2]]) > 0.99, "{kind}: {shares:?}");
        assert!(shares[0] + shares[2] > 82.0 && shares[1] > 4.0, "{kind}: {shares:?}");
        assert!(utilisation(&r) > 0.95, "{kind}: {}", utilisation(&r));
    }
}

/// Short flows start at the rate of all other flows, and BDR's estimate of the number of flows includes them.
#[test]
fn hundreds_of_short_flows_are_counted() {
    let mut plan = stamped("bdr", 100, 20);
    plan.probes.traces = true;
    plan.flows.push(FlowPlan {
        app: AppPlan::Poisson { per_sec: 400.0, size: SizePlan::Pareto { mean: 12_500.0, shape: 1.8 } },
        ..senders("bdr", 1, 0)
    });
    let r = run(&plan);
    let (start, fct) = (r.all("flows", "start_s"), r.all("flows", "fct_s"));
    let alive = |at: f64| {
        (0..start.len()).filter(|&f| start[f] <= at && (fct[f].is_nan() || start[f] + fct[f] > at)).count()
    };
    let true_ones = (6..20).map(|at| alive(f64::from(at)) as f64).sum::<f64>() / 14.0;
    let counted = traced(&r, "flows");
    assert!((counted / true_ones - 1.0).abs() < 0.15, "{counted} of {true_ones}");
    let done = fct.iter().filter(|fct| !fct.is_nan()).count();
    assert!(done as f64 > 0.97 * fct.len() as f64, "{done} of {}", fct.len());
}

/// The controller stops for two seconds. The flows continue with CUBIC, and get rates again after the controller has
/// restarted.
#[test]
fn flows_survive_an_outage_of_the_controller() {
    for kind in LAWS {
        let mut plan = stamped(kind, 20, 14);
        plan.warmup = ms(9_000);
        plan.rate_controllers[0].outages = vec![(at(3_000), at(5_000))];
        plan.flows.push(senders(kind, 3, 100));
        let r = run(&plan);
        let shares = shares(&r, 3, 9.0, 14.0);
        assert!(jain(&shares) > 0.99, "{kind}: {shares:?}");
        assert!(utilisation(&r) > 0.9, "{kind}: {}", utilisation(&r));
    }
}

/// If a sender applies rates but sends no reports, BDR does not count its flow. The flow gets no rate, and stays in the
/// class of other TCP.
#[test]
fn without_designated_packets_a_flow_is_other_tcp_for_bdr() {
    let mut plan = stamped("bdr", 20, 12);
    plan.warmup = ms(6_000);
    plan.flows.push(senders("bdr", 2, 300));
    plan.flows.push(designating(false, bulk("brf")));
    let r = run(&plan);
    let shares = shares(&r, 3, 6.0, 12.0);
    assert!(jain(&[shares[0], shares[2]]) > 0.99, "{shares:?}");
    assert!(shares[0] + shares[2] > 82.0 && shares[1] < 12.0, "{shares:?}");
}
