//! Converts the parameters of congestion controllers and rate controllers to base units, by their catalogues.

use std::borrow::Cow;

use narrows_control::parameter::{NONE, Shape, Takes, Value as BaseValue, Values};

use crate::error::{Error, Result, found, found_text, hint};
use crate::files::{Files, join};
use crate::units::{parse_duration, parse_rate};
use crate::value::{Table, Value};

/// The parameters of an algorithm: their names, with the values that they take.
pub(crate) type Known = Vec<(String, Shape)>;

/// Returns the parameters that a scenario gives, in base units.
///
/// # Arguments
/// * `owner`: name of the algorithm.
/// * `key`: the key of the table in the scenario, for errors.
///
/// # Errors
/// Returns an error for an unknown parameter, or a value of another kind or outside the range.
pub(super) fn in_base_units(given: &Table, known: &Known, owner: &str, key: &str) -> Result<Values> {
    let mut values = Values::new();
    for (name, value) in given {
        let place = format!("{key}.{name}");
        let Some((_, shape)) = known.iter().find(|(known, _)| known == name) else {
            let expected = if known.is_empty() {
                format!("no parameters for {owner}")
            } else {
                let near = hint(name, known.iter().map(|(name, _)| name.as_str()));
                format!("a parameter of {owner}{near}")
            };
            return Err(Error::new(format!("found an unknown key, expected {expected}"), place));
        };
        let Some(base) = base(value, shape) else {
            return Err(Error::new(format!("found {}, expected {}", found(value), shape.expected()), place));
        };
        values.insert(name.clone(), base);
    }
    Ok(values)
}

/// Converts a value to base units. A number may be written in percent, such as `"95%"`. The result is `None` if the
/// value is of another kind or outside the range.
fn base(value: &Value, shape: &Shape) -> Option<BaseValue> {
    let word = |text: &str| BaseValue::Word(Cow::Owned(text.to_owned()));
    if shape.optional && value.as_text() == Some(NONE) {
        return Some(word(NONE));
    }
    let converted = match (shape.takes, value) {
        (Takes::Flag, Value::Bool(flag)) => BaseValue::Flag(*flag),
        (Takes::Word(_) | Takes::Text(_) | Takes::Contents { .. }, Value::Text(text)) => {
            // The length of a file's contents has been checked when the file was read.
            let is_valid = !matches!(shape.takes, Takes::Word(words) if !words.contains(&text.as_str()));
            return is_valid.then(|| word(text));
        }
        (Takes::Whole { .. }, Value::Int(number)) => BaseValue::Number(*number as f64),
        (Takes::Number { .. }, Value::Text(text)) => {
            let number: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
            BaseValue::Number(number / 100.0)
        }
        (Takes::Number { .. }, number) => BaseValue::Number(number.as_number()?),
        (Takes::Time { .. }, time) => BaseValue::Number(parse_duration(time).ok()?.as_nanos() as f64),
        (Takes::Rate { .. }, rate) => BaseValue::Number(parse_rate(rate).ok()?.in_bytes().as_f64()),
        _ => return None,
    };
    shape.accepts(&converted).then_some(converted)
}

/// Returns the value if it is the path of a file with the contents of a parameter. Returns `None` if it is a word, or
/// the contents of a JSON file, which may be given instead of the path.
pub(crate) fn file_of<'v>(value: &'v Value, shape: &Shape) -> Option<&'v String> {
    match (shape.takes, value) {
        (Takes::Contents { words, .. }, Value::Text(path))
            if !words.contains(&path.as_str()) && !path.trim_start().starts_with('{') =>
        {
            Some(path)
        }
        _ => None,
    }
}

/// Returns a scenario's parameters, in which the path of a file is replaced by the file's contents.
///
/// # Errors
/// Returns an error for a file that cannot be read.
pub(super) fn with_contents(
    given: &Table,
    known: &Known,
    folder: &str,
    key: &str,
    files: &dyn Files,
) -> Result<Table> {
    let mut result = given.clone();
    for (name, value) in given {
        let Some((_, shape)) = known.iter().find(|(other, _)| other == name) else { continue };
        let (Takes::Contents { max, .. }, Some(path)) = (shape.takes, file_of(value, shape)) else {
            continue;
        };
        let read = match files.read(&join(folder, path), max as u64) {
            Ok(content) if content.len() > max => Err("the file is too long".to_owned()),
            Ok(content) => String::from_utf8(content).map_err(|error| error.utf8_error().to_string()),
            Err(problem) => Err(problem.reason().to_owned()),
        };
        let contents = read.map_err(|reason| {
            let message = format!("found {}, expected {} ({reason})", found_text(path), shape.expected());
            Error::new(message, format!("{key}.{name}"))
        })?;
        result.insert(name.clone(), Value::Text(contents));
    }
    Ok(result)
}
