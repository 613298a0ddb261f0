//! A fat tree of equal switches (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3).

use super::{ACCESS_DELAY, Edge, Facts};
use crate::units::Span;

/// Propagation delay of each link: 200 m of fibre.
const LINK_DELAY: Span = Span::from_micros(1);

/// Returns a tree with (k/2)^2 core switches, k^3/4 hosts, and k pods of k/2 edge and k/2 aggregation switches.
///
/// Core switches are named c1, c2, ... and hosts h1, h2, ... In the names a1.2 (aggregation) and e1.2 (edge), 1 is the
/// pod, and 2 is the place in the pod. Flow i goes from host i to a host in the other half of the tree, so that all flows
/// cross the core.
pub(super) fn fat_tree(k: u32) -> Facts {
    let half = (k / 2) as usize;
    let edge =
        |a: &str, b: &str| Edge { a: a.to_owned(), b: b.to_owned(), km: None, rate: None, delay: LINK_DELAY };
    let cores: Vec<String> = (1..=half * half).map(|i| format!("c{i}")).collect();
    let (mut nodes, mut edges, mut hosts) = (cores.clone(), Vec::new(), Vec::<String>::new());
    for pod in 1..=k {
        let aggregation: Vec<String> = (1..=half).map(|i| format!("a{pod}.{i}")).collect();
        for (switch, cores) in aggregation.iter().zip(cores.chunks(half.max(1))) {
            nodes.push(switch.clone());
            edges.extend(cores.iter().map(|core| edge(core, switch)));
        }
        for i in 1..=half {
            let leaf = format!("e{pod}.{i}");
            nodes.push(leaf.clone());
            edges.extend(aggregation.iter().map(|switch| edge(switch, &leaf)));
            for _ in 0..half {
                let host = format!("h{}", hosts.len() + 1);
                edges.push(edge(&leaf, &host));
                nodes.push(host.clone());
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
        ..Facts::default()
    }
}
