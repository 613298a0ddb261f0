//! Checks those conditions on a body that the types of its fields do not ensure.

use narrows_control::units::Rate;

use crate::{FLOWS_MAX, FlowInfo, PORTS_MAX, PortInfo, ToController};

/// Maximum length of a word in characters.
const WORD_MAX: usize = 64;
/// If the controller displays a number or computes with it, the number must be below this limit.
const NUMBER_MAX: u64 = 1 << 63;

impl ToController {
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            ToController::Ports(body) => ports(&body.ports),
            ToController::Flows(body) => {
                at_most("flows", body.flows.len(), FLOWS_MAX)?;
                body.flows.iter().try_for_each(flow)
            }
            ToController::FlowChanges(body) => at_most("changes", body.changes.len(), FLOWS_MAX),
            ToController::Message(_) => Ok(()),
        }
    }
}

fn ports(ports: &[PortInfo]) -> Result<(), String> {
    at_most("ports", ports.len(), PORTS_MAX)?;
    ports.iter().try_for_each(port)?;
    if has_twice(ports.iter().map(|port| port.port)) {
        return Err("found a port twice".into());
    }
    if has_twice(ports.iter().map(|port| port.interface.as_str())) {
        return Err("found an interface twice".into());
    }
    Ok(())
}

fn port(port: &PortInfo) -> Result<(), String> {
    // The controller identifies a port as `AGENT/INTERFACE`.
    let is_part = |c: char| c.is_ascii_graphic() && c != '/';
    if port.interface.is_empty() || !is_word(&port.interface, is_part) {
        return Err(format!(
            "interface: found {:?}, expected 1 to {WORD_MAX} characters without '/'",
            port.interface
        ));
    }
    for (key, word) in [("mac", &port.mac), ("rate_controller", &port.rate_controller)] {
        if !is_word(word, |c| matches!(c, ' '..='~')) {
            return Err(format!("{key}: found {word:?}, expected at most {WORD_MAX} printable characters"));
        }
    }
    rate("capacity", port.capacity)
}

fn flow(flow: &FlowInfo) -> Result<(), String> {
    rate("rate", flow.rate)?;
    rate("allocation", flow.allocation.unwrap_or_default())?;
    number("rtt", flow.rtt.unwrap_or_default().as_nanos())
}

fn rate(key: &str, rate: Rate) -> Result<(), String> {
    number(key, rate.as_bytes_per_sec())
}

fn number(key: &str, number: u64) -> Result<(), String> {
    if number < NUMBER_MAX { Ok(()) } else { Err(format!("{key}: found {number}, expected less than 2^63")) }
}

fn at_most(key: &str, length: usize, most: usize) -> Result<(), String> {
    if length <= most { Ok(()) } else { Err(format!("{key}: found {length}, expected at most {most}")) }
}

fn is_word(word: &str, is_part: impl Fn(char) -> bool) -> bool {
    word.len() <= WORD_MAX && word.chars().all(is_part)
}

fn has_twice<T: Ord>(values: impl Iterator<Item = T>) -> bool {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.windows(2).any(|pair| pair[0] == pair[1])
}
