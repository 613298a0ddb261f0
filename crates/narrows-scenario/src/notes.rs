//! Finds properties of a scenario that readers of its results should know. For example, flows lack the rates or marks
//! that they need, or all flows start at the same time.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use narrows_control::catalogue::{Entry, Preset};
use narrows_control::parameter::{Takes, Value as BaseValue};
use narrows_control::rate::registry;

use crate::error::Result;
use crate::model::{Queue, RateController, Topology, Transport, stacks};
use crate::resolve::{Settings, starts};
use crate::scenario::Scenario;
use crate::sweep::Run;
use crate::units::{BitRate, Span, format_duration, format_rate};
use crate::value::Value;
use crate::value::python::six_digits;

/// Returns notes for readers of the results.
///
/// There is a sentence for each congestion controller that needs rates or marks but gets none, and for each preset.
/// Another sentence is about flows that start at the same time.
///
/// # Errors
/// Returns an error if an entry of flows does not define its flows.
pub fn notes(runs: &[Run], settings: &Settings<'_>) -> Result<Vec<String>> {
    // Runs of a point differ only in their seeds.
    let mut points: Vec<&Arc<Scenario>> = Vec::new();
    for run in runs {
        if !points.last().is_some_and(|point| Arc::ptr_eq(point, &run.point)) {
            points.push(&run.point);
        }
    }
    let mut notes = unserved(&points, settings);
    notes.extend(unmarked(&points, settings));
    notes.extend(presets(&points, settings));
    notes.extend(together(&points, settings)?);
    Ok(notes)
}

/// Returns the names of the flows' congestion controllers in the catalogue.
fn names(scenario: &Scenario) -> impl Iterator<Item = &str> {
    scenario.flows.iter().filter_map(|flow| stacks::catalogue_name(flow.transport.word(), &flow.cc.name))
}

/// Returns a sentence for each congestion controller whose rate controller is missing in a run.
///
/// A missing rate controller is not an error, because a user may want to see how the congestion controller behaves
/// without one. Without a rate, most of these congestion controllers behave like CUBIC.
fn unserved(points: &[&Arc<Scenario>], settings: &Settings<'_>) -> Vec<String> {
    let mut missing: IndexMap<&str, &str> = IndexMap::new();
    for point in points {
        let kinds: Vec<&str> = point.rate_controllers.iter().map(signal).collect();
        for name in names(point) {
            let service = settings.catalogue.find(name).and_then(|(row, _)| row.needs.service.as_ref());
            if let Some(service) = service.filter(|service| !kinds.contains(&service.kind)) {
                missing.insert(name, service.kind);
            }
        }
    }
    let sentence = |(cc, kind): (&str, &str)| {
        format!(
            "{cc} asks the network for its rate, but no [[rate_controllers]] of kind '{kind}' exists: the results show \
             its behaviour without an answer"
        )
    };
    missing.into_iter().map(sentence).collect()
}

/// Returns the kind of rate controller whose feedback senders see.
fn signal(controller: &RateController) -> &str {
    // With the parameters for unmodified hosts, rate controllers write rates into ACKs, in BRF's TCP option.
    let alternatives = registry::find(&controller.kind).map(registry::Entry::on_switches).unwrap_or_default();
    let has = |(key, value): (&String, &BaseValue)| match (controller.params.get(key), value) {
        (Some(Value::Text(text)), BaseValue::Word(word)) => text == word,
        (Some(Value::Bool(given)), BaseValue::Flag(flag)) => given == flag,
        (Some(given), BaseValue::Number(number)) => given.as_number() == Some(*number),
        _ => false,
    };
    match alternatives.first() {
        Some(needed) if needed.iter().all(has) => "brf",
        _ => &controller.kind,
    }
}

/// Returns a sentence for each congestion controller that reacts to marks and has a run without marking queues.
fn unmarked(points: &[&Arc<Scenario>], settings: &Settings<'_>) -> Vec<String> {
    let mut missing: IndexMap<&str, &str> = IndexMap::new();
    for point in points.iter().filter(|point| !queues(point).any(marks)) {
        for name in names(point) {
            if let Some(other) = settings.catalogue.find(name).and_then(|(row, _)| row.needs.marks_or_else) {
                missing.insert(name, other);
            }
        }
    }
    let sentence = |(cc, other): (&str, &str)| {
        let missing = "no queue marks (kind 'threshold', or ecn = true)";
        format!("{cc} reacts to ECN marks, but {missing}: the results show {other}")
    };
    missing.into_iter().map(sentence).collect()
}

