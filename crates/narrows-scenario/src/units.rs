//! Quantities with units: parses and prints them.
//!
//! Times are nanoseconds ([`Span`]), rates bit/s ([`BitRate`]), sizes bytes ([`Bytes`]). Prefixes of rates and sizes
//! are decimal (1 kbit = 1000 bit, 1 kB = 1000 B), except for binary prefixes (KiB, Mibit). `Mbps` is megabit per
//! second, unlike in `tc`, where it is megabyte per second. Bytes need a capital B: `MB/s`.

use std::fmt;

pub use narrows_control::units::{Bytes, Span};

use crate::value::Value;
use crate::value::decimal::Decimal;

/// Nanoseconds of a second.
pub(crate) const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Longest time, in ns. The product of a time and a rate may exceed 64 bits, so `narrows_control::units` computes it in
/// 128 bits.
pub const MAX_NANOS: u64 = 1_000_000 * NANOS_PER_SEC;
/// Highest rate, in bit/s.
pub const MAX_BITS_PER_SEC: u64 = 1_000_000_000_000_000;
/// Largest size, in bytes.
pub const MAX_BYTES: u64 = 1_000_000_000_000_000;
/// Largest number of packets.
pub const MAX_PACKETS: u64 = u32::MAX as u64;

/// A value has the wrong form. The text completes "found X, expected ...".
pub type Expected = String;

/// A rate in bits per second.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(pub u64);

impl BitRate {
    /// Returns the rate in whole bytes per second, as plans have it.
    pub fn in_bytes(self) -> narrows_control::units::Rate {
        narrows_control::units::Rate::from_bits_per_sec(self.0)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_rate(*self))
    }
}

/// Maximum length of a queue.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Limit {
    /// No limit.
    Infinite,
    /// Packets.
    Packets(u32),
    /// Bytes.
    Bytes(u64),
    /// Bandwidth-delay products.
    Bdp(f64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Infinite => f.write_str("infinite"),
            Limit::Packets(packets) => write!(f, "{packets}p"),
            Limit::Bytes(bytes) => f.write_str(&format_size(Bytes::new(*bytes))),
            Limit::Bdp(bdp) => {
                let number = crate::value::python::repr_float(*bdp);
                write!(f, "{}bdp", number.strip_suffix(".0").unwrap_or(&number))
            }
        }
    }
}

/// Maximum number of characters of a quantity.
const LONGEST: usize = 80;

/// Splits a string into its number and its unit.
fn split<'v>(value: &'v Value, expected: &str) -> Result<(Decimal, &'v str), Expected> {
    let Value::Text(text) = value else { return Err(expected.to_owned()) };
    if text.chars().count() > LONGEST {
        return Err(expected.to_owned());
    }
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
    let (number, rest) =
        Decimal::parse_start(text.trim_start_matches(blank)).ok_or_else(|| expected.to_owned())?;
    let unit = rest.trim_matches(blank);
    if unit.contains('\n') { Err(expected.to_owned()) } else { Ok((number, unit)) }
}

/// Returns the nearest integer (halves up) between 0 and `most`.
fn whole(value: &Decimal, most: u64, expected: &str) -> Result<u64, Expected> {
    if value.is_negative() {
        return Err(format!("{expected}, not negative"));
    }
    match value.rounded() {
        Some(whole) if whole <= most => Ok(whole),
        _ => Err(format!("{expected}, not as large")),
    }
}

fn is_zero(value: &Value) -> bool {
    matches!(value, Value::Int(0)) || matches!(value, Value::Float(n) if *n == 0.0)
}

