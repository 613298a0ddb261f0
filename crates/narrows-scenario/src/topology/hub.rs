//! Networks of the package topohub, in node-link form: Topology Zoo, SNDlib, CAIDA, Gabriel graphs and backbones.

use indexmap::IndexMap;

use super::{ACCESS_DELAY, Demand, Edge, Facts};
use crate::units::Span;
use crate::value::Value;
use crate::value::python::is_printable;

/// Maximum length of a node's name in characters. Names are short, because the name of an access link contains two node
/// names.
const LONGEST: usize = 48;

/// Reads a network. The result is `None` if the text is not in node-link form.
pub(super) fn read(name: &str, text: &str) -> Option<Facts> {
    let data: Value = serde_json::from_str(text).ok()?;
    let list = |key: &str| match data.get(key) {
        Some(Value::List(list)) => Some(list),
        _ => None,
    };
    let mut raw: IndexMap<String, String> = IndexMap::new();
    for node in list("nodes")? {
        let given =
            node.get("name").filter(|name| **name != Value::Null).map(Value::display).unwrap_or_default();
        raw.insert(node.get("id")?.display(), plain(&given));
    }
    let mut shared: IndexMap<&str, usize> = IndexMap::new();
    raw.values().for_each(|name| *shared.entry(name).or_default() += 1);
    // A node without a name is called n, followed by its number. If several nodes have the same name, each gets its
    // number as a suffix.
    let called: IndexMap<&String, String> = raw
        .iter()
        .map(|(id, plain)| {
            let name = match shared.get(plain.as_str()) {
                _ if plain.is_empty() => format!("n{id}"),
                Some(1) => plain.clone(),
                _ => format!("{plain}-{id}"),
            };
            (id, name)
        })
        .collect();
    let mut positions = IndexMap::new();
    for node in list("nodes")? {
        if let Some(Value::List(at)) = node.get("pos")
            && let Some(name) = called.get(&node.get("id")?.display())
            && let [x, y] = at.as_slice()
        {
            positions.insert(name.clone(), (x.as_number()?, y.as_number()?));
        }
    }
    let name_of = |id: Option<&Value>| called.get(&id?.display()).cloned();
    let mut edges = Vec::new();
    for edge in list("edges")? {
        let (source, target) = (edge.get("source"), edge.get("target"));
        if source != target {
            edges.push(Edge {
                a: name_of(source)?,
                b: name_of(target)?,
                km: Some(edge.get("dist").and_then(Value::as_number).unwrap_or(0.0)),
                rate: None,
                delay: Span::ZERO,
            });
        }
    }
    let mut demands = Vec::new();
    if let Some(Value::Table(rows)) = data.get("graph").and_then(|graph| graph.get("demands")) {
        for (source, row) in rows {
            let Value::Table(row) = row else { continue };
            for (to, mbit) in row {
                demands.push(Demand {
                    from: called.get(source)?.clone(),
                    to: called.get(to)?.clone(),
                    mbit: mbit.as_number()?,
                });
            }
        }
    }
    Some(Facts {
        name: name.to_owned(),
        nodes: called.into_values().collect(),
        edges,
        access_delay: ACCESS_DELAY,
        demands,
        positions,
        is_geographic: true,
        ..Facts::default()
    })
}

/// Returns the name, written only with characters that a scenario permits.
fn plain(name: &str) -> String {
    let joined = name.split_whitespace().collect::<Vec<_>>().join("_");
    joined.chars().filter(|c| is_printable(*c)).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lengths_positions_and_demands_are_read() {
        let facts = read(
            "x/y",
            r#"{
                "graph": {"demands": {"0": {"2": 5.0}}},
                "nodes": [
                    {"id": 0, "name": "New York", "pos": [-74.0, 40.7]}, {"id": 1, "name": "Twin"},
                    {"id": 2, "name": "Twin"}, {"id": 3}
                ],
                "edges": [
                    {"source": "0", "target": "1", "dist": 100.0}, {"source": 1, "target": 2, "dist": 0},
                    {"source": 2, "target": 3}, {"source": 3, "target": 3, "dist": 1.0}
                ]
            }"#,
        )
        .expect("a network");
        assert_eq!(facts.nodes, ["New_York", "Twin-1", "Twin-2", "n3"]);
        let edges: Vec<_> =
            facts.edges.iter().map(|edge| (&*edge.a, &*edge.b, edge.propagation().as_nanos())).collect();
        assert_eq!(edges, [("New_York", "Twin-1", 500_000), ("Twin-1", "Twin-2", 0), ("Twin-2", "n3", 0)]);
        assert_eq!(facts.positions.into_iter().collect::<Vec<_>>(), [("New_York".to_owned(), (-74.0, 40.7))]);
        let demands: Vec<_> = facts.demands.iter().map(|d| (&*d.from, &*d.to, d.mbit)).collect();
        assert_eq!(demands, [("New_York", "Twin-2", 5.0)]);
    }
}
