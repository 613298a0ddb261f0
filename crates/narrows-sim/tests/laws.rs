//! Goodput under random loss against the known laws, and slow start's end.
#![allow(missing_docs)]

mod common;

use common::*;
use narrows_control::units::{Span, Time};
use narrows_sim::plan::{LossPlan, Plan};

fn lossy(cc: &str, p: f64, rtt: u64, seconds: u64) -> Plan {
    let mut plan = path(mbit(1_000), ms(rtt), fifo(packets(100_000)), seconds);
    plan.warmup = Span::from_secs(10);
    plan.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p })];
    plan.flows = vec![bulk(cc)];
    plan.probes.interval = Span::ZERO;
    plan
}

#[test]
fn dbg_table() {
    for cc in ["reno", "cubic"] {
        for p in [0.0001f64, 0.001, 0.005, 0.01, 0.02, 0.05] {
            for rtt in [20u64, 40, 100] {
                let r = run(&lossy(cc, p, rtt, 200));
                let model = (1.5 / p).sqrt() * 1448.0 * 8.0 / (rtt as f64 / 1e3) / 1e6;
                println!("{cc} p {p} rtt {rtt}: {:.2} Mbit/s, Mathis {model:.2}, ratio {:.2} rtx {} of {} to {} spurious {} rtt {:.1}", r.goodput(0), r.goodput(0)/model, r.u("flows","retransmits",0), r.u("flows","sent_packets",0), r.u("flows","timeouts",0), r.u("flows","spurious",0), r.f("flows","rtt_mean_s",0)*1e3);
            }
        }
    }
}
