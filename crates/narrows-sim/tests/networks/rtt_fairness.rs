//! Tests how a flow with an RTT of 10 ms and a flow with an RTT of 50 ms share 100 Mbit/s (G1 of
//! `narrows study bbr-gain`). BBR v1 gives the longer path more bandwidth. The other algorithms here give it less than
//! BBR v1.

use crate::common::*;
use narrows_control::units::Span;
use narrows_sim::plan::FlowPlan;

/// Bandwidth-delay product of the longer path, in packets.
const BDP: f64 = 416.7;

/// Returns the goodput of the 50 ms flow, divided by the goodput of the 10 ms flow.
fn long_over_short(cc: &str, buffer_bdp: f64) -> f64 {
    let mut plan = path(mbit(100), ms(0), fifo(packets((buffer_bdp * BDP) as u32)), 40);
    plan.warmup = Span::from_secs(5);
    plan.probes.interval = Span::ZERO;
    plan.nodes = ["r", "d", "near", "far"].map(String::from).to_vec();
    for (host, delay) in [(2, 5), (3, 25)] {
        for (from, to) in [(host, 0), (0, host)] {
            plan.links.push(link(from, to, mbit(1000), ms(delay), fifo(packets(100_000))));
        }
    }
    plan.flows = [2, 3].map(|from| FlowPlan { from, ..bulk(cc) }).to_vec();
    let r = run(&plan);
    assert!(r.goodput(0) + r.goodput(1) > 90.0, "{cc}: {} and {}", r.goodput(0), r.goodput(1));
    r.goodput(1) / r.goodput(0)
}

/// In the first measurement of the BBQ paper, on real hosts, the 50 ms flow got 87.3 Mbit/s, and the 10 ms flow got 6.3
/// Mbit/s.
#[test]
fn bbr_gives_most_of_the_link_to_the_longer_path() {
    let over = long_over_short("bbr", 5.0);
    assert!((8.0..20.0).contains(&over), "{over:.2}");
}

#[test]
fn bbq_shares_the_link() {
    for buffer in [0.5, 1.0, 5.0] {
        let over = long_over_short("bbq", buffer);
        assert!((0.5..2.0).contains(&over), "{buffer} BDP: {over:.2}");
    }
}

/// The buffer has one BDP. With a larger buffer, Startup would build a long queue, and the longest RTT of each flow
/// would include this queue. Omega is the current RTT divided by the longest RTT. Omega would then be low, and the
/// variants of BBR with the gain model would not help (GAIN-5, GAIN-7).
#[test]
fn the_gain_model_helps_the_shorter_path_where_the_buffer_is_small() {
    let bbr = long_over_short("bbr", 1.0);
    for cc in ["bbr-a", "bbr-b", "bbr-c"] {
        let over = long_over_short(cc, 1.0);
        assert!(over < 0.8 * bbr, "{cc}: {over:.2}, BBR {bbr:.2}");
    }
}
