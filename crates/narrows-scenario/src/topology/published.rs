//! Published networks whose facts are in data files: Abilene in two variants, and the configurations GFC-1 and GFC-2.
//!
//! Abilene was the backbone of the United States' research networks until 2007. PAC-30 is SNDlib's variant (Orlowski,
//! Wessäly, Pióro and Tomaszewski, "SNDlib 1.0 - Survivable Network Design Library", Networks 55(3), 2010;
//! sndlib.put.poznan.pl, network "abilene"). PAC-31 is the Topology Zoo's variant (Knight et al., "The Internet Topology
//! Zoo", IEEE JSAC 29(9), 2011; 2005-02). Names, lengths and demands of both variants come from SNDlib. The sum of the
//! demands is 3 Tbit/s, far more than the links carry, so a scenario scales them down. The path from Seattle to New York
//! crosses two access links each way, and has an RTT of 50 ms (PAC-32).
//!
//! The generic fairness configurations were made for explicit-rate control of ATM's ABR service: R. J. Simcoe, "Test
//! Configurations for Fairness and Other Tests", ATM Forum/94-0557, July 1994. This document was not available to us.
//! Capacities, delays and groups come from the description of both configurations in the documentation of NeST (NITK
//! Surathkal). For GFC-2 we use the capacities of NeST's description. The usual max-min rates of GFC-2 are A 10, B 5, C
//! 35, D 35, E 35, F 10, G 5 and H 52.5 Mbit/s (quoted from memory), and the capacities in the data file give all eight
//! rates. With the capacities that NeST's program sets (50, 150, 150, 100, 100, 100 Mbit/s), the max-min rates differ
//! from the usual rates. Our access links have a high rate. In NeST, all flows of a group share an access link of 50
//! Mbit/s, which would be an additional bottleneck.

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
    longitude: f64,
    latitude: f64,
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
    let drawn = data.nodes.iter().filter(|node| !is_left_out(&node.name));
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
        positions: drawn.map(|node| (node.name.clone(), (node.longitude, node.latitude))).collect(),
        is_geographic: true,
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
        positions: nodes.iter().enumerate().map(|(i, node)| (node.clone(), (i as f64, 0.0))).collect(),
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
    fn abilene_is_that_of_pac_30() {
        let facts = find("abilene").expect("a network");
        assert_eq!(facts.positions.len(), 12);
        assert_eq!(facts.edges.iter().filter_map(|edge| edge.km).sum::<f64>(), 14_053.0);
        let slow: Vec<_> = facts.edges.iter().filter(|edge| edge.rate != Some(9_920_000_000)).collect();
        assert_eq!(slow.len(), 1);
        assert_eq!((&*slow[0].a, &*slow[0].b, slow[0].rate), ("ATLAng", "IPLSng", Some(2_480_000_000)));
        let delay = |a: &str, b: &str| {
            let edge = facts.edges.iter().find(|edge| (&*edge.a, &*edge.b) == (a, b)).expect("an edge");
            edge.propagation().as_nanos()
        };
        assert_eq!((delay("ATLAM5", "ATLAng"), delay("HSTNng", "LOSAng")), (665_000, 10_980_000));
        // SNDlib: 3 Tbit/s in all.
        assert_eq!(facts.demands.iter().map(|demand| demand.mbit).sum::<f64>(), 3_000_002.0);
    }

    #[test]
    fn abilene_zoo_is_that_of_pac_31() {
        let facts = find("abilene-zoo").expect("a network");
        assert!(facts.edges.iter().all(|edge| edge.rate == Some(9_920_000_000)));
        assert!(facts.edges.iter().all(|edge| edge.a != "ATLAM5" && edge.b != "ATLAM5"));
        assert!(!facts.nodes.contains(&"ATLAM5".to_owned()) && !facts.positions.contains_key("ATLAM5"));
    }

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
