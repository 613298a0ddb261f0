//! Parses units as people write them (docs/reference/scenarios.md, "Units"), and prints them.
//!
//! The grammar is that of python/narrows/units.py. Prefixes are decimal, except `Ki`, `Mi` and `Gi`. Bytes need a
//! capital B. "Per second" is written `/s`. Errors say what is expected.

use narrows_control::units::{Bytes, NANOS_PER_SEC, Rate, Span};

/// Upper bounds, as in scenarios.
const MAX_NANOS: u128 = 1_000_000 * NANOS_PER_SEC as u128;
const MAX_BITS_PER_SEC: u128 = 1_000_000_000_000_000;
const MAX_BYTES: u128 = 1_000_000_000_000_000;

/// An exact decimal: `digits / 10^places`.
struct Number {
    digits: u128,
    places: u32,
}

impl Number {
    /// Returns `self * factor`, rounded to the nearest whole number (halves up), or `None` above `most`.
    fn times(&self, factor: u128, most: u128) -> Option<u128> {
        let divisor = 10u128.checked_pow(self.places)?;
        let whole = self.digits.checked_mul(factor)?.checked_add(divisor / 2)? / divisor;
        (whole <= most).then_some(whole)
    }
}

/// Splits text such as `"2.5 Gbit"` into number and unit. Exponents ("1e3") are valid only in scenarios.
fn split(text: &str) -> Option<(Number, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || number.len() > 25 {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((Number { digits, places: fraction.len() as u32 }, unit.trim()))
}

/// Returns the two interpretations of a unit that may begin with a prefix such as `k` or `Ki`. An interpretation is a
/// multiplier and the rest of the text.
fn prefix(unit: &str) -> [(u128, &str); 2] {
    let scale = |c: char| match c.to_ascii_lowercase() {
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        _ => 0,
    };
    let power = unit.chars().next().map_or(0, scale);
    if power == 0 {
        return [(1, unit), (1, unit)];
    }
    let rest = unit.get(1..).unwrap_or_default();
    match rest.strip_prefix(['i', 'I']) {
        Some(binary) if power < 4 => [(1 << (10 * power), binary), (1000u128.pow(power), rest)],
        _ => [(1000u128.pow(power), rest), (1, unit)],
    }
}

/// Parses a time such as `20ms` or `1.5s`. The units are ns, us, ms, s, min and h.
pub fn span(text: &str) -> Result<Span, String> {
    let expected = || "a time such as \"20ms\" or \"30s\"".to_owned();
    let (number, unit) = split(text).ok_or_else(expected)?;
    let nanos: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" if number.digits == 0 => 0,
        _ => return Err(expected()),
    };
    let nanos =
        number.times(nanos, MAX_NANOS).ok_or_else(|| format!("{}, and a smaller value", expected()))?;
    Ok(Span::from_nanos(nanos as u64))
}

/// Parses a rate such as `100mbit`, `2.5Gbit/s`, `100Mbps` or `2MB/s`.
pub fn rate(text: &str) -> Result<Rate, String> {
    let expected = || "a rate such as \"100mbit\"".to_owned();
    let (number, unit) = split(text).ok_or_else(expected)?;
    let octets = |word: &str| {
        let lower = word.to_ascii_lowercase();
        let (stem, timed) = match lower.strip_suffix("/s").or_else(|| lower.strip_suffix("ps")) {
            Some(stem) => (stem, true),
            None => (lower.as_str(), false),
        };
        match stem {
            "b" if word.starts_with('B') => Some(timed.then_some(8)),
            "b" | "bit" | "bits" => Some(Some(1)),
            _ => None,
        }
    };
    let found = prefix(unit).into_iter().find_map(|(scale, word)| octets(word).map(|octets| (scale, octets)));
    let (scale, octets) = found.ok_or_else(expected)?;
    let octets = octets.ok_or_else(|| format!("{} (bytes per second are written \"MB/s\")", expected()))?;
    let bits = number
        .times(scale * octets, MAX_BITS_PER_SEC)
        .ok_or_else(|| format!("{}, and a smaller value", expected()))?;
    if bits < 8 {
        return Err(format!("{}, at least one byte per second (\"8bit/s\")", expected()));
    }
    Ok(Rate::from_bits_per_sec(bits as u64))
}

/// Parses a size such as `64kB`, `1MiB` or `1500B`.
pub fn bytes(text: &str) -> Result<Bytes, String> {
    let expected = || "a size such as \"64kB\"".to_owned();
    let (number, unit) = split(text).ok_or_else(expected)?;
    let is_bytes = |word: &str| word == "B" || matches!(&*word.to_ascii_lowercase(), "byte" | "bytes");
    let scale = prefix(unit).into_iter().find(|(_, word)| is_bytes(word)).map(|(scale, _)| scale);
    let scale = match scale {
        None if unit.is_empty() && number.digits == 0 => 0,
        other => other.ok_or_else(expected)?,
    };
    let bytes =
        number.times(scale, MAX_BYTES).ok_or_else(|| format!("{}, and a smaller value", expected()))?;
    Ok(Bytes::new(bytes as u64))
}

