//! Rate controllers in the network: they turn the packets of a port into a rate for each flow.
//!
//! [`RateController`] is the contract. Its inputs are packets, timers and messages. It returns a
//! leaf for each packet, a rate to write, and [`Action`]s. The host (the simulator's switch, or the
//! agent on a real one) owns queues, clocks and wires. A
//! [`DomainController`](domain::DomainController) decides for many ports at once; it exchanges only
//! [`Message`]s.

pub mod aggregate;
pub mod bdr;
pub mod brf;
pub mod demand_index;
pub mod demand_list;
pub mod domain;
mod flow_id;
mod half_open;
mod identity;
pub mod obp;
pub mod pacec;
mod parameters;
pub mod policer;
mod ranges;
pub mod rcp;
pub mod registry;
mod rtt;
pub mod sdn;
pub mod service;
mod slots;
pub mod subscriber;
pub mod uniform;
pub mod waterfill;
pub mod xcp;

#[cfg(test)]
mod header_tests;

use serde::{Deserialize, Serialize};

pub use identity::{FlowIdentity, FlowKey, Host, Proto};

use crate::feedback::header::Header;
use crate::units::{Bytes, Rate, Span, Time};

/// TCP flags that a switch uses.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct TcpFlags {
    /// SYN.
    pub syn: bool,
    /// ACK.
    pub ack: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
}

/// The rate option of a packet (BRF-9, BRF-10).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum RateOption {
    /// The packet has no option.
    #[default]
    Absent,
    /// The option without a value: "permitted" in a SYN, "not assigned yet" in an ACK.
    Unassigned,
    /// A switch wrote this rate, L3 bytes/s.
    Assigned(Rate),
}

/// The fields of a packet that a switch can read.
#[derive(Clone, Debug)]
pub struct PacketInfo<K = FlowKey> {
    /// The flow in its data direction, also for an ACK.
    pub key: K,
    /// Size of the IP datagram.
    pub size: Bytes,
    /// TCP payload (0 for a pure ACK).
    pub payload: Bytes,
    /// TCP flags; all false for UDP.
    pub flags: TcpFlags,
    /// The rate option.
    pub option: RateOption,
    /// Whether the sender says that its application does not limit it (BRF-100); `None` from
    /// senders that never say so.
    pub unlimited: Option<bool>,
    /// First sequence number of the payload (bytes).
    pub seq: u64,
    /// Timestamp option: TSval, TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// The congestion header (data direction only).
    pub header: Header,
    /// VLAN of the flow; 0 for none.
    pub vlan: u16,
    /// Mark of the flow, set by its host's rules; 0 for none.
    pub mark: u32,
}

impl<K> PacketInfo<K> {
    /// Whether the packet shows that its sender follows rates, even if its SYN was not seen
    /// (BRF-10, BRF-105).
    pub(crate) fn sender_follows_rates(&self) -> bool {
        self.option != RateOption::Absent || self.unlimited.is_some()
    }
}

/// Counters of the controlled port, measured by its host.
#[derive(Clone, Debug, Default)]
pub struct PortCounters {
    /// Configured capacity; `None` if it must be measured (BRF-101).
    pub capacity: Option<Rate>,
    /// L3 bytes offered to the port so far, by leaf.
    pub arrived: [Bytes; LEAVES],
    /// L3 bytes that left the port so far, by leaf.
    pub departed: [Bytes; LEAVES],
    /// Packets that left the port so far, all leaves.
    pub departed_packets: u64,
    /// L3 bytes queued now, by leaf.
    pub queued: [Bytes; LEAVES],
    /// Packets queued now, by leaf.
    pub queued_packets: [u32; LEAVES],
    /// Queue limit in packets, by leaf; 0 for no limit.
    pub limit_packets: [u32; LEAVES],
}

/// L3 bytes of a full packet, to convert limits in packets to bytes.
const FULL_PACKET: u64 = 1500;

impl PortCounters {
    /// L3 bytes queued, all leaves.
    pub fn backlog(&self) -> Bytes {
        self.queued.iter().copied().sum()
    }

    /// Limit of the rated flows' queue in full packets; `None` for no limit.
    pub fn limit(&self) -> Option<Bytes> {
        let packets = u64::from(self.limit_packets[Leaf::Elephant as usize]);
        (packets > 0).then(|| Bytes::new(packets * FULL_PACKET))
    }
}

/// The leaf of a packet for controllers that classify only by headers: flows with a header are
/// rated, all others are TCP or UDP.
pub fn plain_leaf<K: FlowIdentity>(packet: &PacketInfo<K>) -> Leaf {
    match (packet.header, packet.key.proto()) {
        (Header::None, Proto::Tcp) => Leaf::OtherTcp,
        (Header::None, Proto::Udp) => Leaf::Udp,
        _ => Leaf::Elephant,
    }
}

/// Leaves of a controlled port's queue.
pub const LEAVES: usize = 4;

/// Number of UDP's queues at a port where UDP may borrow (BRF-23); a power of two. UDP flows are distributed over the
/// queues, which take turns. The number is small, because the agent reads the counters of each queue in every tick.
pub const UDP_QUEUES: u16 = 32;

