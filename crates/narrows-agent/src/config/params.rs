//! Converts a rate controller's parameters into the base units of `narrows-control` (ns, bytes/s).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;

use narrows_control::parameter::{Shape, Takes, Value, Values};
use narrows_control::rate::{PortParameters, brf, registry};

use super::reader::{found, hint};
use super::units;

/// The rate controllers for real switches, each with the alternative parameters that work there. The first alternative
/// is the default. Alternatives that need congestion headers are missing, because stock hosts send no such headers.
pub(super) static KINDS: LazyLock<BTreeMap<&str, Vec<Values>>> = LazyLock::new(|| {
    let known = registry::all().iter().map(|entry| (entry.name, entry.on_switches()));
    known.filter(|(_, alternatives)| !alternatives.is_empty()).collect()
});

/// Returns an error message if no alternative has the parameter's given word.
pub(super) fn unsupported(alternatives: &[Values], key: &str, given: &Value) -> Option<String> {
    let Value::Word(found) = given else { return None };
    let known: Vec<_> = alternatives.iter().filter_map(|values| values.get(key)).collect();
    if known.is_empty() || known.contains(&given) {
        return None;
    }
    let word =
        |value: &&Value| if let Value::Word(word) = value { format!("{word:?}") } else { String::new() };
    let expected = known.iter().map(word).collect::<Vec<_>>().join(" or ");
    Some(format!("found {found:?}, which stock hosts do not support, expected {expected}"))
}

/// Default maximum share of the link for UDP, including borrowed capacity. The remaining share is for the first packets
/// of new flows.
const UDP_CEILING: f64 = 0.95;

/// Sets each missing parameter to its default on a real switch. With these defaults, there is room for `max_flows`
/// flows, rates are written into ACKs, and UDP may borrow. A rate controller that measures the capacity ignores UDP's
/// ceiling.
pub(super) fn set_defaults(name: &str, max_flows: u32, params: &mut Values) {
    let Some(mut defaults) = KINDS.get(name).and_then(|alternatives| alternatives.first()).cloned() else {
        return;
    };
    if registry::find(name).is_some_and(|entry| entry.parameter("max_flows").is_some()) {
        defaults.insert("max_flows".to_owned(), Value::Number(max_flows.into()));
    }
    if name == "brf" {
        defaults.insert("udp_ceiling".to_owned(), Value::Number(UDP_CEILING));
    }
    for (key, value) in defaults {
        params.entry(key).or_insert(value);
    }
}

/// Converts the table to base units. Calls `problem` for each unknown key and each invalid value. Returns `None` if
/// `problem` was called.
pub(super) fn in_base_units(
    name: &str,
    given: &toml::Table,
    problem: impl Fn(&str, String),
) -> Option<Values> {
    let entry = registry::find(name)?;
    let mut values = Some(Values::new());
    for (key, value) in given {
        match in_base_unit(entry, key, value) {
            Ok(value) => drop(values.as_mut().map(|values| values.insert(key.clone(), value))),
            Err(text) => {
                problem(key, text);
                values = None;
            }
        }
    }
    values
}

fn in_base_unit(entry: &registry::Entry, key: &str, given: &toml::Value) -> Result<Value, String> {
    let Some(parameter) = entry.parameter(key) else {
        let names = entry.parameters.iter().map(|parameter| parameter.name);
        return Err(format!("found an unknown key{}", hint(key, names)));
    };
    let value = without_unit(&parameter.shape, given)
        .map_err(|expected| format!("found {}, expected {expected}", found(given)))?;
    parameter.check(&value).map_err(|wrong| format!("found {}, expected {}", wrong.found, wrong.expected))?;
    Ok(value)
}

/// Converts a value with a unit to base units. The error says what is expected.
fn without_unit(shape: &Shape, value: &toml::Value) -> Result<Value, String> {
    let word = value.as_str().unwrap_or_default();
    match (shape.takes, value) {
        (Takes::Time { .. }, _) => units::span(word).map(|span| Value::Number(span.as_nanos() as f64)),
        (Takes::Rate { .. }, _) => units::rate(word).map(|rate| Value::Number(rate.as_f64())),
        (Takes::Contents { words, max, .. }, toml::Value::String(word))
            if !words.contains(&word.as_str()) =>
        {
            contents(word, max)
                .map(|text| Value::Word(text.into()))
                .map_err(|reason| format!("{} ({reason})", shape.expected()))
        }
        (Takes::Number { .. }, toml::Value::String(word)) if word.ends_with('%') => {
            let number = word.trim_end_matches('%').trim().parse::<f64>();
            number.map(|hundredths| Value::Number(hundredths / 100.0)).map_err(|_| shape.expected())
        }
        (_, toml::Value::Boolean(flag)) => Ok(Value::Flag(*flag)),
        (_, toml::Value::Integer(n)) => Ok(Value::Number(*n as f64)),
        (_, toml::Value::Float(n)) => Ok(Value::Number(*n)),
        (_, toml::Value::String(word)) => Ok(Value::Word(word.clone().into())),
        _ => Err(shape.expected()),
    }
}

/// Reads a file of at most `max` bytes. `word` is the path of the file. If `word` begins with `{`, no file is read, and
/// `word` itself is the JSON text.
fn contents(word: &str, max: usize) -> Result<String, String> {
    if word.trim_start().starts_with('{') {
        return Ok(word.to_owned());
    }
    if !Path::new(word).is_absolute() {
        return Err("not an absolute path".to_owned());
    }
    // Check the type first, because opening a FIFO would block.
    if !fs::metadata(word).map_err(|error| error.to_string())?.is_file() {
        return Err("not a file".to_owned());
    }
    let mut text = String::new();
    let file = File::open(word).map_err(|error| error.to_string())?;
    // Read one byte more than `max`, to detect a file that is too long.
    file.take(max as u64 + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() > max { Err("the file is too long".to_owned()) } else { Ok(text) }
}

/// Returns the parameters of BRF. Returns `None` if `name` is another rate controller.
pub(super) fn brf(name: &str, params: &Values) -> Option<brf::Params> {
    (name == "brf").then(|| brf::Params::read(name, params).ok()).flatten()
}
