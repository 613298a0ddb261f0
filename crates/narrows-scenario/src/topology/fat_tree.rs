//! A fat tree of equal switches (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3).

use indexmap::IndexMap;

use super::{ACCESS_DELAY, Edge, Facts};
use crate::units::Span;

/// Propagation delay of each link: 200 m of fibre.
const LINK_DELAY: Span = Span::from_micros(1);

/// Returns a tree with (k/2)^2 core switches, k^3/4 hosts, and k pods of k/2 edge and k/2 aggregation switches.
///
/// Core switches are named c1, c2, ... and hosts h1, h2, ... In the names a1.2 (aggregation) and e1.2 (edge), 1 is the
/// pod, and 2 is the place in the pod. Flow i goes from host i to a host in the other half of the tree, so that all
/// flows cross the core.
pub(super) fn fat_tree(k: u32) -> Facts {
    let half = (k / 2) as usize;
    let edge =
        |a: &str, b: &str| Edge { a: a.to_owned(), b: b.to_owned(), km: None, rate: None, delay: LINK_DELAY };
    let cores: Vec<String> = (1..=half * half).map(|i| format!("c{i}")).collect();
    let (mut nodes, mut edges, mut hosts) = (cores.clone(), Vec::new(), Vec::<String>::new());
    // Neighbouring hosts have a distance of 1, and each switch is above the middle of its part of the tree.
    let width = (half * half) as f64 * f64::from(k);
    let middle_of = |i: usize, parts: usize| (i as f64 + 0.5) * width / parts as f64;
    let mut positions: IndexMap<String, (f64, f64)> =
        cores.iter().enumerate().map(|(i, core)| (core.clone(), (middle_of(i, cores.len()), 3.0))).collect();
    for pod in 1..=k {
        let place = |i: usize| ((pod as usize - 1) * half + i) as f64 + 0.5;
        let aggregation: Vec<String> = (1..=half).map(|i| format!("a{pod}.{i}")).collect();
        for (i, (switch, cores)) in aggregation.iter().zip(cores.chunks(half.max(1))).enumerate() {
            nodes.push(switch.clone());
            positions.insert(switch.clone(), (place(i) * half as f64, 2.0));
            edges.extend(cores.iter().map(|core| edge(core, switch)));
        }
        for i in 1..=half {
            let leaf = format!("e{pod}.{i}");
            nodes.push(leaf.clone());
            positions.insert(leaf.clone(), (place(i - 1) * half as f64, 1.0));
            edges.extend(aggregation.iter().map(|switch| edge(switch, &leaf)));
            for _ in 0..half {
                let host = format!("h{}", hosts.len() + 1);
                edges.push(edge(&leaf, &host));
                nodes.push(host.clone());
                positions.insert(host.clone(), (hosts.len() as f64 + 0.5, 0.0));
                hosts.push(host);
            }
        }
    }
    let middle = hosts.len() / 2;
    let others = hosts.iter().cycle().skip(middle);
    Facts {
        name: super::FAT_TREE.to_owned(),
        nodes,
        edges,
        endpoints: hosts.iter().cloned().zip(others.cloned()).collect(),
        hosts: hosts.into_iter().collect(),
        access_delay: ACCESS_DELAY,
        positions,
        ..Facts::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn a_fat_tree_has_its_numbers() {
        for k in [2, 4, 6, 8] {
            let facts = fat_tree(k);
            let mut degree: HashMap<&str, u32> = HashMap::new();
            for edge in &facts.edges {
                *degree.entry(&edge.a).or_default() += 1;
                *degree.entry(&edge.b).or_default() += 1;
            }
            assert_eq!(facts.hosts.len() as u32, k.pow(3) / 4);
            assert_eq!((facts.nodes.len() - facts.hosts.len()) as u32, 5 * k * k / 4);
            assert_eq!(facts.positions.len(), facts.nodes.len());
            for node in &facts.nodes {
                let wanted = if facts.hosts.contains(node) { 1 } else { k };
                assert_eq!(degree.get(&**node), Some(&wanted), "{node}");
            }
            let pairs: HashSet<_> = facts.edges.iter().map(|edge| (&edge.a, &edge.b)).collect();
            assert_eq!((pairs.len(), facts.edges.len() as u32), (facts.edges.len(), 3 * k.pow(3) / 4));
        }
    }
}
