//! Parameters of a rate controller: unit words into the base units that `narrows-control` reads (ns, bytes/s).

use narrows_control::rate::{PortId, RateController, brf, registry};
use narrows_control::units::Bytes;
use toml::{Table, Value};

use super::units;

/// Parameters that are times. `narrows-control` reads plain numbers; a file has to say the unit.
const SPANS: [&str; 10] = [
    "q_delay_max",
    "period_min",
    "period_max",
    "poll",
    "controller_timeout",
    "rtt_default",
    "idle_after",
    "handshake_timeout",
    "forget_after",
    "ack_timer_min",
];
/// Parameters that are rates.
const RATES: [&str; 1] = ["capacity_initial"];

/// The table with every unit word in base units; `problem` hears of keys that have none where one is needed.
pub(super) fn in_base_units(given: &Table, problem: impl Fn(&str, String)) -> Table {
    let whole = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    let convert = |(key, value): (&String, &Value)| {
        let word = value.as_str().unwrap_or_default();
        let converted = match key.as_str() {
            key if SPANS.contains(&key) => units::span(word).map(|span| whole(span.as_nanos())),
            key if RATES.contains(&key) => units::rate(word).map(|rate| whole(rate.as_bytes_per_sec())),
            _ if word.ends_with('%') => units::probability(word).map(Value::Float),
            _ => Ok(value.clone()),
        };
        match converted {
            Ok(value) => Some((key.clone(), value)),
            Err(expected) => {
                problem(key, format!("found {value}, expected {expected}"));
                None
            }
        }
    };
    given.iter().filter_map(convert).collect()
}

/// The rate controller with these parameters.
pub(super) fn build(
    name: &str,
    params: &Table,
    port: PortId,
    mtu: Bytes,
) -> Result<Box<dyn RateController>, String> {
    let one_line = |error: toml::de::Error| error.message().trim().replace('\n', "; ");
    registry::build(name, params.clone(), port, mtu).map_err(one_line)
}

/// The parameters, if they are BRF's.
pub(super) fn brf(name: &str, params: &Table) -> Option<brf::Params> {
    (name == "brf").then(|| params.clone().try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_control::rate::brf::Params;

    /// The units are listed here by name; a parameter that `narrows-control` renames or adds must not slip through.
    #[test]
    fn every_time_and_rate_of_brf_is_listed() {
        let params = serde_json::to_value(Params::resolved()).unwrap();
        let counts =
            ["max_flows", "max_half_open", "predictor_entries", "predictor_samples", "q_packets_min"];
        let in_base_units = params
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, value)| value.is_u64() && !counts.contains(&key.as_str()));
        let mut found: Vec<_> = in_base_units.map(|(key, _)| key.as_str()).collect();
        let mut listed = [&SPANS[..], &RATES[..]].concat();
        found.sort_unstable();
        listed.sort_unstable();
        assert_eq!(found, listed);
    }
}
