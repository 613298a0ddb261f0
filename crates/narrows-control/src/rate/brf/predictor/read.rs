//! Reads the file of a model (`docs/reference/bandwidth-model.md`). The file may come from another host, so each value
//! is checked, and sizes are limited.

use serde_json::{Map, Value};

use super::model::{DEPTH_MAX, LENGTH_MAX, Node, Parts, TREES_MAX, VALUE_MAX};
use crate::parameter::Problem;
use crate::rate::kit::features::NAMES;

const FORMAT: &str = "narrows-bandwidth-model";
const VERSION: u64 = 1;
const KEYS: [&str; 6] = ["format", "version", "base", "unlimited_bps", "trees", "about"];
/// Maximum number of nodes of a tree: a complete tree of depth `DEPTH_MAX`.
const NODES_MAX: usize = (2 << DEPTH_MAX) - 1;

/// Returns the problem at a key of the model.
fn problem(key: &str, found: &Value, expected: impl Into<String>) -> Problem {
    let text = match found {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "a table".to_owned(),
        simple => simple.to_string().chars().take(40).collect(),
    };
    Problem::relation("predictor", format!("{text} at {key} of the model"), expected)
}

pub(super) fn parts(text: &str) -> Result<Parts, Problem> {
    if text.len() > LENGTH_MAX {
        let found = format!("a model of {} bytes", text.len());
        return Err(Problem::relation("predictor", found, format!("at most {LENGTH_MAX} bytes")));
    }
    let parsed: Value = serde_json::from_str(text).map_err(|error| {
        let found = format!("no JSON in line {}, column {}", error.line(), error.column());
        Problem::relation("predictor", found, "off, average, or the file of a model in JSON")
    })?;
    let Value::Object(model) = &parsed else {
        return Err(problem("the top", &parsed, "a table"));
    };
    header(model)?;
    let unlimited = match model.get("unlimited_bps") {
        None => f64::INFINITY,
        Some(value) => value
            .as_f64()
            .filter(|rate| *rate > 0.0)
            .ok_or_else(|| problem("unlimited_bps", value, "a number above 0"))?,
    };
    let found = model.get("trees").unwrap_or(&Value::Null);
    let trees = found
        .as_array()
        .filter(|trees| trees.len() <= TREES_MAX)
        .ok_or_else(|| problem("trees", found, format!("a list of at most {TREES_MAX} trees")))?;
    let trees = (0..).zip(trees).map(|(number, nodes)| tree(number, nodes)).collect::<Result<_, _>>()?;
    Ok(Parts { base: number("base", model.get("base").unwrap_or(&Value::Null))?, unlimited, trees })
}

fn header(model: &Map<String, Value>) -> Result<(), Problem> {
    if let Some(key) = model.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let found: String = format!("{key:?}").chars().take(40).collect();
        let expected = format!("a key of a model: {}", KEYS.join(", "));
        return Err(Problem::relation("predictor", found, expected));
    }
    let given = |key| model.get(key).unwrap_or(&Value::Null);
    if given("format") != FORMAT {
        return Err(problem("format", given("format"), format!("{FORMAT:?}")));
    }
    if given("version").as_u64() != Some(VERSION) {
        return Err(problem("version", given("version"), VERSION.to_string()));
    }
    Ok(())
}

fn number(key: &str, value: &Value) -> Result<f64, Problem> {
    value
        .as_f64()
        .filter(|number| number.abs() <= VALUE_MAX)
        .ok_or_else(|| problem(key, value, format!("a number from -{VALUE_MAX} to {VALUE_MAX}")))
}

fn tree(number: usize, found: &Value) -> Result<Vec<Node>, Problem> {
    let nodes = found.as_array().filter(|nodes| (1..=NODES_MAX).contains(&nodes.len())).ok_or_else(|| {
        problem(&format!("trees.{number}"), found, format!("a list of 1 to {NODES_MAX} nodes"))
    })?;
    // The depth of each node. A parent comes before its children, so a node's depth is known when the node is
    // read.
    let mut depths = vec![0; nodes.len()];
    let mut read = Vec::with_capacity(nodes.len());
    for (at, found) in nodes.iter().enumerate() {
        let key = format!("trees.{number}.{at}");
        let node = node(&key, found, at, nodes.len())?;
        if let Node::Split { low, high, .. } = node {
            let depth = depths[at] + 1;
            if depth > DEPTH_MAX {
                return Err(problem(
                    &key,
                    found,
                    format!("a leaf, because a tree has at most {DEPTH_MAX} levels"),
                ));
            }
            for child in [low, high] {
                let deepest = &mut depths[usize::from(child)];
                *deepest = depth.max(*deepest);
            }
        }
        read.push(node);
    }
    Ok(read)
}

/// Reads a leaf (a number) or a comparison (feature, threshold, and the numbers of the nodes for lower and higher
/// values).
fn node(key: &str, found: &Value, at: usize, nodes: usize) -> Result<Node, Problem> {
    let Value::Array(items) = found else { return number(key, found).map(Node::Leaf) };
    let [name, threshold, low, high] = items.as_slice() else {
        return Err(problem(key, found, "a number, or a list of feature, threshold and two nodes"));
    };
    let feature =
        NAMES.iter().position(|known| name == known).and_then(|position| u8::try_from(position).ok());
    let feature = feature
        .ok_or_else(|| problem(&format!("{key}.0"), name, format!("a feature: {}", NAMES.join(", "))))?;
    let threshold = threshold.as_f64().ok_or_else(|| problem(&format!("{key}.1"), threshold, "a number"))?;
    let child = |place: usize, found: &Value| {
        let child = found.as_u64().and_then(|child| usize::try_from(child).ok());
        child
            .filter(|child| (at + 1..nodes).contains(child))
            .and_then(|child| u16::try_from(child).ok())
            .ok_or_else(|| {
                let expected = format!("the number of a later node, below {nodes}");
                problem(&format!("{key}.{place}"), found, expected)
            })
    };
    Ok(Node::Split { feature, threshold, low: child(2, low)?, high: child(3, high)? })
}
