//! The types of fields. A type reads a value, checks its range, and writes it with its unit.

use std::fmt::Debug;
use std::marker::PhantomData;

use indexmap::IndexMap;
use serde_json::json;

use super::Value;
use super::problem::Kind;
use super::python::{is_printable, repr_float};
use super::reader::{Part, Reader};
use super::reference;
use super::schema;
use super::table::{Keys, Takes};
use crate::units::{
    self, BitRate, Bytes, Limit, MAX_NANOS, MAX_PACKETS, NANOS_PER_SEC, Span, format_duration, format_rate,
    format_size,
};

/// A type of field.
pub(crate) trait Field {
    /// The checked value.
    type Value: Clone + Debug + PartialEq;
    /// Reads a value. Problems are recorded.
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Self::Value>;
    /// Returns the value as a scenario file spells it; `None` if the key has no value.
    fn write(value: &Self::Value, keys: Keys) -> Option<Value>;
    /// Returns the JSON schema of the values.
    fn schema() -> serde_json::Value;
    /// Returns the values in words, for the reference of keys.
    fn words() -> String;
    /// Returns the kind of values.
    fn takes() -> Takes {
        Takes::Plain
    }
}

/// Maximum propagation delay.
pub(crate) const MOST_DELAY: Span = Span::from_secs(1000);
/// Shortest period, ns.
const LEAST_PERIOD: u64 = 10_000;

/// Declares types of fields that parse text with a unit. The last block checks the parsed value.
macro_rules! quantities {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident $words:literal: $value:ty = $parse:path, $write:path, $schema:path $(, $check:expr)?;
    )*) => {$(
        $(#[doc = $doc])+
        pub(crate) struct $name;

        impl Field for $name {
            type Value = $value;
            fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<$value> {
                let read = $parse(value);
                $(
                    let check: fn($value) -> Result<$value, String> = $check;
                    let read = read.and_then(check);
                )?
                at.accept(read, value)
            }
            fn write(value: &$value, _: Keys) -> Option<Value> {
                Some($write(value))
            }
            fn schema() -> serde_json::Value {
                $schema()
            }
            fn words() -> String {
                $words.to_owned()
            }
        }
    )*};
}

fn write_span(span: &Span) -> Value {
    format_duration(*span).into()
}
fn write_rate(rate: &BitRate) -> Value {
    format_rate(*rate).into()
}
fn write_size(size: &Bytes) -> Value {
    format_size(*size).into()
}
fn write_limit(limit: &Limit) -> Value {
    limit.to_string().into()
}
fn write_number(number: &f64) -> Value {
    Value::Float(*number)
}

fn above_zero<T: Default + PartialOrd>(value: T) -> Result<T, String> {
    if value > T::default() { Ok(value) } else { Err("more than zero".to_owned()) }
}

/// Checks that a time is between these two times, in ns.
fn within(span: Span, least: u64, most: u64) -> Result<Span, String> {
    if (least..=most).contains(&span.as_nanos()) {
        return Ok(span);
    }
    let (low, high) = (format_duration(Span::from_nanos(least)), format_duration(Span::from_nanos(most)));
    Err(format!("a time from {low} to {high}"))
}