fn queues(scenario: &Scenario) -> impl Iterator<Item = &Queue> {
    let of_topology = match &scenario.topology {
        Some(Topology::Named(named)) => named.queue.as_ref(),
        Some(topology) => topology.traits().and_then(|traits| traits.queue.as_ref()),
        None => None,
    };
    let of_links = scenario.links.iter().flat_map(|link| {
        let back = link.back.as_ref().and_then(|back| back.queue.as_ref());
        link.traits.queue.iter().chain(back)
    });
    of_topology.into_iter().chain(of_links)
}

fn marks(queue: &Queue) -> bool {
    match queue {
        Queue::Threshold(_) => true,
        Queue::Red(queue) => queue.ecn,
        Queue::Codel(queue) => queue.ecn,
        Queue::FqCodel(queue) => queue.ecn,
        Queue::Fifo(_) | Queue::Priority(_) | Queue::Htb(_) => false,
    }
}

/// Returns a sentence for each preset. A preset is a name for an algorithm with certain parameters.
fn presets(points: &[&Arc<Scenario>], settings: &Settings<'_>) -> Vec<String> {
    let used: IndexSet<&str> = points.iter().flat_map(|point| names(point)).collect();
    used.into_iter()
        .filter_map(|name| {
            let (row, preset) = settings.catalogue.find(name)?;
            let written = spelled(row, preset?);
            Some(format!("{name} is a preset: cc = {written} gives the same results"))
        })
        .collect()
}

/// Returns the value of `cc` for a preset: the algorithm with the preset's parameters.
fn spelled(row: &Entry, preset: &Preset) -> String {
    let params = preset.params();
    let written = params.iter().map(|(name, value)| {
        let takes = row.parameter(name).map(|parameter| parameter.shape.takes);
        let text = match (value, takes) {
            (BaseValue::Flag(flag), _) => flag.to_string(),
            (BaseValue::Word(word), _) => format!("\"{word}\""),
            (BaseValue::Number(n), Some(Takes::Time { .. })) => {
                format!("\"{}\"", format_duration(Span::from_nanos(n.round_ties_even() as u64)))
            }
            (BaseValue::Number(n), Some(Takes::Rate { .. })) => {
                let bytes = n.round_ties_even() as u64;
                format!("\"{}\"", format_rate(BitRate(bytes.saturating_mul(8))))
            }
            (BaseValue::Number(n), Some(Takes::Number { .. })) => six_digits(*n),
            (BaseValue::Number(n), _) => n.round_ties_even().to_string(),
        };
        format!("{name} = {text}")
    });
    format!("{{ name = \"{}\", {} }}", row.name, written.collect::<Vec<_>>().join(", "))
}

/// Returns a sentence if TCP flows start at the same time, with the largest number of such flows in a run.
///
/// If flows start at the same time, the results depend on the order of their first packets. This order decides, for
/// example, which flows lose packets.
fn together(points: &[&Arc<Scenario>], settings: &Settings<'_>) -> Result<Option<String>> {
    let mut most = 0;
    for point in points {
        let mut flows: HashMap<Span, u64> = HashMap::new();
        for flow in starts(point, settings)? {
            let can_vary =
                flow.transport != Transport::Udp && flow.program.is_none() && flow.arrivals.is_none();
            if can_vary && flow.start_jitter == Span::ZERO {
                let count = if flow.spacing == Span::ZERO { u64::from(flow.count) } else { 1 };
                *flows.entry(flow.start).or_default() += count;
            }
        }
        most = flows.into_values().max().unwrap_or(0).max(most);
    }
    Ok((most >= 2).then(|| {
        format!(
            "{most} flows start at the same time, so the order of their first packets can decide their shares. To \
             start each at a random time, set start_jitter = '1ms'"
        )
    }))
}
