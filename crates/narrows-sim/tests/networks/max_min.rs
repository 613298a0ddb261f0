//! Tests each rate controller in random networks: how much do the goodputs of flows differ from the max-min fair rates?

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use crate::brf_common::*;

/// A kind of rate controller, and how its runs are measured.
#[derive(Clone, Copy)]
struct Law {
    kind: &'static str,
    /// The fraction of a link's capacity that the law allocates.
    eta: f64,
    /// Number of random networks.
    seeds: u64,
    /// Start and end of the time over which goodputs are averaged, in seconds.
    measured: (f64, u64),
}

/// Computes max-min fair rates from their definition: all rates rise together until a link is full. The rates of the
/// flows on this link are final, and the other rates continue to rise (Bertsekas and Gallager, *Data Networks*, sec.
/// 6.5.2). `paths[f]` are the links of flow f.
fn max_min(capacities: &[f64], paths: &[Vec<usize>]) -> Vec<f64> {
    let mut rates = vec![0.0; paths.len()];
    let mut rising = vec![true; paths.len()];
    while rising.contains(&true) {
        let room = |link: usize| {
            let here = |f: &usize| paths[*f].contains(&link);
            let used: f64 = (0..paths.len()).filter(here).map(|f| rates[f]).sum();
            let count = (0..paths.len()).filter(here).filter(|f| rising[*f]).count();
            (count > 0).then(|| (capacities[link] - used) / count as f64)
        };
        let step = (0..capacities.len()).filter_map(room).fold(f64::INFINITY, f64::min);
        let full: Vec<usize> =
            (0..capacities.len()).filter(|l| room(*l).is_some_and(|r| r <= step + 1e-9)).collect();
        for f in 0..paths.len() {
            if rising[f] {
                rates[f] += step;
                rising[f] = !full.iter().any(|l| paths[f].contains(l));
            }
        }
    }
    rates
}

/// Like [`max_min`], but first subtracts the ACKs of flows in the opposite direction from the capacity of each link.
/// Receivers send one ACK of 52 bytes for two data packets. Ports 2k and 2k + 1 are the two directions of a link.
fn max_min_beside_acks(capacities: &[f64], paths: &[Vec<usize>]) -> Vec<f64> {
    let mut rates = max_min(capacities, paths);
    for _ in 0..10 {
        let acks = |port: usize| -> f64 {
            let back = paths.iter().zip(&rates).filter(|(path, _)| path.contains(&(port ^ 1)));
            back.map(|(_, rate)| rate * 26.0 / 1500.0).sum()
        };
        let left: Vec<f64> = capacities.iter().enumerate().map(|(port, c)| c - acks(port)).collect();
        rates = max_min(&left, paths);
    }
    rates
}

#[test]
fn the_reference_solves_the_textbook_example() {
    // One long flow uses three links, and each link also carries one short flow.
    let paths = vec![vec![0, 1, 2], vec![0], vec![1], vec![2]];
    assert_eq!(max_min(&[10.0, 4.0, 8.0], &paths), [2.0, 8.0, 2.0, 6.0]);
}

/// Knuth's MMIX generator of pseudo-random numbers. Only the upper half of each number is used.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Simulates a random tree of 3 to 6 switches. Every port has this law, and 3 to 10 greedy flows run between random
/// switches. Returns the error of each flow's goodput, relative to its max-min fair rate.
fn errors(law: Law, seed: u64) -> Vec<f64> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
    (0..3).for_each(|_| _ = dice.roll(2));
    let mut net = Net::new(law.measured.1);
    net.plan.seed = seed;
    let switches: Vec<u32> = (0..3 + dice.roll(4)).map(|i| net.node(format!("R{i}"))).collect();
    let lines = dice.roll(2) == 0;
    let mut capacities = Vec::new();
    let mut parents = vec![None];
    for i in 1..switches.len() {
        let parent = if lines { i - 1 } else { dice.roll(i as u64) as usize };
        let rates = [10 + dice.roll(90), 10 + dice.roll(90)];
        let delay = ms(1 + dice.roll(5));
        let link = net.duplex(switches[i], switches[parent], rates.map(mbit), delay);
        parents.push(Some(parent));
        for k in 0..2 {
            net.controller(law.kind, link + k, json!({}));
            capacities.push(law.eta * rates[k as usize] as f64);
        }
    }
    net.sdn();
    let up = |mut at: usize| {
        let mut path = vec![at];
        while let Some(parent) = parents[at] {
            path.push(parent);
            at = parent;
        }
        path
    };
    let mut paths = Vec::new();
    for n in 0..3 + dice.roll(8) {
        let from = dice.roll(switches.len() as u64) as usize;
        let to = (from + 1 + dice.roll(switches.len() as u64 - 1) as usize) % switches.len();
        let (climb, descent) = (up(from), up(to));
        // Link i - 1 (two ports) connects switch i to its parent: port 2(i - 1) upwards, 2(i - 1) + 1 downwards.
        let upward = climb.iter().filter(|n| !descent.contains(n)).map(|n| 2 * (n - 1));
        let downward = descent.iter().filter(|n| !climb.contains(n)).map(|n| 2 * (n - 1) + 1);
        paths.push(upward.chain(downward).collect::<Vec<usize>>());
        let delays = [ms(1 + dice.roll(12)), ms(1 + dice.roll(3))];
        let (a, b) = (net.host(switches[from], delays[0]), net.host(switches[to], delays[1]));
        // The results list flows in the order of their starts, so the flows must start in the order of their numbers.
        net.add(a, b, tcp(law.kind)).start = at(10 * n + dice.roll(10));
    }
    let r = net.run();
    let expected = max_min_beside_acks(&capacities, &paths);
    let (from, to) = law.measured;
    let found = (0..paths.len()).map(|f| goodput(&r, f as u64, from, to as f64) / PAYLOAD);
    found.zip(&expected).map(|(f, e)| f / e - 1.0).collect()
}

