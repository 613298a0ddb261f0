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
    /// Flows that have begun, ended or changed at a port, in order.
    FlowChanges {
        /// The port.
        port: PortId,
        /// At most [`FLOWS_MAX`].
        changes: Vec<FlowChange>,
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
    /// The rate controller, e.g. `brf`.
    pub controller: String,
    /// Its parameters in base units.
    pub params: toml::Table,
    /// What counts as congestion here, if the rate controller has such a notion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<Thresholds>,
}

/// A flow's [`Message::Flow`], of which there may be many at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowChange {
    /// The flow.
    pub key: FlowKey,
    /// It has begun; otherwise it has ended.
    pub begun: bool,
    /// All that it can use, L3 bytes/s.
    pub demand: Option<Rate>,
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
