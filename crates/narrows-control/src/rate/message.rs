//! Actions of a rate controller, and messages between the ports and the controller of a domain.

use serde::{Deserialize, Serialize};

use super::{Class, FlowIdentity, FlowKey};
use crate::units::{Bytes, Rate, Span, Time};

/// A request of a rate controller to its host.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<K: FlowIdentity = FlowKey> {
    /// Set rate and ceiling of an HTB class.
    SetClass {
        /// The class.
        class: Class,
        /// Guaranteed rate.
        rate: Rate,
        /// Ceiling for borrowing.
        ceil: Rate,
    },
    /// Send this to the domain's SDN controller.
    ToController(Message<K>),
    /// Send the flow's source its rate in a message of its own, not in an ACK (PAC-3b).
    ToSource {
        /// The flow.
        flow: K,
        /// Its rate, L3 bytes/s.
        rate: Rate,
    },
    /// Write to the log of the run: an event, the flow and a value.
    Log {
        /// A fixed word, e.g. `congestion-theta1`.
        event: &'static str,
        /// The flow concerned.
        flow: Option<K>,
        /// Value in SI units (bytes/s, seconds, count).
        value: f64,
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
        /// The kind; `None` if the congestion is over.
        kind: Option<CongestionKind>,
        /// The port.
        port: PortId,
    },
    /// A switch that sees a flow's data but not its ACKs sends the flow's allocation to the other switches
    /// (BRF-63).
    FlowAdvertisement {
        /// The flow.
        key: K,
        /// Its allocation, L3 bytes/s.
        rate: Rate,
        /// The port that allocated it.
        port: PortId,
        /// Increases by one per advertisement of a port.
        seq: u64,
        /// Lifetime without a refresh.
        valid_for: Span,
    },
    /// Ingress to controller: a flow began or ended here (PAC-21).
    Flow {
        /// The reporting port.
        port: PortId,
        /// The flow.
        key: K,
        /// Whether the flow began; if not, it ended.
        begun: bool,
        /// Its measured demand, L3 bytes/s, if that is below its grant.
        demand: Option<Rate>,
    },
    /// Controller to ingress: rates of its flows, and of newcomers until the next update (PAC-22).
    Grants {
        /// The port addressed.
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
    /// Share of the rated class.
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
    /// Bytes of the rated class queued.
    pub rated_queued: Bytes,
    /// Packets of the rated class queued, and the limit of its queue.
    pub rated_packets: (u32, u32),
    /// Packets queued in all classes, and the sum of all limits.
    pub all_packets: (u32, u32),
    /// The control period T.
    pub period: Span,
}
