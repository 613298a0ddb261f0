//! Converts the controller's messages into bodies for an agent.

use narrows_control::rate::{Message, PortId};

use crate::FLOWS_MAX;

/// Converts a message into bodies for an agent. `port` is the agent's own number of the port. It replaces the number
/// that the port has in the controller's domain. Long grants are split, so that each body fits into a line.
pub fn to_agent(message: &Message, port: PortId) -> Vec<String> {
    match message {
        Message::Congestion { kind, .. } => vec![text(&Message::Congestion { kind: *kind, port })],
        Message::Grants { flows, newcomers, .. } => {
            let (first, rest) = flows.split_at(flows.len().min(FLOWS_MAX));
            let part = |flows: &[_], newcomers: &[_]| {
                text(&Message::Grants { port, flows: flows.to_vec(), newcomers: newcomers.to_vec() })
            };
            let rest = rest.chunks(FLOWS_MAX).map(|flows| part(flows, &[]));
            [part(first, newcomers)].into_iter().chain(rest).collect()
        }
        // Other switches identify the port by its number in the domain, so an advertisement keeps this number.
        other => vec![text(other)],
    }
}

fn text(message: &Message) -> String {
    // This never fails, because JSON can represent all strings and numbers.
    serde_json::to_string(message).unwrap_or_default()
}