/// The limit of each UDP queue is the port's limit divided by this number. All 32 queues together then hold 3.2 times as
/// many packets as another leaf, instead of 32 times as many.
pub const UDP_QUEUE_PART: u32 = 10;

/// A leaf of the port's queue: rated flows in two layers (strict priority), other TCP, UDP.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum Leaf {
    /// Rated flows, upper layer (mice).
    Mouse = 0,
    /// Rated flows.
    Elephant = 1,
    /// All other TCP.
    OtherTcp = 2,
    /// UDP.
    Udp = 3,
}

/// A class of the port's HTB (BRF-20 to BRF-23).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Class {
    /// [`Leaf::Mouse`] above [`Leaf::Elephant`].
    Rated = 0,
    /// [`Leaf::OtherTcp`].
    OtherTcp = 1,
    /// [`Leaf::Udp`].
    Udp = 2,
}

/// How a controlled port queues.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Queueing {
    /// The three classes of BRF-20 to BRF-23. An HTB replaces the port's queue.
    #[default]
    Classes,
    /// The port keeps its queue and its limit.
    Own,
}

/// The treatment of a packet at the controlled port.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It joins this leaf. With [`Queueing::Own`] the leaf only determines how it is counted.
    Queue(Leaf),
    /// The policer drops it.
    Drop,
}

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
#[serde(rename_all = "lowercase")]
pub enum CongestionKind {
    /// theta1: a standing queue.
    Queue,
    /// theta2: a burst, arrivals above capacity.
    Burst,
}

/// A port's counters, as reported to the SDN controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// A rate controller of one port: a pure state machine. Unused methods have defaults.
pub trait RateController<K: FlowIdentity = FlowKey>: Send {
    /// The name in scenarios and results, e.g. `brf`.
    fn name(&self) -> &'static str;

    /// The port has come up. The controller sets the first class rates.
    fn on_start(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>);

    /// A data packet is about to join the controlled port's queue.
    fn on_data(
        &mut self,
        _now: Time,
        packet: &PacketInfo<K>,
        _port: &PortCounters,
        _actions: &mut Vec<Action<K>>,
    ) -> Admission {
        Admission::Queue(plain_leaf(packet))
    }

    /// How the port queues. Header-based controllers need no classes of flows.
    fn queueing(&self) -> Queueing {
        if self.uses_headers() { Queueing::Own } else { Queueing::Classes }
    }

    /// Whether UDP has per-flow queues and may borrow, at a port with a configured capacity. Otherwise UDP is
    /// policed: a packet that would have to wait is dropped (BRF-23).
    fn queues_udp(&self) -> bool {
        false
    }

    /// Whether it uses congestion headers. If so, [`on_arrival`](RateController::on_arrival) and
    /// [`on_departure`](RateController::on_departure) are called for each data packet.
    fn uses_headers(&self) -> bool {
        false
    }

    /// A data packet has arrived for the port. The host calls this before
    /// [`on_data`](RateController::on_data). Its header, which may be [`Header::None`], may be rewritten.
    fn on_arrival(&mut self, _now: Time, _size: Bytes, _header: &mut Header, _port: &PortCounters) {}

    /// A data packet starts to leave, with `queued` L3 bytes behind it. Its header may be
    /// rewritten.
    fn on_departure(&mut self, _now: Time, _size: Bytes, _header: &mut Header, _queued: Bytes) {}

    /// Whether this controller needs a configured capacity. Other controllers measure the capacity
    /// if none is configured.
    fn needs_configured_capacity(&self) -> bool {
        self.uses_headers()
    }

    /// Whether it needs a [`domain::DomainController`].
    fn needs_domain(&self) -> bool {
        false
    }

    /// A packet of the reverse direction passes the switch. Returns the rate to write into it.
    fn on_reverse(
        &mut self,
        _now: Time,
        _packet: &PacketInfo<K>,
        _actions: &mut Vec<Action<K>>,
    ) -> Option<Rate> {
        None
    }

    /// The rate that the last `on_reverse` of this flow returned did not fit into its packet
    /// (BRF-11).
    fn on_write_failed(&mut self, _key: &K) {}

    /// The deadline of [`next_timer`](RateController::next_timer) has passed, or the configured
    /// capacity changed.
    fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>);

    /// A message from the SDN controller has arrived.
    fn on_message(
        &mut self,
        _now: Time,
        _message: &Message<K>,
        _port: &PortCounters,
        _actions: &mut Vec<Action<K>>,
    ) {
    }

    /// When `on_timer` must be called next.
    fn next_timer(&self) -> Time;

    /// The flow's current rate, for traces; `None` if the flow is unknown or has none.
    fn allocation(&self, _key: &K) -> Option<Rate> {
        None
    }

    /// The interface through which this controller takes counts instead of packets; `None` if it has none.
    fn aggregated(&mut self) -> Option<&mut dyn aggregate::Aggregated<K>> {
        None
    }

    /// Names and values of the internal state, for traces.
    fn trace(&self, _trace: &mut dyn FnMut(&'static str, f64)) {}
}