quantities! {
    /// A time; zero is allowed.
    Duration "time": Span = units::parse_duration, write_span, schema::time;
    /// A time above zero.
    PositiveDuration "time above 0": Span = units::parse_duration, write_span, schema::time, above_zero;
    /// A one-way propagation delay.
    Delay "time": Span = units::parse_duration, write_span, schema::time, |span| within(span, 0, MOST_DELAY.as_nanos());
    /// A two-way propagation delay.
    Rtt "time above 0": Span = units::parse_duration, write_span, schema::time, |span| within(span, 1, MOST_DELAY.as_nanos());
    /// A period.
    Period "time of 10us or more": Span = units::parse_duration, write_span, schema::time, |span| within(span, LEAST_PERIOD, MAX_NANOS);
    /// A period. Zero means that the periodic event never happens.
    PeriodOrZero "0, or time of 10us or more": Span = units::parse_duration, write_span, schema::time, |span| {
        if (1..LEAST_PERIOD).contains(&span.as_nanos()) {
            return Err(format!("0 or a time from {}", format_duration(Span::from_nanos(LEAST_PERIOD))));
        }
        Ok(span)
    };
    /// An L3 rate; zero is an outage.
    RateOrZero "rate or 0": BitRate = units::parse_rate, write_rate, schema::rate;
    /// An L3 rate above zero.
    Rate "rate": BitRate = units::parse_rate, write_rate, schema::rate, above_zero;
    /// A size above zero.
    Size "size": Bytes = units::parse_size, write_size, schema::size, above_zero;
    /// A probability between 0 and 1.
    Probability "probability": f64 = units::parse_probability, write_number, schema::probability;
    /// Length of a queue.
    QueueLength "queue length": Limit = units::parse_limit, write_limit, schema::queue_length;
    /// Length of a queue above which packets are marked: a number of packets, or a finite length.
    Mark "whole number, 1 or more, or queue length": Limit = parse_mark, write_mark, schema::mark;
    /// A name of a node, link or flow.
    Name "name": String = parse_name, write_text, schema::name;
    /// A name that is also valid as the name of a folder.
    FileName "name": String = parse_name, write_text, schema::name, |name| {
        if name.contains(['/', '\\']) || name.starts_with(['.', '-']) {
            return Err("a name without slashes that does not begin with a dot or dash".to_owned());
        }
        Ok(name)
    };
    /// A value of a measure: a number in the measure's unit, or text with a unit.
    Quantity "number in the unit of the measure, or text with a unit": Value = parse_quantity, Clone::clone, schema::quantity;
    /// A value that JSON can represent. Code outside this module makes further checks.
    Data "any value": Value = parse_data, Clone::clone, schema::anything;
}

fn write_text(text: &str) -> Value {
    text.into()
}

fn parse_mark(value: &Value) -> Result<Limit, String> {
    match value {
        Value::Int(n) if (1..=MAX_PACKETS as i64).contains(n) => Ok(Limit::Packets(*n as u32)),
        Value::Int(_) | Value::Big(_) => Err(format!("packets from 1 to {MAX_PACKETS}")),
        other => units::parse_finite_limit(other),
    }
}

fn write_mark(limit: &Limit) -> Value {
    match limit {
        Limit::Packets(packets) => Value::Int(i64::from(*packets)),
        other => other.to_string().into(),
    }
}

/// Maximum number of characters of a name.
const LONGEST_NAME: usize = 64;

pub(crate) fn parse_name(value: &Value) -> Result<String, String> {
    match value {
        Value::Text(text)
            if (1..=LONGEST_NAME).contains(&text.chars().count())
                && text.chars().all(|c| is_printable(c) && c != ' ') =>
        {
            Ok(text.clone())
        }
        _ => Err("a name of up to 64 printable characters without spaces".to_owned()),
    }
}

fn parse_quantity(value: &Value) -> Result<Value, String> {
    match value {
        Value::Text(_) => Ok(value.clone()),
        other => other
            .as_number()
            .map(Value::Float)
            .ok_or_else(|| "a number, or text with a unit such as '40mbit', '5ms' or '1%'".to_owned()),
    }
}

/// Maximum depth of tables within a value.
const DEEPEST: usize = 16;

fn parse_data(value: &Value) -> Result<Value, String> {
    fn check(value: &Value, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("tables nested no deeper than {DEEPEST}"));
        }
        match value {
            Value::Table(table) => table.values().try_for_each(|inner| check(inner, depth + 1)),
            Value::List(list) => list.iter().try_for_each(|inner| check(inner, depth + 1)),
            Value::Float(n) if !n.is_finite() => Err("finite numbers".to_owned()),
            // The smallest number of 64 bits is refused, because it has no positive counterpart.
            Value::Big(_) | Value::Int(i64::MIN) => Err("numbers of at most 64 bits".to_owned()),
            Value::Date(_) | Value::Null => Err("strings, numbers, true, false, lists and tables".to_owned()),
            _ => Ok(()),
        }
    }
    check(value, 0).map(|()| value.clone())
}

/// `true` or `false`.
pub(crate) struct Flag;

