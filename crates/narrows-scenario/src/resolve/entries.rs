//! Expands entries of `[[flows]]` that describe several flows: patterns, matrices, groups of topologies.

use super::layout::{LEAST_RATE, rates};
use super::{demands, layout, patterns};
use crate::error::{Error, Result, found_text};
use crate::files::Files;
use crate::model::flow::MAX_ENTRIES;
use crate::model::{App, Ends, Flow, Topology};
use crate::scenario::Scenario;
use crate::topology::{Demand, Facts};
use crate::units::{BitRate, MAX_BITS_PER_SEC, format_rate};
use crate::value::python::six_digits;

/// The traffic matrix that comes with a topology from SNDlib.
const SNDLIB: &str = "sndlib";

/// The facts of the scenario's published network, if it has one. An error is reported when the facts are needed.
pub(super) struct Published(Option<Result<Facts>>);

impl Published {
    pub(super) fn of(scenario: &Scenario, files: &dyn Files) -> Self {
        match &scenario.topology {
            Some(Topology::Named(named)) => Published(Some(layout::facts(named, files))),
            _ => Published(None),
        }
    }

    /// Returns the facts.
    ///
    /// # Errors
    /// Returns an error if there is no network with the scenario's name.
    pub(super) fn get(&self) -> Result<Option<&Facts>> {
        self.0.as_ref().map(|facts| facts.as_ref().map_err(Clone::clone)).transpose()
    }
}

/// One flow of the plan.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The flow as in the scenario. Its keys `from` and `to` can be lists or patterns.
    pub(super) flow: Flow,
    /// Number of the entry in the scenario's list of flows.
    pub(super) index: usize,
    /// Sending node; `None`: the topology's default.
    pub(super) from: Option<String>,
    /// Receiving node; `None`: the topology's default.
    pub(super) to: Option<String>,
    /// The scenario's key that defines both ends of the flow; `None`: the flow's keys `from` and `to` define them.
    ends: Option<String>,
    /// The file that defines both ends, if it is not the scenario file.
    file: String,
}

impl Entry {
    /// Returns the key of this entry in the scenario.
    pub(super) fn key(&self) -> String {
        format!("flows.{}", self.index)
    }

    /// Returns the key that defines the flow's `from` or `to`.
    pub(super) fn end(&self, which: &str) -> String {
        self.ends.clone().unwrap_or_else(|| format!("{}.{which}", self.key()))
    }

    /// Returns the error about an end of the flow, with the name of the file that defines this end.
    pub(super) fn misplaced(&self, error: Error) -> Error {
        if self.file.is_empty() { error } else { error.in_source(&self.file) }
    }
}

/// Returns the flows of a scenario, with all entries expanded.
///
/// # Errors
/// Returns an error if a matrix or topology does not define the flows.
pub(super) fn entries(scenario: &Scenario, published: &Published, files: &dyn Files) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        if flow.groups.is_some() {
            found.extend(groups(published, flow, index)?);
        } else if flow.has_pairs() {
            for (from, to) in patterns::pairs(scenario, published, flow, index)? {
                let flow = made(flow, &format!("{from}-{to}"));
                found.push(Entry {
                    flow,
                    index,
                    from: Some(from),
                    to: Some(to),
                    ends: None,
                    file: String::new(),
                });
            }
        } else if flow.demands.is_some() {
            found.extend(matrix(scenario, published, flow, index, files)?);
        } else {
            let (from, to) = (one(flow.source.as_ref()), one(flow.to.as_ref()));
            found.push(Entry { flow: flow.clone(), index, from, to, ends: None, file: String::new() });
        }
    }
    if found.len() > MAX_ENTRIES {
        let message = format!("found {} flows, expected at most {MAX_ENTRIES}", found.len());
        return Err(Error::new(message, "flows"));
    }
    Ok(found)
}

/// Returns the node, if there is one. Entries with lists are expanded into pairs.
fn one(end: Option<&Ends>) -> Option<String> {
    match end {
        Some(Ends::One(name)) => Some(name.clone()),
        Some(Ends::Many(_)) | None => None,
    }
}

fn groups(published: &Published, flow: &Flow, index: usize) -> Result<Vec<Entry>> {
    let key = format!("flows.{index}.groups");
    let groups = published.get()?.map_or(&[][..], |facts| &facts.groups);
    if groups.is_empty() {
        let word = flow.groups.map_or("", |groups| groups.word());
        let expected = "expected groups only with the topology gfc-1 or gfc-2";
        return Err(Error::new(format!("found {}, {expected}", found_text(word)), key));
    }
    let entry = |group: &crate::topology::Group| Entry {
        flow: Flow { count: group.count, groups: None, ..made(flow, &group.name) },
        index,
        from: Some(group.from.clone()),
        to: Some(group.to.clone()),
        ends: Some(key.clone()),
        file: String::new(),
    };
    Ok(groups.iter().map(entry).collect())
}

fn matrix(
    scenario: &Scenario,
    published: &Published,
    flow: &Flow,
    index: usize,
    files: &dyn Files,
) -> Result<Vec<Entry>> {
    let key = format!("flows.{index}.demands");
    let mut file = flow.demands.clone().unwrap_or_default();
    let listed: Vec<(Demand, String)> = if file == SNDLIB {
        let facts = published.get()?;
        let demands = facts.map_or(&[][..], |facts| &facts.demands);
        if demands.is_empty() {
            let what = facts.map_or_else(
                || "no topology is named".to_owned(),
                |facts| format!("{} has no demands", found_text(&facts.name)),
            );
            let hint = "(abilene and sndlib/... have demands)";
            let message = format!("found {}, expected a CSV file: {what} {hint}", found_text(&file));
            return Err(Error::new(message, key));
        }
        file.clear();
        demands.iter().map(|demand| (demand.clone(), key.clone())).collect()
    } else {
        demands::read(&file, scenario.folder(), &key, files)?
    };
    let scale = flow.scale.unwrap_or(1.0);
    let positive = listed.into_iter().filter(|(demand, _)| demand.mbit > 0.0);
    positive
        .map(|(demand, place)| {
            let flow = limited(flow, &demand, scale, index)?;
            let (from, to) = (Some(demand.from), Some(demand.to));
            Ok(Entry { flow, index, from, to, ends: Some(place), file: file.clone() })
        })
        .collect()
}

fn limited(flow: &Flow, demand: &Demand, scale: f64, index: usize) -> Result<Flow> {
    let rate = (demand.mbit * 1e6 * scale).round_ties_even() as u64;
    if !(LEAST_RATE..=MAX_BITS_PER_SEC).contains(&rate) {
        let message = format!(
            "found {} (the demand from {} to {} would be {}), expected a scale that gives a rate {}",
            six_digits(scale),
            found_text(&demand.from),
            found_text(&demand.to),
            format_rate(BitRate(rate)),
            rates()
        );
        return Err(Error::new(message, format!("flows.{index}.scale")));
    }
    let name = format!("{}-{}", demand.from, demand.to);
    let app = Some(App::always(BitRate(rate)));
    Ok(Flow { app, demands: None, scale: None, ..made(flow, &name) })
}

fn made(flow: &Flow, name: &str) -> Flow {
    let full = match &flow.name {
        Some(own) => format!("{own}.{name}"),
        None => name.to_owned(),
    };
    Flow { name: Some(full), ..flow.clone() }
}
