//! Parameters of a rate controller: converts units into the base units of `narrows-control` (ns, bytes/s).

use narrows_control::rate::{PortId, RateController, brf, registry};
use narrows_control::units::Bytes;
use toml::{Table, Value};

use super::reader::share;
use super::units;

/// Parameters that are times. A file must state their unit, although `narrows-control` reads plain numbers.
const SPANS: [&str; 17] = [
    // BRF's.
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
    // RCP's.
    "interval_max",
    "rtt",
    // BDR's.
    "tau_min",
    "tau_max",
    "t_rep_initial",
    "t_rep_max",
    // PACEC's.
    "sample",
];
/// Parameters that are rates.
const RATES: [&str; 1] = ["capacity_initial"];

/// The rate controllers that real switches support.
pub(super) const KINDS: [&str; 4] = ["brf", "rcp", "bdr", "pacec"];

/// Value of the parameter `signal` of the rate controllers that have it. Stock hosts send no congestion headers and get
/// rates in ACKs only.
pub(super) fn signal(name: &str) -> Option<&'static str> {
    match name {
        "rcp" | "bdr" => Some("ack"),
        "pacec" => Some("in-band"),
        _ => None,
    }
}

/// Share of the link up to which UDP borrows by default. The rest is for the first packets of new flows.
const UDP_CEILING: f64 = 0.95;

/// Defaults of the kind's parameters on a real switch: room for the flows of the whole switch, rates in ACKs, and UDP that
/// borrows. The rate controller ignores the ceiling if it measures the capacity.
pub(super) fn set_defaults(name: &str, max_flows: u32, params: &mut Table) {
    if KINDS.contains(&name) {
        params.entry("max_flows").or_insert(i64::from(max_flows).into());
    }
    if name == "brf" {
        params.entry("udp_ceiling").or_insert(UDP_CEILING.into());
    }
    if let Some(signal) = signal(name) {
        params.entry("signal").or_insert(signal.into());
    }
}

/// Converts the table to base units, and calls `problem` with each key that lacks a unit.
pub(super) fn in_base_units(given: &Table, problem: impl Fn(&str, String)) -> Table {
    let whole = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    let convert = |(key, value): (&String, &Value)| {
        let word = value.as_str().unwrap_or_default();
        let converted = match key.as_str() {
            key if SPANS.contains(&key) => units::span(word).map(|span| whole(span.as_nanos())),
            key if RATES.contains(&key) => units::rate(word).map(|rate| whole(rate.as_bytes_per_sec())),
            _ if word.ends_with('%') => share(value).map(Value::Float),
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
pub(super) fn build(name: &str, params: &Table, port: PortId, mtu: Bytes) -> Result<RateController, String> {
    let one_line = |error: toml::de::Error| error.message().trim().replace('\n', "; ");
    registry::build(name, params.clone(), port, mtu).map_err(one_line)
}

/// The parameters of BRF, if the rate controller is BRF.
pub(super) fn brf(name: &str, params: &Table) -> Option<brf::Params> {
    (name == "brf").then(|| params.clone().try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_control::rate::{bdr, pacec, rcp};

    /// The parameters are listed here by name; one that `narrows-control` renames or adds must not be missed.
    #[test]
    fn every_time_and_rate_is_listed() {
        let counts = [
            "max_flows",
            "max_half_open",
            "predictor_entries",
            "predictor_samples",
            "q_packets_min",
            "samples",
        ];
        let all = [
            serde_json::to_value(brf::Params::resolved()),
            serde_json::to_value(rcp::Params::default()),
            serde_json::to_value(bdr::Params::default()),
            serde_json::to_value(pacec::Params::default()),
        ]
        .map(Result::unwrap);
        let mut found: Vec<_> = all
            .iter()
            .flat_map(|params| params.as_object().unwrap())
            .filter(|(key, value)| value.is_u64() && !counts.contains(&key.as_str()))
            .map(|(key, _)| key.as_str())
            .collect();
        let mut listed = [&SPANS[..], &RATES[..]].concat();
        found.sort_unstable();
        found.dedup();
        listed.sort_unstable();
        assert_eq!(found, listed);
    }
}
