//! Parameters of a rate controller: converts units into the base units of `narrows-control` (ns, bytes/s).

use std::sync::LazyLock;

use narrows_control::parameter::{Problem, Shape, Takes, Value, Values};
use narrows_control::rate::{PortId, PortParameters, RateController, brf, registry};
use narrows_control::units::Bytes;

use super::reader::{found, hint};
use super::units;

/// The rate controllers that real switches support, and the value of their parameter `signal`. Stock hosts send no
/// congestion headers and get rates in ACKs only.
pub(super) static KINDS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let known = registry::all().iter();
    known.filter_map(|entry| entry.on_switches().map(|signal| (entry.name, signal))).collect()
});

/// Value of the parameter `signal` of the rate controllers that have it.
pub(super) fn signal(name: &str) -> Option<&'static str> {
    KINDS.iter().find(|(kind, signal)| *kind == name && !signal.is_empty()).map(|(_, signal)| *signal)
}

/// Share of the link up to which UDP borrows by default. The rest is for the first packets of new flows.
const UDP_CEILING: f64 = 0.95;

/// Sets defaults of the rate controller's parameters that a real switch needs: room for the flows of the whole
/// switch, rates in ACKs, and UDP that may borrow. The rate controller ignores UDP's ceiling if it measures the
/// capacity.
pub(super) fn set_defaults(name: &str, max_flows: u32, params: &mut Values) {
    let mut set = |key: &str, value| {
        params.entry(key.to_owned()).or_insert(value);
    };
    if KINDS.iter().any(|(kind, _)| *kind == name) {
        set("max_flows", Value::Number(max_flows.into()));
    }
    if name == "brf" {
        set("udp_ceiling", Value::Number(UDP_CEILING));
    }
    if let Some(signal) = signal(name) {
        set("signal", Value::Word(signal.into()));
    }
}

/// Converts the table to base units. Calls `problem` with each key that the rate controller does not have, and with each
/// key whose value has the wrong form or is out of range.
pub(super) fn in_base_units(name: &str, given: &toml::Table, problem: impl Fn(&str, String)) -> Values {
    let mut values = Values::new();
    // The caller reports an unknown rate controller.
    let Some(entry) = registry::find(name) else { return values };
    for (key, value) in given {
        let Some(parameter) = entry.parameter(key) else {
            let names = entry.parameters.iter().map(|parameter| parameter.name);
            problem(key, format!("found an unknown key{}", hint(key, names)));
            continue;
        };
        match in_base_unit(&parameter.shape, value) {
            Ok(value) => match parameter.check(&value) {
                Ok(()) => drop(values.insert(key.clone(), value)),
                Err(wrong) => problem(key, format!("found {}, expected {}", wrong.found, wrong.expected)),
            },
            Err(expected) => problem(key, format!("found {}, expected {expected}", found(value))),
        }
    }
    values
}

fn in_base_unit(shape: &Shape, value: &toml::Value) -> Result<Value, String> {
    let word = value.as_str().unwrap_or_default();
    match (shape.takes, value) {
        (Takes::Time { .. }, _) => units::span(word).map(|span| Value::Number(span.as_nanos() as f64)),
        (Takes::Rate { .. }, _) => units::rate(word).map(|rate| Value::Number(rate.as_f64())),
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

/// The rate controller with these parameters.
pub(super) fn build(
    name: &str,
    params: &Values,
    port: PortId,
    mtu: Bytes,
) -> Result<RateController, Problem> {
    registry::build(name, params, port, mtu)
}

/// The parameters of BRF, if the rate controller is BRF.
pub(super) fn brf(name: &str, params: &Values) -> Option<brf::Params> {
    (name == "brf").then(|| brf::Params::read(name, params).ok()).flatten()
}