impl Field for Flag {
    type Value = bool;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<bool> {
        if let Value::Bool(flag) = value {
            return Some(*flag);
        }
        at.report(Kind::Type("true or false"), value);
        None
    }
    fn write(value: &bool, _: Keys) -> Option<Value> {
        Some(Value::Bool(*value))
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "boolean" })
    }
    fn words() -> String {
        "true or false".to_owned()
    }
}

/// A whole number between `MIN` and `MAX`.
pub(crate) struct Whole<T, const MIN: u64, const MAX: u64>(PhantomData<T>);

impl<T, const MIN: u64, const MAX: u64> Field for Whole<T, MIN, MAX>
where
    T: TryFrom<u64> + Into<u64> + Copy + Debug + PartialEq,
{
    type Value = T;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<T> {
        let number = match value {
            Value::Int(number) => u64::try_from(*number).map_err(|_| true),
            Value::Big(digits) => Err(digits.starts_with('-')),
            _ => {
                at.report(Kind::Type("a whole number"), value);
                return None;
            }
        };
        let is_low = match number {
            Ok(number) if (MIN..=MAX).contains(&number) => match T::try_from(number) {
                Ok(number) => return Some(number),
                Err(_) => false,
            },
            Ok(number) => number < MIN,
            Err(is_low) => is_low,
        };
        let bound = if is_low { format!("at least {MIN}") } else { format!("at most {MAX}") };
        at.report(Kind::Bound(bound), value);
        None
    }
    fn write(value: &T, _: Keys) -> Option<Value> {
        Some(Value::from((*value).into()))
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
    fn words() -> String {
        format!("whole number{}", reference::range(MIN as f64, true, MAX as f64))
    }
}

/// The range of a number.
pub(crate) trait Range {
    /// The number that is the lower end of the range, and whether the range includes it.
    const LEAST: (f64, bool);
    /// The largest number.
    const MOST: f64;
}

/// A number in a range.
pub(crate) struct Number<R>(PhantomData<R>);

impl<R: Range> Field for Number<R> {
    type Value = f64;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<f64> {
        let Some(number) = value.as_number() else {
            at.report(Kind::Type("a number"), value);
            return None;
        };
        if !number.is_finite() {
            at.report(Kind::Type("a finite number"), value);
            return None;
        }
        let (least, includes) = R::LEAST;
        let bound = if number > R::MOST {
            format!("at most {}", repr_float(R::MOST))
        } else if includes && number < least {
            format!("at least {}", repr_float(least))
        } else if !includes && number <= least {
            format!("more than {}", repr_float(least))
        } else {
            return Some(number);
        };
        at.report(Kind::Bound(bound), value);
        None
    }
    fn write(value: &f64, _: Keys) -> Option<Value> {
        Some(Value::Float(*value))
    }
    fn schema() -> serde_json::Value {
        let (least, includes) = R::LEAST;
        let bound = if includes { "minimum" } else { "exclusiveMinimum" };
        json!({ "type": "number", bound: least, "maximum": R::MOST })
    }
    fn words() -> String {
        format!("number{}", reference::range(R::LEAST.0, R::LEAST.1, R::MOST))
    }
}

/// Declares ranges of numbers.
macro_rules! ranges {
    ($($(#[doc = $doc:literal])+ $name:ident: $least:literal $includes:literal, $most:literal;)*) => {$(
        $(#[doc = $doc])+
        pub(crate) struct $name;
        impl $crate::value::fields::Range for $name {
            const LEAST: (f64, bool) = ($least, $includes);
            const MOST: f64 = $most;
        }
    )*};
}
pub(crate) use ranges;

/// A string with a number of characters between `MIN` and `MAX`.
pub(crate) struct Text<const MIN: usize = 0, const MAX: usize = { usize::MAX }>;

impl<const MIN: usize, const MAX: usize> Field for Text<MIN, MAX> {
    type Value = String;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<String> {
        let Value::Text(text) = value else {
            at.report(Kind::Type("a string in quotes"), value);
            return None;
        };
        length(text.chars().count(), MIN, MAX, value, at).then(|| text.clone())
    }
    fn write(value: &String, _: Keys) -> Option<Value> {
        Some(value.as_str().into())
    }
    fn schema() -> serde_json::Value {
        schema::text(MIN, MAX)
    }
    fn words() -> String {
        "text".to_owned()
    }
}

/// Records a problem if a list or text is too short or too long.
fn length<'v>(count: usize, least: usize, most: usize, value: &'v Value, at: &mut Reader<'v>) -> bool {
    let expected = match count {
        _ if count < least => format!("at least {least} of them"),
        _ if count > most => format!("at most {most} of them"),
        _ => return true,
    };
    at.report(Kind::Length(expected), value);
    false
}

/// A list with a number of entries between `MIN` and `MAX`.
pub(crate) struct List<F, const MIN: usize = 0, const MAX: usize = { usize::MAX }>(PhantomData<F>);

impl<F: Field, const MIN: usize, const MAX: usize> Field for List<F, MIN, MAX> {
    type Value = Vec<F::Value>;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Self::Value> {
        let Value::List(list) = value else {
            at.report(Kind::Type("a list"), value);
            return None;
        };
        if list.len() > MAX {
            length(list.len(), MIN, MAX, value, at);
            return None;
        }
        let read: Vec<_> = list
            .iter()
            .enumerate()
            .map(|(i, item)| at.inside(Part::Index(i), |at| F::read(item, at)))
            .collect();
        let read: Option<Vec<_>> = read.into_iter().collect();
        read.filter(|items| length(items.len(), MIN, MAX, value, at))
    }
    fn write(value: &Self::Value, keys: Keys) -> Option<Value> {
        Some(Value::List(value.iter().filter_map(|item| F::write(item, keys)).collect()))
    }
    fn schema() -> serde_json::Value {
        schema::list(F::schema(), MIN, MAX)
    }
    fn words() -> String {
        format!("list of {}", reference::plural(&F::words()))
    }
    fn takes() -> Takes {
        Takes::List(Box::new(F::takes()))
    }
}

/// A table whose keys have no fixed names.
pub(crate) struct Map<F>(PhantomData<F>);

impl<F: Field> Field for Map<F> {
    type Value = IndexMap<String, F::Value>;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Self::Value> {
        let Value::Table(table) = value else {
            at.report(Kind::Type("a table"), value);
            return None;
        };
        let read: Vec<_> = table
            .iter()
            .map(|(key, inner)| {
                at.inside(Part::Key(key), |at| F::read(inner, at)).map(|inner| (key.clone(), inner))
            })
            .collect();
        read.into_iter().collect()
    }
    fn write(value: &Self::Value, keys: Keys) -> Option<Value> {
        let pairs = value.iter().filter_map(|(key, inner)| Some((key.clone(), F::write(inner, keys)?)));
        Some(Value::Table(pairs.collect()))
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "object", "additionalProperties": schema::additional(F::schema()) })
    }
    fn words() -> String {
        format!("table of {} by key", reference::plural(&F::words()))
    }
}