/// Parses the length of a queue in packets, such as `1000p`. Lengths in bytes are refused, because Linux's pfifo counts
/// packets.
pub fn packets(text: &str) -> Result<u32, String> {
    let expected = || "a queue length in packets such as \"1000p\"".to_owned();
    let (number, unit) = split(text).ok_or_else(expected)?;
    match (unit, number.places, u32::try_from(number.digits)) {
        ("p" | "packets" | "pkts", 0, Ok(packets)) if packets > 0 => Ok(packets),
        ("p" | "packets" | "pkts", ..) => Err(format!("{}, whole and above zero", expected())),
        _ => Err(expected()),
    }
}

/// Parses a probability such as `0.1%` or `0.001`.
pub fn probability(text: &str) -> Result<f64, String> {
    let expected = || "a probability such as \"0.1%\" or 0.001".to_owned();
    let percent = text.trim().strip_suffix('%');
    let number: f64 = percent.unwrap_or(text).trim().parse().map_err(|_| expected())?;
    let p = if percent.is_some() { number / 100.0 } else { number };
    if (0.0..=1.0).contains(&p) { Ok(p) } else { Err(format!("{}, between 0 and 1", expected())) }
}

/// Returns `amount` as text, in the largest unit that gives a whole number.
fn largest(amount: u64, units: [(&str, u64); 4]) -> String {
    let fits = |(_, scale): &(&str, u64)| amount != 0 && amount.is_multiple_of(*scale);
    let (unit, scale) = units.into_iter().find(fits).unwrap_or(units[3]);
    format!("{}{unit}", amount / scale)
}

/// Returns a time as text, in the largest unit that gives a whole number.
pub fn show_span(span: Span) -> String {
    largest(span.as_nanos(), [("s", NANOS_PER_SEC), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)])
}

/// Returns a rate as text, in the largest unit that gives a whole number.
pub fn show_rate(rate: Rate) -> String {
    let bits = rate.as_bytes_per_sec().saturating_mul(8);
    largest(bits, [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)])
}

/// Returns a size as text, in the largest unit that gives a whole number.
pub fn show_bytes(bytes: Bytes) -> String {
    largest(bytes.get(), [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn printed_values_parse_to_the_same_value(n in 1u64..100_000_000_000_000) {
            let (time, speed, size) = (Span::from_nanos(n), Rate::from_bytes_per_sec(n), Bytes::new(n));
            prop_assert_eq!(span(&show_span(time)), Ok(time));
            prop_assert_eq!(rate(&show_rate(speed)), Ok(speed));
            prop_assert_eq!(bytes(&show_bytes(size)), Ok(size));
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC{0,20}", unit in "[0-9.]{0,30}[a-zA-Z/%]{0,6}") {
            for text in [text, unit] {
                let _ = (span(&text), rate(&text), bytes(&text), packets(&text), probability(&text));
            }
        }
    }

    #[test]
    fn units_of_scenarios_are_parsed() {
        let mbit = |n: u64| Ok(Rate::from_bits_per_sec(n * 1_000_000));
        for (text, expected) in [
            ("100mbit", mbit(100)),
            ("2.5Gbit/s", mbit(2500)),
            ("100Mbps", mbit(100)),
            ("2MB/s", mbit(16)),
            (" 0.5 mbit ", Ok(Rate::from_bits_per_sec(500_000))),
            ("1Mibit", Ok(Rate::from_bits_per_sec(1 << 20))),
            ("8bit/s", Ok(Rate::from_bytes_per_sec(1))),
            ("8b", Ok(Rate::from_bytes_per_sec(1))),
        ] {
            assert_eq!(rate(text), expected, "{text}");
        }
        assert_eq!(span("1.5s"), Ok(Span::from_millis(1500)));
        assert_eq!(span("20ms"), Ok(Span::from_millis(20)));
        assert_eq!(span("0"), Ok(Span::ZERO));
        assert_eq!(bytes("64kB"), Ok(Bytes::new(64_000)));
        assert_eq!(bytes("1MiB"), Ok(Bytes::new(1 << 20)));
        assert_eq!(packets("1000p"), Ok(1000));
        assert_eq!(probability("0.1%"), Ok(0.001));
    }

    #[test]
    fn errors_state_the_expected_value() {
        assert_eq!(rate("100"), Err("a rate such as \"100mbit\"".into()));
        assert!(rate("2MB").unwrap_err().contains("bytes per second are written \"MB/s\""));
        assert!(rate("1bit").unwrap_err().contains("at least one byte per second"));
        assert!(rate("99999999999tbit").unwrap_err().contains("and a smaller value"));
        assert_eq!(span("20"), Err("a time such as \"20ms\" or \"30s\"".into()));
        assert!(packets("1.5p").unwrap_err().contains("whole"));
        assert!(packets("150kB").is_err() && bytes("3b").is_err() && probability("120%").is_err());
    }
}
