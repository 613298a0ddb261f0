//! Facts of published networks: nodes, links with lengths and capacities, traffic.

mod fat_tree;
mod hub;
mod published;

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use crate::error::{Error, Result, found_text, hint_listing};
use crate::files::Files;
use crate::units::Span;

/// Delay of fibre, in ns per km: light covers 200 km in a millisecond (PAC-30).
const NANOS_PER_KM: f64 = 5_000.0;

/// A link with the same properties in both directions.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) a: String,
    pub(crate) b: String,
    /// Length; `None` if the source gives no length.
    pub(crate) km: Option<f64>,
    /// Capacity in bit/s; `None` if the source gives no capacity.
    pub(crate) rate: Option<u64>,
    /// One-way propagation delay if there is no length.
    pub(crate) delay: Span,
}

impl Edge {
    /// Returns the one-way propagation delay: computed from the length if there is one.
    pub(crate) fn propagation(&self) -> Span {
        self.km.map_or(self.delay, |km| Span::from_nanos((km * NANOS_PER_KM).round_ties_even() as u64))
    }
}

/// Equal flows that belong to a network, as in the generic fairness configurations (GFC).
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) count: u32,
}

/// Traffic from one node to another.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) mbit: f64,
}

/// A network.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The name by which a scenario refers to the network.
    pub(crate) name: String,
    pub(crate) nodes: Vec<String>,
    pub(crate) edges: Vec<Edge>,
    /// Nodes that are hosts. All other nodes are switches; if a flow ends at a switch, the switch gets a host.
    pub(crate) hosts: HashSet<String>,
    /// Propagation delay of a host's link unless the scenario says otherwise.
    pub(crate) access_delay: Span,
    pub(crate) groups: Vec<Group>,
    pub(crate) demands: Vec<Demand>,
    /// Default pairs of source and destination, which the flows of a scenario use in turn.
    pub(crate) endpoints: Vec<(String, String)>,
    /// Positions for drawing nodes: longitude and latitude, or coordinates in a plane with y upwards.
    pub(crate) positions: IndexMap<String, (f64, f64)>,
    /// Whether positions are degrees.
    pub(crate) is_geographic: bool,
}

/// Default of [`Facts::access_delay`].
const ACCESS_DELAY: Span = Span::from_millis(1);
/// Networks that need no other package and no parameter, each with its meaning.
const OWN: [(&str, &str); 4] = [
    ("abilene", "Abilene in the variant of SNDlib (PAC-30)."),
    (
        "abilene-zoo",
        "The Topology Zoo's variant (PAC-31), without the second node in Atlanta. Every link is an OC-192.",
    ),
    ("gfc-1", "Five switches in a row with 23 flows. The bottlenecks are the links at both ends."),
    ("gfc-2", "Seven switches in a row with 22 flows. Every link is the bottleneck of some flows."),
];
/// Name of the only network that has a parameter.
const FAT_TREE: &str = "fat-tree";
const ABOUT_FAT_TREE: &str =
    "A tree with (k/2)^2 core switches, k^3/4 hosts, and k pods of k/2 edge and k/2 aggregation switches.";

/// Returns the names of the networks that are a part of this crate, each with its meaning.
pub fn networks() -> Vec<(&'static str, &'static str)> {
    OWN.into_iter().chain([(FAT_TREE, ABOUT_FAT_TREE)]).collect()
}

/// Returns the network with this name; `k` is the parameter of the fat tree.
///
/// # Errors
/// Returns an error if `name` or `k` is wrong. The error has the key in the table `[topology]`.
pub(crate) fn find(name: &str, k: Option<u32>, files: &dyn Files) -> Result<Facts> {
    if name == FAT_TREE {
        let Some(k) = k else {
            return Err(Error::new("found nothing, expected this key with the fat tree", "k"));
        };
        return Ok(fat_tree::fat_tree(k));
    }
    if let Some(k) = k {
        return Err(Error::new(format!("found {k}, expected this key only with name = '{FAT_TREE}'"), "k"));
    }
    if let Some(facts) = published::find(name) {
        return Ok(facts);
    }
    let networks = files.networks();
    let known = networks.clone().unwrap_or_default();
    if known.iter().any(|network| network == name) {
        let facts = files.network(name).and_then(|text| hub::read(name, &text));
        let message = format!("found {}, expected a network in node-link form", found_text(name));
        return facts.ok_or_else(|| Error::new(message, "name"));
    }
    if name.contains('/') && networks.is_none() {
        let remedy = "try: pip install 'narrows[topologies]'";
        let message = format!("found {}, a network of the package topohub; {remedy}", found_text(name));
        return Err(Error::new(message, "name"));
    }
    let names = self::networks().into_iter().map(|(own, _)| own).chain(known.iter().map(String::as_str));
    let near = hint_listing(name, names, "networks");
    Err(Error::new(format!("found {}, expected a network{near}", found_text(name)), "name"))
}

/// Returns groups of connected nodes, the largest group first. Within a group, the order is that of `nodes`.
pub(crate) fn islands<'n>(nodes: &'n [String], links: &[(&'n str, &'n str)]) -> Vec<Vec<&'n str>> {
    let mut near: IndexMap<&str, Vec<&str>> = nodes.iter().map(|node| (node.as_str(), Vec::new())).collect();
    for &(a, b) in links {
        near.entry(a).or_default().push(b);
        near.entry(b).or_default().push(a);
    }
    let rank: HashMap<&str, usize> = near.keys().enumerate().map(|(place, node)| (*node, place)).collect();
    let mut islands: Vec<Vec<&str>> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for &node in near.keys() {
        if !seen.insert(node) {
            continue;
        }
        let (mut island, mut waiting) = (vec![node], vec![node]);
        while let Some(next) = waiting.pop() {
            for &other in near.get(next).into_iter().flatten() {
                if seen.insert(other) {
                    island.push(other);
                    waiting.push(other);
                }
            }
        }
        island.sort_by_key(|node| rank.get(node));
        islands.push(island);
    }
    islands.sort_by_key(|island| std::cmp::Reverse(island.len()));
    islands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn islands_are_found_largest_first() {
        let nodes = ["a", "b", "c", "d"].map(str::to_owned);
        let found = islands(&nodes, &[("b", "c"), ("c", "d")]);
        assert_eq!(found, [vec!["b", "c", "d"], vec!["a"]]);
    }
}