/// Returns the sorted errors of the flows in all random networks. Two threads run the simulations.
fn all_errors(law: Law) -> Vec<f64> {
    let next = AtomicU64::new(0);
    let work = || {
        let turn = core::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        turn.take_while(|seed| *seed < law.seeds).flat_map(|seed| errors(law, seed)).collect::<Vec<f64>>()
    };
    let mut all = std::thread::scope(|s| {
        let other = s.spawn(work);
        let mut found = work();
        found.extend(other.join().expect("a run failed"));
        found
    });
    all.sort_by(f64::total_cmp);
    all
}

/// How close the goodputs are to the max-min fair rates.
#[derive(Debug)]
struct Found {
    /// Share of the flows whose goodput is within 3 % of the max-min fair rate.
    near: f64,
    /// Mean of the absolute values of the errors.
    mean: f64,
    least: f64,
    most: f64,
}

/// Measures and prints how close the goodputs come to the max-min fair rates with this law.
fn measure(law: Law) -> Found {
    let all = all_errors(law);
    let part = |of: &dyn Fn(&f64) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let found = Found {
        near: part(&|e| f64::from(e.abs() <= 0.03)),
        mean: part(&|e| e.abs()),
        least: all[0],
        most: all[all.len() - 1],
    };
    println!(
        "{}: {} flows; errors {:+.3} to {:+.3}, median {:+.3}, mean size {:.4}; {:.3} within 3 %",
        law.kind,
        all.len(),
        found.least,
        found.most,
        all[all.len() / 2],
        found.mean,
        found.near,
    );
    found
}

/// 98 of 100 flows are within 3 % of their max-min fair rate. All flows get between 80 % and 105 % of this rate.
///
/// The other two flows share a port with slow flows that an earlier switch limits. The port has to measure the rates of
/// these slow flows. A measuring window contains about a dozen packets of such a flow, so one packet more or less is an
/// error of 8 %. The port also reserves some more capacity for each slow flow. If it does so for three slow flows, a
/// fourth flow of the same rate loses up to a sixth of its rate. If a later switch limits a flow, there is no such
/// error, because the port reads the exact limit in ACKs.
#[test]
fn brf_reaches_max_min_rates() {
    // The longest path has five links of 5 ms, and links of 12 and 3 ms to its hosts. Its RTT is
    // 2 (5 x 5 + 12 + 3) = 80 ms. A cycle of BRF takes two RTTs.
    let found = measure(Law { kind: "brf", eta: ETA, seeds: 150, measured: (1.7, 6) });
    assert!(found.near >= 0.98 && found.least >= -0.2 && found.most <= 0.05, "{found:?}");
}

/// The controller of a PACEC domain computes max-min fair rates from the reports of all ports. RCP's equilibrium is
/// also max-min fair: each port gives all flows the same rate, which fills the port, and each flow uses the lowest rate
/// on its path.
#[test]
fn pacec_and_rcp_reach_max_min_rates() {
    for (kind, eta) in [("pacec", ETA), ("rcp", 1.0)] {
        let found = measure(Law { kind, eta, seeds: 15, measured: (5.0, 9) });
        assert!(
            found.near >= 0.95 && found.mean <= 0.02 && found.least >= -0.05 && found.most <= 0.03,
            "{kind}"
        );
    }
}

/// XCP and BDR leave capacity unused if another port limits some of the flows. An XCP port redistributes up to a tenth
/// of its traffic. The limited flows also get a part of this tenth, although they cannot use it (Low, Andrew and
/// Wydrowski, "Understanding XCP: equilibrium and fairness", INFOCOM 2005). A BDR port divides its capacity by the
/// number of all flows, including the limited flows.
#[test]
fn xcp_and_bdr_only_come_close_to_max_min_rates() {
    for (kind, mean, least, most) in [("xcp", 0.02..0.08, -0.4, 0.25), ("bdr", 0.05..0.15, -0.5, 0.02)] {
        let found = measure(Law { kind, eta: 1.0, seeds: 15, measured: (5.0, 9) });
        assert!(
            mean.contains(&found.mean) && found.least >= least && found.most <= most,
            "{kind}: {found:?}"
        );
    }
}
