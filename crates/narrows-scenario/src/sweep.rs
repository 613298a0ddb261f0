//! Overrides by dotted key, and the runs of a sweep.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::error::{Error, Result, found, found_text, hint};
use crate::model::flow::{DEFAULT_CC, result_names};
use crate::model::program::default_name;
use crate::model::{MAX_SEED, stacks};
use crate::scenario::Scenario;
use crate::value::{Table, Value, toml};

/// Maximum number of points in a sweep.
const MAX_POINTS: usize = 10_000;
/// Maximum number of runs: points times seeds.
const MAX_RUNS: u64 = 100_000;
/// Maximum number of parts of a dotted key.
const DEEPEST: usize = 64;

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct Run {
    /// Number of the run, from 0.
    pub id: usize,
    /// The scenario of the run's point, without a sweep. Its seed is the seed of the first run at this point.
    pub point: Arc<Scenario>,
    /// Seed of the run.
    pub seed: u64,
    /// Values of the sweep's factors: `case` and the keys of `sweep.vary`.
    pub factors: Arc<IndexMap<String, Value>>,
}

impl Run {
    /// Returns the scenario of this run, without a sweep.
    pub fn scenario(&self) -> Scenario {
        Scenario::clone(&self.point).with_seed(self.seed)
    }
}

/// Parses `key=value` of a command line. The value is TOML, or a string without quotes.
///
/// # Errors
/// Returns an error if there is no `=`.
pub fn parse_override(text: &str) -> Result<(String, Value)> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            let read = toml::parse_value(value).unwrap_or_else(|| value.trim().into());
            Ok((key.trim().to_owned(), read))
        }
        _ => Err(Error::new(format!("found {}, expected key=value", found_text(text)), "--set")),
    }
}

/// Sets a dotted key.
///
/// Parts of the key are names of tables. A part that contains dots is in quotes, as in TOML. For a list of tables, a
/// part is the number or name of an entry, or `*` for all entries. The name of a flow is its name in results, e.g.
/// `bbr` for a BBR flow whose name is not set.
///
/// # Errors
/// Returns an error if the key is not a dotted key, or leads to a table or entry that does not exist.
pub fn override_key(data: &mut Table, key: &str, value: &Value) -> Result<()> {
    let parts = parts(key).filter(|parts| parts.len() <= DEEPEST).ok_or_else(|| {
        Error::new(format!("found {}, expected a dotted key such as 'topology.rate'", found_text(key)), "")
    })?;
    let mut root = Value::Table(std::mem::take(data));
    let result = set(&mut root, &parts, value);
    if let Value::Table(table) = root {
        *data = table;
    }
    result
}

/// Sets the key with these parts at all places to which they lead.
fn set(root: &mut Value, parts: &[String], value: &Value) -> Result<()> {
    let mut places = vec![root];
    for (depth, part) in parts.iter().enumerate() {
        let is_last = depth + 1 == parts.len();
        let is_cc = depth == 2 && parts[0] == "flows" && part == "cc";
        let mut following = Vec::new();
        for place in places {
            match place {
                Value::Table(table) if is_last => {
                    table.insert(part.clone(), value.clone());
                }
                Value::Table(table) => {
                    if is_cc && !matches!(table.get(part), Some(Value::Table(_))) {
                        // The key sets a parameter, so replace the controller's name with a table.
                        let named = Table::from_iter([("name".to_owned(), cc_name(table.get(part)))]);
                        table.insert(part.clone(), Value::Table(named));
                    }
                    let inner = table.entry(part.clone());
                    following.push(inner.or_insert_with(|| Value::Table(Table::new())));
                }
                Value::List(list) => {
                    // The numbers are in ascending order.
                    let numbers = entries(list, part, &parts[..=depth].join("."))?;
                    for (i, entry) in list.iter_mut().enumerate() {
                        if numbers.binary_search(&i).is_err() {
                            continue;
                        }
                        if is_last {
                            *entry = value.clone();
                        } else {
                            following.push(entry);
                        }
                    }
                }
                other => {
                    let message = format!("found {}, expected a table", found(other));
                    return Err(Error::new(message, parts[..depth].join(".")));
                }
            }
        }
        places = following;
    }
    Ok(())
}

/// Returns the parts of a dotted key, without their quotes. The result is `None` if the key is not valid.
fn parts(key: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = key;
    loop {
        let (part, after) = match rest.chars().next()? {
            quote @ ('"' | '\'') => rest[1..].split_once(quote)?,
            _ => {
                let end = rest.find(['.', '"', '\'']).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part.to_owned());
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Some(parts),
            None => return None,
        }
    }
}

