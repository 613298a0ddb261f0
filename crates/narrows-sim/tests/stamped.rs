//! RCP and BDR in ACKs, as a switch on stock Linux has them: the laws are their own, the senders are BRF's.
#![allow(missing_docs)]

mod common;

use common::*;
use narrows_control::units::Time;
use narrows_sim::Results;
use narrows_sim::plan::{AppPlan, FlowPlan, Plan, SizePlan};
use serde_json::json;

const LAWS: [&str; 2] = ["rcp", "bdr"];

/// One bottleneck of 100 Mbit/s whose controller writes into ACKs.
fn stamped(kind: &str, rtt: u64, seconds: u64) -> Plan {
    let mut plan = dumbbell(kind, rtt, 1_000, seconds);
    plan.controllers[0].params = json!({ "signal": "ack" });
    plan
}

/// Goodput of `flows` flows in their second half, Mbit/s.
fn settled(kind: &str, cc: &str, flows: u32, rtt: u64) -> (Vec<f64>, Results) {
    let mut plan = if cc == "brf" { stamped(kind, rtt, 12) } else { dumbbell(kind, rtt, 1_000, 12) };
    plan.warmup = ms(6_000);
    plan.flows.push(group(cc, flows, 100));
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

/// The law's equilibrium does not depend on how it is heard of.
#[test]
fn both_forms_come_to_the_same() {
    for kind in LAWS {
        for (flows, rtt) in [(2, 20), (4, 40), (8, 20)] {
            let (header, _) = settled(kind, kind, flows, rtt);
            let (stamped, _) = settled(kind, "brf", flows, rtt);
            let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
            let (header, stamped) = (mean(&header), mean(&stamped));
            assert!((stamped / header - 1.0).abs() < 0.05, "{kind}, {flows}: {header} and {stamped}");
        }
    }
}
