//! Actions of a rate controller, and messages between the ports and the controller of a domain.

use serde::{Deserialize, Serialize};

use super::kit::features::Features;
use super::{Class, FlowIdentity, FlowKey};
use crate::units::{Bytes, Rate, Span, Time};

/// A request of a rate controller to its host.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<K: FlowIdentity = FlowKey> {
    /// Set the rate and the ceiling of an HTB class.
    SetClass {
        /// The class.
        class: Class,
        /// Guaranteed rate.
        rate: Rate,
        /// Ceiling for borrowing.
        ceil: Rate,
    },
    /// Send this message to the domain's SDN controller.
    ToController(Message<K>),
    /// Send the rate of a flow to its source, in a separate message instead of an ACK (PAC-3b).
    ToSource {
        /// The flow.
        flow: K,
        /// Its rate, L3 bytes/s.
        rate: Rate,
    },
    /// Write an event, with the flow and a value, to the log of the run.
    Log {
        /// A fixed word, e.g. `congestion-queue`.
        event: &'static str,
        /// The flow that the event concerns, if there is one.
        flow: Option<K>,
        /// Value in SI units (bytes/s, seconds, count).
        value: f64,
    },
    /// Log that the port has entered this state. States change many times per second, so a host may hide these events
    /// from its operator.
    State {
        /// A fixed word, e.g. `state-measure`.
        state: &'static str,
        /// Number of flows with a rate.
        value: f64,
    },
    /// Write a record of a flow that has ended. Bandwidth models are trained from these records (BRF-31).
    Record {
        /// The flow.
        flow: K,
        /// The features of the flow at the time `joined`.
        features: Features,
        /// The time at which the flow last got a rate as a newcomer.
        joined: Time,
        /// The rate that the flow could use, L3 bytes/s: its own mean rate, or the rate of the link if the
        /// port limited the flow.
        rate: Rate,
        /// Whether the application limited the flow.
        limited: bool,
    },
}

/// Identifies a controlled port in its domain.
pub type PortId = u32;

/// Messages between switches and the SDN controller (BRF-63, BRF-73).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(bound = "K: schemars::JsonSchema, K::Host: schemars::JsonSchema")
)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    bound(
        serialize = "K: Serialize, K::Host: Serialize",
        deserialize = "K: Deserialize<'de>, K::Host: Deserialize<'de>"
    )
)]
pub enum Message<K: FlowIdentity = FlowKey> {
    /// Controller to switch: report your counters.
    Poll,
    /// Switch to controller: the answer to `Poll`.
    Report(Report),
    /// Controller to switch: this port is congested, or is no longer congested.
    Congestion {
        /// The kind of congestion; `None` if the congestion is over.
        kind: Option<CongestionKind>,
        /// The port.
        port: PortId,
    },
    /// Switch to switches: the allocation of a flow. Sent by a switch that sees the flow's data but not its ACKs
    /// (BRF-63).
    FlowAdvertisement {
        /// The flow.
        key: K,
        /// Its allocation, L3 bytes/s.
        rate: Rate,
        /// The port that has made this allocation.
        port: PortId,
        /// Sequence number, which increases by one with each advertisement of the port.
        seq: u64,
        /// Time for which the advertisement is valid if it is not refreshed.
        valid_for: Span,
    },
    /// Ingress to controller: a flow began or ended at this ingress (PAC-21).
    Flow {
        /// The reporting port.
        port: PortId,
        /// The flow.
        key: K,
        /// Whether the flow began; if not, it ended.
        begun: bool,
        /// The flow's measured demand, L3 bytes/s, if it is below the flow's grant.
        demand: Option<Rate>,
    },
    /// Controller to ingress: rates of the flows that begin at this ingress. The message also has rates for newcomers,
    /// which are valid until the next update (PAC-22).
    Grants {
        /// The port of the ingress.
        port: PortId,
        /// Rates of flows, L3 bytes/s.
        flows: Vec<(K, Rate)>,
        /// Rates for newcomers, by destination, L3 bytes/s.
        newcomers: Vec<(K::Host, Rate)>,
    },
}

/// The kinds of congestion of the BRF paper.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CongestionKind {
    /// theta1: a standing queue.
    Queue,
    /// theta2: a burst, arrivals above capacity.
    Burst,
}

/// A port's counters, as reported to the SDN controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The port.
    pub port: PortId,
    /// When the counters were read.
    pub at: Time,
    /// Capacity of the port.
    pub capacity: Rate,
    /// Share of the capacity for the rated class, the class of flows that have rates.
    pub rated_share: Rate,
    /// L3 bytes of the rated class offered to the port since the run began.
    pub rated_arrived: Bytes,
    /// L3 bytes of the rated class that left the port since the run began.
    #[serde(default)]
    pub rated_departed: Bytes,
    /// L3 bytes that left the port (all classes).
    pub departed: Bytes,
    /// L3 bytes queued (all classes).
    #[serde(default)]
    pub queued: Bytes,
    /// Packets that left the port (all classes).
    pub departed_packets: u64,
    /// Queued bytes of the rated class.
    pub rated_queued: Bytes,
    /// Number of queued packets of the rated class, and the limit of its queue.
    pub rated_packets: (u32, u32),
    /// Number of queued packets of all classes, and the sum of the limits of their queues.
    pub all_packets: (u32, u32),
    /// The control period T.
    pub period: Span,
}