impl<F: Field> Field for Option<F> {
    type Value = Option<F::Value>;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Self::Value> {
        if *value == Value::Null { Some(None) } else { F::read(value, at).map(Some) }
    }
    fn write(value: &Self::Value, keys: Keys) -> Option<Value> {
        value.as_ref().and_then(|inner| F::write(inner, keys))
    }
    fn schema() -> serde_json::Value {
        F::schema()
    }
    fn words() -> String {
        F::words()
    }
    fn takes() -> Takes {
        match F::takes() {
            Takes::List(inner) => Takes::OptionalList(inner),
            other => other,
        }
    }
}

/// The word with which a scenario asks for a derived value, or for everything.
pub(crate) const AUTO: &str = "auto";
pub(crate) const ALL: &str = "all";

/// A size of a receive buffer, or `auto` for a size that follows from the network.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ReceiveBuffer {
    /// Narrows derives the size from the network.
    Auto,
    /// A size.
    Size(Bytes),
}

/// The sizes that a receive buffer may have, in words.
const BUFFER_SIZES: &str = "from 4KiB to 1GiB";

impl Field for ReceiveBuffer {
    type Value = ReceiveBuffer;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Self> {
        if value.as_text() == Some(AUTO) {
            return Some(ReceiveBuffer::Auto);
        }
        let size = units::parse_size(value).ok().filter(|size| (4 << 10..=1 << 30).contains(&size.get()));
        let expected = || format!("'{AUTO}' or a size {BUFFER_SIZES} with its unit, such as '64KiB'");
        at.accept(size.map(ReceiveBuffer::Size).ok_or_else(expected), value)
    }
    fn write(value: &Self, _: Keys) -> Option<Value> {
        Some(match value {
            ReceiveBuffer::Auto => AUTO.into(),
            ReceiveBuffer::Size(size) => format_size(*size).into(),
        })
    }
    fn schema() -> serde_json::Value {
        schema::receive_buffer()
    }
    fn words() -> String {
        format!("\"{AUTO}\", or size {BUFFER_SIZES}")
    }
}