/// Parses a time such as `20ms`. A bare 0 needs no unit.
///
/// # Errors
/// Returns the text that follows "expected".
pub fn parse_duration(value: &Value) -> Result<Span, Expected> {
    let expected = "a time such as '20ms' or '30s'";
    if is_zero(value) {
        return Ok(Span::ZERO);
    }
    let (number, unit) = split(value, expected)?;
    let scale = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" => NANOS_PER_SEC,
        "min" => 60 * NANOS_PER_SEC,
        "h" => 3600 * NANOS_PER_SEC,
        "" => return Err(expected.to_owned()),
        _ => return Err(format!("{expected} (units: ns, us, ms, s, min, h)")),
    };
    whole(&number.times(scale), MAX_NANOS, expected).map(Span::from_nanos)
}

/// Splits a prefix such as `k` or `Mi` from a unit, and returns its factor.
fn prefixed(unit: &str) -> impl Iterator<Item = (u64, &str)> {
    const PREFIXES: [(&str, u64); 8] = [
        ("", 1),
        ("k", 1_000),
        ("m", 1_000_000),
        ("g", 1_000_000_000),
        ("t", 1_000_000_000_000),
        ("ki", 1 << 10),
        ("mi", 1 << 20),
        ("gi", 1 << 30),
    ];
    PREFIXES.into_iter().filter_map(move |(prefix, factor)| {
        let start = unit.get(..prefix.len())?;
        start.eq_ignore_ascii_case(prefix).then(|| (factor, &unit[prefix.len()..]))
    })
}

/// Parses a rate such as `100mbit`, `10kbit/s`, `100Mbps` or `2MB/s`.
///
/// # Errors
/// Returns the text that follows "expected".
pub fn parse_rate(value: &Value) -> Result<BitRate, Expected> {
    let expected = "a rate such as '100mbit'";
    let (number, unit) = split(value, expected)?;
    let matching = prefixed(unit).find_map(|(factor, rest)| {
        let lower = rest.to_ascii_lowercase();
        let (amount, per) = match lower.as_str() {
            _ if lower.starts_with("bits") => rest.split_at(4),
            _ if lower.starts_with("bit") => rest.split_at(3),
            _ if lower.starts_with('b') => rest.split_at(1),
            _ => return None,
        };
        matches!(per.to_ascii_lowercase().as_str(), "" | "/s" | "ps").then_some((factor, amount, per))
    });
    let Some((factor, amount, per)) = matching else { return Err(expected.to_owned()) };
    let bits = if amount == "B" { 8 } else { 1 };
    if bits == 8 && per.is_empty() {
        return Err(format!("{expected} (bytes per second are written 'MB/s')"));
    }
    let rate = whole(&number.times(factor * bits), MAX_BITS_PER_SEC, expected)?;
    if number.is_positive() && rate < 8 {
        return Err(format!("{expected}, at least one byte per second ('8bit/s')"));
    }
    Ok(BitRate(rate))
}

/// Parses a size such as `64kB` or `1MiB`. A bare 0 needs no unit.
///
/// # Errors
/// Returns the text that follows "expected".
pub fn parse_size(value: &Value) -> Result<Bytes, Expected> {
    let expected = "a size such as '64kB'";
    if is_zero(value) {
        return Ok(Bytes::ZERO);
    }
    let (number, unit) = split(value, expected)?;
    let factor = prefixed(unit).find_map(|(factor, rest)| {
        let lower = rest.to_ascii_lowercase();
        (rest == "B" || lower == "byte" || lower == "bytes").then_some(factor)
    });
    let Some(factor) = factor else { return Err(expected.to_owned()) };
    whole(&number.times(factor), MAX_BYTES, expected).map(Bytes::new)
}

/// Parses a probability such as `0.1%` or 0.001.
///
/// # Errors
/// Returns the text that follows "expected".
pub fn parse_probability(value: &Value) -> Result<f64, Expected> {
    parse_part(value, "a probability such as '0.1%' or 0.001")
}

/// Parses a share such as `50%` or 0.5.
///
/// # Errors
/// Returns the text that follows "expected".
pub fn parse_share(value: &Value) -> Result<f64, Expected> {
    parse_part(value, "a share such as '50%' or 0.5")
}