/// Returns the numbers of the entries that a part of a key names.
fn entries(list: &[Value], part: &str, key: &str) -> Result<Vec<usize>> {
    if part == "*" {
        return Ok((0..list.len()).collect());
    }
    let is_number = part.len() < 10 && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(index) = part.parse::<usize>().ok().filter(|index| is_number && *index < list.len()) {
        return Ok(vec![index]);
    }
    let tables: Vec<(usize, &Table)> = list
        .iter()
        .enumerate()
        .filter_map(|(i, entry)| if let Value::Table(table) = entry { Some((i, table)) } else { None })
        .collect();
    let names: Vec<(usize, String)> = if key == format!("flows.{part}") {
        let flows: Vec<_> =
            tables.iter().map(|(_, flow)| (given(flow, "name").map(Value::display), kind(flow))).collect();
        tables.iter().map(|(i, _)| *i).zip(result_names(&flows)).collect()
    } else {
        tables.iter().filter_map(|(i, table)| Some((*i, table.get("name")?.display()))).collect()
    };
    let matching: Vec<usize> = names.iter().filter(|(_, name)| name == part).map(|(i, _)| *i).collect();
    if matching.is_empty() {
        let what = match list.len() {
            0 => "an entry (there is none)".to_owned(),
            n => format!("an entry from 0 to {}", n - 1),
        };
        let known = hint(part, names.iter().map(|(_, name)| name.as_str()));
        return Err(Error::new(format!("found {}, expected {what}{known}", found_text(part)), key));
    }
    Ok(matching)
}

/// Returns the value of a key, if it has one.
fn given<'t>(table: &'t Table, key: &str) -> Option<&'t Value> {
    table.get(key).filter(|value| **value != Value::Null)
}

/// Returns the default name of a flow, from values that have not been checked yet.
fn kind(flow: &Table) -> String {
    if let Some(program @ Value::Table(_)) = flow.get("program") {
        let client = program.get("client").map_or_else(|| "None".to_owned(), Value::display);
        if let Some(name) = default_name(&client) {
            return name;
        }
    }
    let cc = cc_name(flow.get("cc")).display();
    match given(flow, "transport") {
        None => cc,
        Some(Value::Text(transport)) if transport == "tcp" => cc,
        Some(Value::Text(transport)) if transport == "udp" => "udp".to_owned(),
        Some(other) => stacks::default_name(&other.display(), &cc),
    }
}

/// Returns the name of a flow's congestion controller, from a value of `cc` that has not been checked yet.
fn cc_name(cc: Option<&Value>) -> Value {
    let name = match cc {
        Some(Value::Table(table)) => table.get("name"),
        other => other,
    };
    name.filter(|name| **name != Value::Null).cloned().unwrap_or_else(|| DEFAULT_CC.into())
}

/// Returns the runs of a scenario: each case, with each combination of the varied values, with each seed.
///
/// # Arguments
/// * `scenario`: the scenario, with or without a sweep.
/// * `seeds`: number of seeds (`None`: the number in the scenario's sweep).
///
/// # Errors
/// Returns an error if a variation is not valid, if there are too many runs, or if a seed is too large.
pub fn expand(scenario: &Scenario, seeds: Option<u64>) -> Result<Vec<Run>> {
    let error = |message: String, key: &str| Error::new(message, key).in_source(scenario.source());
    let sweep = scenario.sweep.as_ref();
    let seeds = seeds.or(sweep.map(|sweep| sweep.seeds)).unwrap_or(1);
    if seeds < 1 {
        return Err(error(format!("found {seeds}, expected at least 1"), "sweep.seeds"));
    }
    let none = IndexMap::new();
    let vary = sweep.map_or(&none, |sweep| &sweep.vary);
    let no_changes = Table::new();
    let mut cases: Vec<(&str, &Table)> =
        sweep.iter().flat_map(|sweep| &sweep.case).map(|case| (case.name.as_str(), &case.set)).collect();
    if cases.is_empty() {
        cases.push(("", &no_changes));
    }
    let points = vary.values().fold(cases.len(), |product, values| product.saturating_mul(values.len()));
    if points > MAX_POINTS {
        return Err(error(format!("found {points} points, expected at most {MAX_POINTS}"), "sweep"));
    }
    let total = (points as u64).saturating_mul(seeds);
    if total > MAX_RUNS {
        return Err(error(format!("found {total} runs, expected at most {MAX_RUNS}"), "sweep"));
    }
    let mut base = scenario.raw();
    base.shift_remove("sweep");
    base.shift_remove("expect");
    let mut made: Vec<(Arc<Scenario>, IndexMap<String, Value>)> = Vec::new();
    for (name, set) in cases {
        let place = if name.is_empty() { "sweep.vary".to_owned() } else { format!("sweep.case.{name}") };
        for number in 0..points_of(vary) {
            let varied = combination(vary, number);
            let mut factors: IndexMap<String, Value> = IndexMap::new();
            if !name.is_empty() {
                factors.insert("case".to_owned(), name.into());
            }
            factors.extend(varied.iter().map(|(key, value)| (key.clone(), label(value))));
            let mut changes = set.clone();
            changes.extend(varied);
            let point = varied_scenario(scenario, &base, &changes, &place)?;
            if point.seed.saturating_add(seeds - 1) > MAX_SEED {
                let message =
                    format!("found {seeds} seeds from {} on, expected none above {MAX_SEED}", point.seed);
                return Err(error(message, "seed"));
            }
            made.push((Arc::new(point), factors));
        }
    }
    one_type_per_factor(&mut made);
    let mut runs = Vec::new();
    for (point, factors) in made {
        let factors = Arc::new(factors);
        for i in 0..seeds {
            let (point, factors) = (Arc::clone(&point), Arc::clone(&factors));
            runs.push(Run { id: runs.len(), seed: point.seed + i, point, factors });
        }
    }
    Ok(runs)
}

