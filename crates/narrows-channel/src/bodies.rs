//! The types of the bodies that an agent sends.

use std::borrow::Cow;

use narrows_control::parameter::Values;
use narrows_control::rate::brf::congestion::Thresholds;
use narrows_control::rate::{Class, FlowKey, Leaf, Message, PortId};
use narrows_control::units::{Rate, Span};
use serde::{Deserialize, Serialize};

/// A body that an agent sends to the controller.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToController {
    /// All controlled ports. The agent sends this body first in each connection, and again when the ports change.
    Ports(Ports),
    /// The largest flows of a port, once per second, for display.
    Flows(Flows),
    /// Flows that started, ended or changed at a port, in the order of the events.
    FlowChanges(FlowChanges),
    /// A message of a rate controller: a report or an advertisement.
    #[serde(untagged)]
    Message(Message),
}

/// All controlled ports of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ports {
    /// At most `PORTS_MAX` ports. No two ports have the same number or interface.
    pub ports: Vec<PortInfo>,
}

/// The largest flows of a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flows {
    /// The port.
    pub port: PortId,
    /// At most `FLOWS_MAX` flows.
    pub flows: Vec<FlowInfo>,
}

/// Flows that started, ended or changed at a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowChanges {
    /// The port.
    pub port: PortId,
    /// At most `FLOWS_MAX` changes, in the order of the events.
    pub changes: Vec<FlowChange>,
}

/// A port that an agent controls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortInfo {
    /// The number that the agent gave the port.
    pub port: PortId,
    /// Name of the interface.
    pub interface: String,
    /// Index of the interface (ifindex).
    pub ifindex: u32,
    /// Hardware address of the interface. The controller finds the OpenFlow port by this address.
    pub mac: String,
    /// Largest IP datagram in bytes.
    pub mtu: u32,
    /// Capacity of the port, L3 bytes/s.
    pub capacity: Rate,
    /// The rate controller, e.g. `brf`. Older agents send this key as `controller`.
    #[serde(alias = "controller", default = "brf")]
    pub rate_controller: String,
    /// Parameters of the rate controller in base units. Parsing a body does not check the parameters. The code that
    /// uses a parameter checks it.
    #[serde(default)]
    pub params: Values,
    /// The thresholds of congestion; absent if the rate controller has no thresholds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<Thresholds>,
}

fn brf() -> String {
    "brf".into()
}

/// A change of one flow, with the same content as [`Message::Flow`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowChange {
    /// The flow.
    pub key: FlowKey,
    /// Whether the flow started or changed. If false, the flow ended.
    pub begun: bool,
    /// The largest rate that the flow can use, L3 bytes/s.
    #[serde(default)]
    pub demand: Option<Rate>,
}

/// A flow at a port, as displayed to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowInfo {
    /// The flow.
    pub key: FlowKey,
    /// The class of the flow in the port's queue. It depends on the flow's sender.
    pub class: Class,
    /// The leaf of the port's queue in which the flow's packets wait.
    pub leaf: Leaf,
    /// Allowed rate of the flow, L3 bytes/s.
    #[serde(default)]
    pub allocation: Option<Rate>,
    /// Current rate of the flow, L3 bytes/s.
    pub rate: Rate,
    /// Round-trip time, nanoseconds.
    #[serde(default)]
    pub rtt: Option<Span>,
}

/// The type of a body.
#[derive(Deserialize)]
#[serde(expecting = "an object with a type")]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

impl ToController {
    /// Parses a body and checks it.
    ///
    /// # Errors
    /// The error names the type of the body, what was found and what was expected. It can quote the body.
    pub fn parse(text: &str) -> Result<ToController, String> {
        let Head { kind } = serde_json::from_str(text)
            .map_err(|error| format!("found a line that is not a body: {error}"))?;
        // The type is parsed first, because it selects the structure. For a tagged enum, Serde would first parse the
        // whole body into a tree. That would take longer, and errors would have no position.
        match &*kind {
            "ports" => parse(text).map(ToController::Ports),
            "flows" => parse(text).map(ToController::Flows),
            "flow-changes" => parse(text).map(ToController::FlowChanges),
            "report" => parse(text).map(|report| ToController::Message(Message::Report(report))),
            "flow-advertisement" => parse(text).map(ToController::Message),
            _ => Err("found an unknown type of body".into()),
        }
        .and_then(|body| body.check().map(|()| body))
        .map_err(|error| format!("{kind}: {error}"))
    }

    /// Returns whether the agent drops this body if the body still waits when a new list of ports must be sent. Only a
    /// list of ports is never dropped.
    pub fn is_perishable(&self) -> bool {
        !matches!(self, ToController::Ports(_))
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