/// Parses a number from 0 to 1, or in percent.
fn parse_part(value: &Value, expected: &str) -> Result<f64, Expected> {
    let p = match value {
        Value::Int(n) => *n as f64,
        Value::Float(n) => *n,
        Value::Big(_) => f64::INFINITY,
        _ => {
            let (number, unit) = split(value, expected)?;
            match unit {
                "" => number.to_f64(0),
                "%" => number.to_f64(-2),
                _ => return Err(expected.to_owned()),
            }
        }
    };
    if (0.0..=1.0).contains(&p) { Ok(p) } else { Err(format!("{expected}, between 0 and 1")) }
}

/// Parses a loss such as `0.1%` or 0.001. A bare 1 is an error, because it could mean 1 % or 100 %.
///
/// # Errors
/// Returns the text that follows "expected".
pub fn parse_loss(value: &Value) -> Result<f64, Expected> {
    let p = parse_probability(value)?;
    let has_percent = matches!(value, Value::Text(text) if text.contains('%'));
    if p == 1.0 && !has_percent {
        return Err("a loss such as '1%' or 0.01 ('100%' loses every packet)".to_owned());
    }
    Ok(p)
}

/// Largest number of bandwidth-delay products of a queue.
const MAX_BDP: u64 = 1_000_000;

/// Parses the length of a queue such as `1000p`, `150kB`, `1bdp` or `infinite`.
///
/// # Errors
/// Returns the text that follows "expected".
pub fn parse_limit(value: &Value) -> Result<Limit, Expected> {
    let expected = "a queue length such as '1000p', '150kB', '1bdp' or 'infinite'";
    if matches!(value, Value::Text(text) if text == "infinite") {
        return Ok(Limit::Infinite);
    }
    let (number, unit) = split(value, expected)?;
    if !number.is_positive() {
        return Err(format!("{expected}, above zero"));
    }
    if matches!(unit, "p" | "packets" | "pkts") {
        let packets = whole(&number, MAX_PACKETS, expected)?;
        if !number.is_whole() {
            return Err(format!("{expected}, whole packets"));
        }
        return Ok(Limit::Packets(packets as u32));
    }
    if unit.eq_ignore_ascii_case("bdp") {
        if number.exceeds(MAX_BDP) {
            return Err(format!("{expected}, no larger than 1000000bdp"));
        }
        return Ok(Limit::Bdp(number.to_f64(0)));
    }
    parse_size(value).map(|size| Limit::Bytes(size.get().max(1))).map_err(|_| expected.to_owned())
}

/// Parses the length of a queue as [`parse_limit`] does, but refuses `infinite`.
///
/// # Errors
/// Returns the text that follows "expected".
pub fn parse_finite_limit(value: &Value) -> Result<Limit, Expected> {
    match parse_limit(value)? {
        Limit::Infinite => Err("a length such as '0.17bdp' or a number of packets".to_owned()),
        limit => Ok(limit),
    }
}

/// Returns an amount in the largest of these units that is exact.
fn exact(amount: u64, units: &[(u64, &str)], smallest: &str) -> String {
    match units.iter().find(|(scale, _)| amount.is_multiple_of(*scale)) {
        Some((scale, unit)) => format!("{}{unit}", amount / scale),
        None => format!("{amount}{smallest}"),
    }
}

/// Returns a time as text, in the largest unit that is exact.
pub fn format_duration(span: Span) -> String {
    exact(span.as_nanos(), &[(NANOS_PER_SEC, "s"), (1_000_000, "ms"), (1_000, "us")], "ns")
}

/// Returns a rate as text, in the largest unit that is exact.
pub fn format_rate(rate: BitRate) -> String {
    if rate.0 == 0 {
        return "0bit".to_owned();
    }
    exact(rate.0, &[(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit")], "bit")
}

/// Returns a size as text, in the largest unit that is exact.
pub fn format_size(size: Bytes) -> String {
    if size == Bytes::ZERO {
        return "0B".to_owned();
    }
    exact(size.get(), &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")], "B")
}
