//! What agents tell the controller, beyond the messages of `narrows_control::rate`.

use narrows_control::rate::brf::congestion::Thresholds;
use narrows_control::rate::{FlowKey, Message, PortId};
use narrows_control::units::{Rate, Span};
use serde::Serialize;

/// Flows in one body, at most: the controller shows them to people.
pub const FLOWS_MAX: usize = 1000;

/// From agent to controller.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToController {
    /// All controlled ports: the first body of a connection, and again when they change.
    Ports {
        /// The ports.
        ports: Vec<PortInfo>,
    },
    /// The heaviest flows of a port, once in a second.
    Flows {
        /// The port.
        port: PortId,
        /// At most [`FLOWS_MAX`].
        flows: Vec<FlowInfo>,
    },
    /// A report or an advertisement.
    #[serde(untagged)]
    Message(Message),
}

impl ToController {
    /// Old news that may be thrown away for newer: all but the list of ports, which is kept apart.
    pub(super) fn is_perishable(&self) -> bool {
        !matches!(self, ToController::Ports { .. })
    }
}

/// A controlled port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortInfo {
    /// Number, this agent's own.
    pub port: PortId,
    /// Name of the interface.
    pub interface: String,
    /// Its index.
    pub ifindex: u32,
    /// Its hardware address, `aa:bb:cc:dd:ee:ff`: by it the controller finds the OpenFlow port.
    pub mac: String,
    /// IP datagrams up to this many bytes.
    pub mtu: u32,
    /// Capacity, L3 bytes/s.
    pub capacity: Rate,
    /// What counts as congestion here.
    pub thresholds: Thresholds,
}

/// A flow, for people to see.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowInfo {
    /// The flow.
    pub key: FlowKey,
    /// What its sender is: `rated`, `other-tcp`, `udp`.
    pub class: &'static str,
    /// The leaf of the port's queue: `mouse`, `elephant`, `other-tcp`, `udp`.
    pub leaf: &'static str,
    /// What it is allowed, L3 bytes/s.
    pub allocation: Option<Rate>,
    /// What it uses, L3 bytes/s.
    pub rate: Rate,
    /// Round-trip time.
    pub rtt: Option<Span>,
}
