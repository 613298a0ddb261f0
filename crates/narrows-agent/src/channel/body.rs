//! Bodies that agents send to the controller, in addition to the messages of `narrows_control::rate`.

use narrows_control::rate::brf::congestion::Thresholds;
use narrows_control::rate::{FlowKey, Message, PortId};
use narrows_control::units::{Rate, Span};
use serde::Serialize;

/// Maximum number of flows in one body, because the controller displays them to people.
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
    /// The largest flows of a port, once per second.
    Flows {
        /// The port.
        port: PortId,
        /// At most [`FLOWS_MAX`] flows.
        flows: Vec<FlowInfo>,
    },
    /// Flows that started, ended or changed at a port, in order.
    FlowChanges {
        /// The port.
        port: PortId,
        /// At most [`FLOWS_MAX`] changes.
        changes: Vec<FlowChange>,
    },
    /// A report or an advertisement.
    #[serde(untagged)]
    Message(Message),
}

impl ToController {
    /// Whether newer bodies may replace this one. This is true for all bodies except the list of ports, which is kept
    /// separately.
    pub(super) fn is_perishable(&self) -> bool {
        !matches!(self, ToController::Ports { .. })
    }
}

/// A controlled port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortInfo {
    /// The number that this agent gave the port.
    pub port: PortId,
    /// Name of the interface.
    pub interface: String,
    /// Its index.
    pub ifindex: u32,
    /// Hardware address of the interface, `aa:bb:cc:dd:ee:ff`, by which the controller finds the OpenFlow port.
    pub mac: String,
    /// Largest IP datagram in bytes.
    pub mtu: u32,
    /// Capacity, L3 bytes/s.
    pub capacity: Rate,
    /// The rate controller, e.g. `brf`.
    pub rate_controller: String,
    /// Parameters of the rate controller in base units.
    pub params: toml::Table,
    /// The thresholds of congestion, if the rate controller has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<Thresholds>,
}

/// A flow's [`Message::Flow`]. There may be many at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowChange {
    /// The flow.
    pub key: FlowKey,
    /// Whether it started. Otherwise it ended.
    pub begun: bool,
    /// The largest rate that the flow can use, L3 bytes/s.
    pub demand: Option<Rate>,
}

/// A flow, as displayed to people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowInfo {
    /// The flow.
    pub key: FlowKey,
    /// Kind of the flow's sender: `rated`, `other-tcp`, `udp`.
    pub class: &'static str,
    /// The leaf of the port's queue: `mouse`, `elephant`, `other-tcp`, `udp`.
    pub leaf: &'static str,
    /// Allowed rate of the flow, L3 bytes/s.
    pub allocation: Option<Rate>,
    /// Present rate of the flow, L3 bytes/s.
    pub rate: Rate,
    /// Round-trip time.
    pub rtt: Option<Span>,
}
