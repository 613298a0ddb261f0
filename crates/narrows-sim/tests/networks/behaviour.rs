//! Snapshots of the behaviour of controllers. Each controller of the catalogue has a file with a table. If its
//! behaviour changes, this file changes, and reviewers see the change.
//!
//! `rate` is the rate of the link, and `goodput` is the sum for both flows, in Mbit/s. `RTT` is the RTT without a
//! queue. `mean` is the mean of the measured RTTs of both flows, and `p95` is the larger of their 95th percentiles. All
//! RTTs are in ms. `buffer` is in BDP, and `loss` in per cent. `again` is the number of retransmissions.

use std::fmt::Write;

use crate::common::*;
use narrows_control::catalogue;
use narrows_control::units::{Span, Time};
use narrows_sim::plan::LossPlan;

/// Runs two flows for 10 s, and returns a row of the table. The first second is not measured.
fn row(cc: &str, rate: u64, rtt: u64, buffer: f64, loss: f64) -> String {
    let bdp = rate as f64 * 1e6 * rtt as f64 / 1e3 / 8.0 / 1500.0;
    let mut plan = path(mbit(rate), ms(rtt), fifo(packets((buffer * bdp) as u32)), 10);
    plan.warmup = Span::from_secs(1);
    plan.probes.interval = Span::ZERO;
    plan.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: loss })];
    plan.flows = vec![bulk(cc), bulk(cc)];
    plan.flows[1].start = at(200);
    let r = run(&plan);
    let both = |f: &dyn Fn(usize) -> f64| f(0) + f(1);
    let goodput = both(&|i| r.goodput(i));
    let mean = both(&|i| r.f("flows", "rtt_mean_s", i)) / 2.0 * 1e3;
    let p95 = r.f("flows", "rtt_p95_s", 0).max(r.f("flows", "rtt_p95_s", 1)) * 1e3;
    let (drops, again) =
        (r.u("links", "dropped_packets", 0), both(&|i| r.u("flows", "retransmits", i) as f64));
    let jain = jain(&[r.goodput(0), r.goodput(1)]);
    format!(
        "{cc:<15}{rate:>5}{rtt:>5}{buffer:>7}{:>6}{goodput:>9.2}{mean:>8.1}{p95:>8.1}{drops:>8}{again:>8}{jain:>7.3}",
        loss * 100.0
    )
}

#[test]
fn two_flows_over_a_bottleneck() {
    for named in catalogue::all() {
        // Algorithms with `needs.service` need a rate controller at the ports. Without a rate controller, the table
        // would show only their fallback.
        if named.entry.needs.service.is_some() {
            continue;
        }
        let mut table = String::from(&format!(
            "{:<15}{:>5}{:>5}{:>7}{:>6}{:>9}{:>8}{:>8}{:>8}{:>8}{:>7}\n",
            "cc", "rate", "RTT", "buffer", "loss", "goodput", "mean", "p95", "drops", "again", "Jain"
        ));
        for rate in [10, 100] {
            for rtt in [20, 100] {
                for buffer in [0.5, 2.0] {
                    for loss in [0.0, 0.01] {
                        let _ = writeln!(table, "{}", row(named.name, rate, rtt, buffer, loss));
                    }
                }
            }
        }
        insta::assert_snapshot!(named.name, table);
    }
}
