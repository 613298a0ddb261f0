//! BBR v2 and v3 among themselves and beside others.
#![allow(missing_docs)]

mod common;

use common::*;
use narrows_control::units::Span;

/// Goodputs of two flows over 50 Mbit/s and 40 ms, Mbit/s, in the last two thirds of a minute; the second starts after two seconds.
fn share(first: &str, second: &str, bdps: f64) -> [f64; 2] {
    let bdp = 50e6 * 0.04 / 8.0 / 1500.0;
    let mut plan = path(mbit(50), ms(40), fifo(packets((bdps * bdp) as u32)), 60);
    plan.warmup = Span::from_secs(20);
    plan.probes.interval = Span::ZERO;
    plan.flows = vec![bulk(first), bulk(second)];
    plan.flows[1].start = at(2000);
    let r = run(&plan);
    [r.goodput(0), r.goodput(1)]
}

#[test]
fn explore() {
    for cc in ["bbr", "bbr2", "bbr3"] {
        for bdps in [0.5, 1.0, 2.0, 4.0] {
            println!(
                "{cc} {bdps}: own {:?} cubic first {:?} reno first {:?}",
                share(cc, cc, bdps),
                share("cubic", cc, bdps),
                share("reno", cc, bdps)
            );
        }
    }
}
