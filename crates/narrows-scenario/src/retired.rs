//! Names of earlier versions that are still accepted, with the names that replaced them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::data;
use crate::error::{Error, found_text};
use crate::value::{Table, Value};

/// An old name that a scenario uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Renamed {
    /// The name found.
    pub old: String,
    /// The name that replaced it.
    pub new: String,
}

#[derive(Debug, Default, Deserialize)]
struct Names {
    /// Top-level keys of a scenario.
    scenario_keys: BTreeMap<String, String>,
    /// Keys of a queue of the kind 'priority'.
    queue_keys: BTreeMap<String, String>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| data::file(include_str!("../data/retired.json")));

/// Top-level keys of a scenario. Only the tables with these keys contain keys of queues.
const WITH_QUEUES: [&str; 3] = ["topology", "links", "sweep"];

/// Returns a scenario's dotted key with current names, and records an old name.
pub(crate) fn dotted_key(key: &str, used: &mut Vec<Renamed>) -> String {
    let renamed = current_key(key);
    note(key, &renamed, used);
    renamed
}

/// Returns a scenario's dotted key with current names.
pub fn current_key(key: &str) -> String {
    let mut parts: Vec<&str> = key.split('.').collect();
    if let Some(new) = NAMES.scenario_keys.get(parts[0]) {
        parts[0] = new;
    }
    for at in 1..parts.len() {
        if parts[at - 1].ends_with("queue")
            && let Some(new) = NAMES.queue_keys.get(parts[at])
        {
            parts[at] = new;
        }
    }
    parts.join(".")
}

fn note(old: &str, new: &str, used: &mut Vec<Renamed>) {
    if old != new {
        used.push(Renamed { old: old.to_owned(), new: new.to_owned() });
    }
}

/// Returns the tables of a scenario with current names. The dotted keys in its sweep are converted, too.
///
/// # Errors
/// Returns an error if both an old name and the current name of the same key occur.
pub fn current_names(given: Table, used: &mut Vec<Renamed>) -> Result<Table, Error> {
    let mut renamed = table(given, "", used)?;
    for key in WITH_QUEUES {
        if let Some(value) = renamed.get_mut(key) {
            queues(value, used);
        }
    }
    let Some(Value::Table(sweep)) = renamed.get_mut("sweep") else { return Ok(renamed) };
    if let Some(Value::Table(vary)) = sweep.get_mut("vary") {
        *vary = table(std::mem::take(vary), "sweep.vary", used)?;
    }
    if let Some(Value::List(cases)) = sweep.get_mut("case") {
        for (i, case) in cases.iter_mut().enumerate() {
            if let Value::Table(case) = case
                && let Some(Value::Table(set)) = case.get_mut("set")
            {
                *set = table(std::mem::take(set), &format!("sweep.case.{i}.set"), used)?;
            }
        }
    }
    Ok(renamed)
}

/// Gives the keys of queues within a value their current names.
fn queues(value: &mut Value, used: &mut Vec<Renamed>) {
    match value {
        Value::List(list) => list.iter_mut().for_each(|item| queues(item, used)),
        Value::Table(table) => {
            let is_priority = table.get("kind").and_then(Value::as_text) == Some("priority");
            let has_current = NAMES.queue_keys.values().any(|new| table.contains_key(new));
            if is_priority && !has_current {
                let pairs = std::mem::take(table).into_iter().map(|(key, inner)| {
                    let new = NAMES.queue_keys.get(&key).cloned().unwrap_or_else(|| key.clone());
                    note(&key, &new, used);
                    (new, inner)
                });
                *table = pairs.collect();
            }
            table.values_mut().for_each(|inner| queues(inner, used));
        }
        _ => {}
    }
}

/// Returns a table, whose keys are dotted keys of a scenario, with current names in the same order.
fn table(given: Table, at: &str, used: &mut Vec<Renamed>) -> Result<Table, Error> {
    for key in given.keys() {
        let new = current_key(key);
        if new != *key && given.contains_key(&new) {
            let message = format!("found also {}, its old name, expected one of them", found_text(key));
            return Err(Error::new(message, if at.is_empty() { new } else { format!("{at}.{new}") }));
        }
    }
    Ok(given.into_iter().map(|(key, value)| (dotted_key(&key, used), value)).collect())
}
