//! Published networks whose facts are in data files: Abilene in two variants, and the configurations GFC-1 and GFC-2. The
//! Python modules `topology/abilene.py` and `topology/gfc.py` have the sources.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Demand, Edge, Facts, Group};
use crate::data;
use crate::units::Span;

#[derive(Debug, Default, Deserialize)]
struct Abilene {
    access_delay_ns: u64,
    nodes: Vec<Node>,
    links: Vec<Length>,
    /// Demands from the node of a row to the node of a column.
    demands_mbit_per_s: Vec<Vec<f64>>,
    /// The Topology Zoo's variant: its capacity, and the node that it does not have.
    zoo: Zoo,
}

#[derive(Debug, Default, Deserialize)]
struct Node {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
struct Length {
    a: String,
    b: String,
    km: f64,
    bit_per_s: u64,
}

#[derive(Debug, Default, Deserialize)]
struct Zoo {
    bit_per_s: u64,
    without: String,
}

#[derive(Debug, Default, Deserialize)]
struct Row {
    /// The links R1-R2, R2-R3, ...
    links: Vec<Hop>,
    groups: Vec<RowGroup>,
}

#[derive(Debug, Default, Deserialize)]
struct Hop {
    mbit_per_s: u64,
    delay_ns: u64,
}

#[derive(Debug, Default, Deserialize)]
struct RowGroup {
    name: String,
    from: String,
    to: String,
    count: u32,
}

#[derive(Debug, Default, Deserialize)]
struct Gfc {
    access_delay_ns: u64,
    #[serde(flatten)]
    rows: BTreeMap<String, Row>,
}

/// Returns the network with this name.
pub(super) fn find(name: &str) -> Option<Facts> {
    match name {
        "abilene" => Some(abilene(name, false)),
        "abilene-zoo" => Some(abilene(name, true)),
        "gfc-1" | "gfc-2" => row(name),
        _ => None,
    }
}

fn abilene(name: &str, is_zoo: bool) -> Facts {
    let data: Abilene = data::file(include_str!("../../data/abilene.json"));
    let is_left_out = |node: &str| is_zoo && node == data.zoo.without;
    let names: Vec<&String> = data.nodes.iter().map(|node| &node.name).collect();
    let edges = data.links.iter().filter(|link| !is_left_out(&link.a) && !is_left_out(&link.b));
    let demands = names.iter().zip(&data.demands_mbit_per_s).flat_map(|(from, row)| {
        let given = names.iter().zip(row).filter(|(_, mbit)| **mbit != 0.0);
        given.map(|(to, mbit)| Demand { from: (*from).clone(), to: (*to).clone(), mbit: *mbit })
    });
    Facts {
        name: name.to_owned(),
        nodes: names.iter().filter(|node| !is_left_out(node)).map(|node| (*node).clone()).collect(),
        edges: edges
            .map(|link| Edge {
                a: link.a.clone(),
                b: link.b.clone(),
                km: Some(link.km),
                rate: Some(if is_zoo { data.zoo.bit_per_s } else { link.bit_per_s }),
                delay: Span::ZERO,
            })
            .collect(),
        access_delay: Span::from_nanos(data.access_delay_ns),
        demands: demands.filter(|demand| !is_left_out(&demand.from) && !is_left_out(&demand.to)).collect(),
        ..Facts::default()
    }
}

fn row(name: &str) -> Option<Facts> {
    let mut data: Gfc = data::file(include_str!("../../data/gfc.json"));
    let row = data.rows.remove(name)?;
    let nodes: Vec<String> = (1..=row.links.len() + 1).map(|i| format!("R{i}")).collect();
    let edges = nodes.iter().zip(nodes.iter().skip(1)).zip(&row.links).map(|((a, b), hop)| Edge {
        a: a.clone(),
        b: b.clone(),
        km: None,
        rate: Some(hop.mbit_per_s.saturating_mul(1_000_000)),
        delay: Span::from_nanos(hop.delay_ns),
    });
    let group =
        |group: RowGroup| Group { name: group.name, from: group.from, to: group.to, count: group.count };
    Some(Facts {
        name: name.to_owned(),
        edges: edges.collect(),
        nodes: nodes.clone(),
        access_delay: Span::from_nanos(data.access_delay_ns),
        groups: row.groups.into_iter().map(group).collect(),
        ..Facts::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_files_are_complete() {
        let sizes =
            |name| find(name).map(|facts| (facts.nodes.len(), facts.edges.len(), facts.demands.len()));
        assert_eq!(sizes("abilene"), Some((12, 15, 12 * 11)));
        assert_eq!(sizes("abilene-zoo"), Some((11, 14, 11 * 10)));
        assert_eq!(sizes("gfc-1"), Some((5, 4, 0)));
        assert_eq!(find("gfc-2").map(|facts| facts.groups.len()), Some(12));
    }
}