fn points_of(vary: &IndexMap<String, Vec<Value>>) -> usize {
    vary.values().map(Vec::len).product()
}

/// Returns the combination with this number. The last key varies fastest.
fn combination(vary: &IndexMap<String, Vec<Value>>, mut number: usize) -> Table {
    let mut chosen: Vec<(String, Value)> = Vec::new();
    for (key, values) in vary.iter().rev() {
        if let Some(value) = values.get(number % values.len().max(1)) {
            chosen.push((key.clone(), value.clone()));
        }
        number /= values.len().max(1);
    }
    chosen.into_iter().rev().collect()
}

/// Gives all values of a factor one type: numbers if all of them are numbers, otherwise strings.
fn one_type_per_factor(points: &mut [(Arc<Scenario>, IndexMap<String, Value>)]) {
    let is_text = |value: &Value| matches!(value, Value::Text(_));
    let text: std::collections::HashSet<String> = points
        .iter()
        .flat_map(|(_, factors)| factors.iter())
        .filter(|(_, value)| is_text(value))
        .map(|(key, _)| key.clone())
        .collect();
    for (_, factors) in points {
        for (key, value) in factors {
            *value = if text.contains(key) {
                Value::Text(value.display())
            } else {
                value.as_number().map_or_else(|| value.clone(), Value::Float)
            };
        }
    }
}

fn varied_scenario(scenario: &Scenario, base: &Table, changes: &Table, place: &str) -> Result<Scenario> {
    if changes.is_empty() {
        return Scenario::from_table(base.clone(), scenario.source());
    }
    let make = || {
        let mut data = base.clone();
        for (key, value) in changes {
            if key.split('.').next() == Some("sweep") {
                return Err(Error::new("found a sweep, expected any other key", key));
            }
            override_key(&mut data, key, value)?;
        }
        Scenario::from_table(data, scenario.source())
    };
    make().map_err(|error| {
        Error::new(format!("{}: {}", error.key, error.message), place).in_source(scenario.source())
    })
}

/// Converts a factor's value to the form that the table of runs uses.
fn label(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => flag.to_string().into(),
        Value::List(_) | Value::Table(_) | Value::Date(_) => json(value).into(),
        plain => plain.clone(),
    }
}

/// Returns JSON with sorted keys, with blanks after commas and colons.
fn json(value: &Value) -> String {
    let text = |text: &str| -> String {
        let quoted = serde_json::to_string(text).unwrap_or_default();
        quoted.chars().fold(String::new(), |mut ascii, c| {
            if c.is_ascii() && c != '\u{7f}' {
                ascii.push(c);
            } else {
                let mut units = [0; 2];
                c.encode_utf16(&mut units).iter().for_each(|unit| ascii.push_str(&format!("\\u{unit:04x}")));
            }
            ascii
        })
    };
    match value {
        Value::Text(inner) => text(inner),
        Value::Bool(flag) => flag.to_string(),
        Value::List(list) => format!("[{}]", list.iter().map(json).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let mut pairs: Vec<_> = table.iter().collect();
            pairs.sort_by(|a, b| a.0.cmp(b.0));
            let written = pairs.into_iter().map(|(key, inner)| format!("{}: {}", text(key), json(inner)));
            format!("{{{}}}", written.collect::<Vec<_>>().join(", "))
        }
        other => other.repr(),
    }
}