/// A size with bounds, in bytes.
pub(crate) struct SizeBetween<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Field for SizeBetween<MIN, MAX> {
    type Value = Bytes;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Bytes> {
        let size = Size::read(value, at)?;
        let bound = match size.get() {
            bytes if bytes < MIN => format!("at least {MIN}"),
            bytes if bytes > MAX => format!("at most {MAX}"),
            _ => return Some(size),
        };
        at.report(Kind::Bound(bound), value);
        None
    }
    fn write(value: &Bytes, keys: Keys) -> Option<Value> {
        Size::write(value, keys)
    }
    fn schema() -> serde_json::Value {
        schema::size()
    }
    fn words() -> String {
        format!("{}{}", Size::words(), reference::range(MIN as f64, true, MAX as f64))
    }
}

/// Names, or `all`.
pub(crate) struct NamesOrAll;

impl Field for NamesOrAll {
    type Value = Vec<String>;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Vec<String>> {
        match value {
            Value::Text(text) if text == ALL => Some(vec![ALL.to_owned()]),
            Value::List(_) => List::<Name>::read(value, at),
            _ => at.accept(Err("'all' or a list of names".to_owned()), value),
        }
    }
    fn write(value: &Vec<String>, keys: Keys) -> Option<Value> {
        List::<Name>::write(value, keys)
    }
    fn schema() -> serde_json::Value {
        json!({ "anyOf": [schema::word(ALL), List::<Name>::schema()] })
    }
    fn words() -> String {
        reference::either(&[reference::quoted(&[ALL]), List::<Name>::words()])
    }
}

/// A time, or `distance` for delays that follow from the lengths of links (`None`).
pub(crate) struct DistanceOrDelay;

/// The word for delays that follow from the lengths of links.
const DISTANCE: &str = "distance";

impl Field for DistanceOrDelay {
    type Value = Option<Span>;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Option<Span>> {
        if value.as_text() == Some(DISTANCE) {
            return Some(None);
        }
        let read = match units::parse_duration(value) {
            Err(_) => Err("'distance' or a time such as '20ms'".to_owned()),
            Ok(span) if span > MOST_DELAY => {
                Err(format!("a time of at most {}", format_duration(MOST_DELAY)))
            }
            Ok(span) => Ok(Some(span)),
        };
        at.accept(read, value)
    }
    fn write(value: &Option<Span>, _: Keys) -> Option<Value> {
        Some(value.map_or(DISTANCE.into(), |span| format_duration(span).into()))
    }
    fn schema() -> serde_json::Value {
        schema::any_of(vec![schema::word(DISTANCE), schema::time()])
    }
    fn words() -> String {
        reference::either(&[reference::quoted(&[DISTANCE]), Delay::words()])
    }
}

/// Seconds as a time, for defaults.
pub(crate) const fn seconds(seconds: u64) -> Span {
    Span::from_nanos(seconds * NANOS_PER_SEC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_for_periods_have_the_shortest_one() {
        let least = format_duration(Span::from_nanos(LEAST_PERIOD));
        assert_eq!(Period::words(), format!("time of {least} or more"));
        assert_eq!(PeriodOrZero::words(), format!("0, or {}", Period::words()));
    }
}
