//! Reads TOML.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Table, Value};
use crate::error::Error;

/// Maximum number of decimal digits of a whole number.
const MOST_DIGITS: usize = 4300;
/// No number with at most this many digits in base 16, 8 or 2 has more than `MOST_DIGITS` decimal digits.
const MOST_OTHER_DIGITS: usize = 3500;

/// Reads a TOML document.
///
/// # Errors
/// Returns an error with the line and column of the first mistake. `is_list` tells whether the dotted key with these
/// parts is a list of tables.
pub(crate) fn parse(text: &str, is_list: impl Fn(&[String]) -> bool) -> Result<Table, Error> {
    let document = DeTable::parse(text).map_err(|error| describe(text, &error, is_list))?;
    table(document.into_inner())
}

/// Reads one value, such as the value of a command-line argument.
pub(crate) fn parse_value(text: &str) -> Option<Value> {
    let mut document = parse(&format!("v = {text}"), |_| false).ok()?;
    // The text may have several lines with further keys, which are not a value.
    document.shift_remove("v")
}

fn table(given: DeTable<'_>) -> Result<Table, Error> {
    given.into_iter().map(|(key, item)| Ok((key.into_inner().into_owned(), value(item)?))).collect()
}

fn value(given: Spanned<DeValue<'_>>) -> Result<Value, Error> {
    Ok(match given.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => integer(number.as_str(), number.radix())?,
        DeValue::Float(number) => Value::Float(float(number.as_str())),
        DeValue::Boolean(flag) => Value::Bool(flag),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(list) => Value::List(list.into_iter().map(value).collect::<Result<_, _>>()?),
        DeValue::Table(inner) => Value::Table(table(inner)?),
    })
}

fn integer(digits: &str, radix: u32) -> Result<Value, Error> {
    if let Ok(number) = i64::from_str_radix(digits, radix) {
        return Ok(Value::Int(number));
    }
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits.strip_prefix('+').unwrap_or(digits)),
    };
    match radix {
        10 if digits.len() > MOST_DIGITS => return Err(Error::new("found no valid TOML", "")),
        10 => return Ok(Value::Big(format!("{sign}{digits}"))),
        _ if digits.len() > MOST_OTHER_DIGITS => return Ok(Value::Big(sign.to_owned())),
        _ => {}
    }
    // Converts to base 10 by multiplying and adding.
    let mut decimal: Vec<u32> = vec![0];
    for digit in digits.chars().filter_map(|c| c.to_digit(radix)) {
        let mut carry = digit;
        for place in &mut decimal {
            let sum = *place * radix + carry;
            (*place, carry) = (sum % 10, sum / 10);
        }
        while carry > 0 {
            decimal.push(carry % 10);
            carry /= 10;
        }
    }
    let text: String = decimal.iter().rev().filter_map(|digit| char::from_digit(*digit, 10)).collect();
    Ok(Value::Big(format!("{sign}{text}")))
}

/// Reads a number. A number that is too large gives infinity, as in Python.
fn float(text: &str) -> f64 {
    match text.trim_start_matches('+') {
        "inf" => f64::INFINITY,
        "-inf" => f64::NEG_INFINITY,
        "nan" | "-nan" => f64::NAN,
        number => number.parse().unwrap_or(f64::NAN),
    }
}

/// Returns the error about a syntax error. A table with a repeated header probably has to be an entry of a list.
fn describe(text: &str, error: &toml::de::Error, is_list: impl Fn(&[String]) -> bool) -> Error {
    let problem = error.message().replace('\n', ", ");
    let Some(span) = error.span() else {
        return Error::new(format!("found no valid TOML: {problem}"), "");
    };
    let start = (0..=span.start.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let before = &text[..start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
    let header = text[line_start..].lines().next().unwrap_or("").trim();
    if problem.starts_with("duplicate key")
        && header.starts_with('[')
        && !header.starts_with("[[")
        && let Some(names) = header_names(header)
    {
        let end =
            text[line_start..].find(']').map_or(column, |at| text[line_start..][..at].chars().count() + 1);
        let expected = if is_list(&names) { double_brackets(&names) } else { "each table once".to_owned() };
        let dotted = names.join(".");
        let place = format!("at line {line}, column {end}");
        return Error::new(format!("found [{dotted}] a second time ({place}), expected {expected}"), "");
    }
    let place = if text[start..].is_empty() {
        "at end of document".to_owned()
    } else {
        format!("at line {line}, column {column}")
    };
    Error::new(format!("found no valid TOML: {problem} ({place})"), "")
}

/// Returns the parts of the dotted key in a header such as `[a.b]`.
fn header_names(header: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut inside = DeTable::parse(header).ok()?.into_inner();
    while let Some((key, inner)) = inside.into_iter().next() {
        names.push(key.into_inner().into_owned());
        let DeValue::Table(next) = inner.into_inner() else { return None };
        inside = next;
    }
    Some(names)
}

/// Returns the header of an entry of a list of tables.
pub(crate) fn double_brackets(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    format!("[[{}]] with double brackets", names.join("."))
}
