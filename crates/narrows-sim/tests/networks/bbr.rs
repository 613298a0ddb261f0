//! BBR v2 and v3 alone and together with other algorithms.

use crate::common::*;
use narrows_control::units::Span;

/// Runs two flows over a link of 50 Mbit/s with an RTT of 40 ms. Returns their goodputs from 20 s to 60 s, in Mbit/s.
/// The second flow starts after two seconds.
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
fn two_flows_of_the_same_kind_converge_to_similar_rates() {
    for (cc, least) in [("bbr2", 0.75), ("bbr3", 0.9)] {
        for bdps in [0.5, 1.0, 2.0] {
            let [first, second] = share(cc, cc, bdps);
            let jain = jain(&[first, second]);
            assert!(jain > least, "{cc}, {bdps} BDP: {first:.1} and {second:.1} Mbit/s, Jain {jain:.3}");
            assert!(first + second > 45.0, "{cc}, {bdps} BDP: {first:.1} and {second:.1} Mbit/s");
        }
    }
}

/// BBR v2 and v3 limit their data in flight after losses, and probe for bandwidth less often than v1, so that they can
/// share a link with CUBIC (BBR3-5). With a buffer of half a BDP or one BDP, CUBIC gets more than twice the goodput
/// that it has against v1. BBR v2 and v3 still get more than a quarter of the link.
#[test]
fn cubic_gets_far_more_against_v2_and_v3_than_against_v1() {
    for bdps in [0.5, 1.0] {
        let [against_v1, _] = share("cubic", "bbr", bdps);
        for cc in ["bbr2", "bbr3"] {
            let [cubic, bbr] = share("cubic", cc, bdps);
            assert!(
                cubic > 2.0 * against_v1,
                "{cc}, {bdps} BDP: {cubic:.1}, against v1 {against_v1:.1} Mbit/s"
            );
            assert!(bbr > 0.25 * 50.0, "{cc}, {bdps} BDP: {bbr:.1} Mbit/s");
        }
    }
    for cc in ["bbr2", "bbr3"] {
        let rates = share("cubic", cc, 2.0);
        assert!(jain(&rates) > 0.9, "{cc}, 2 BDP: {:.1} and {:.1} Mbit/s", rates[0], rates[1]);
    }
}
