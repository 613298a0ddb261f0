//! Rate controllers: in the network, from the packets of a port to the rate that each flow may have.
//!
//! The contract is [`RateController`]: packets, timers and messages in; a leaf for each packet, a rate to write
//! and [`Action`]s out. The host (the simulator's switch, the agent on a real one) owns queues, clocks and wires.
//! What is decided for many ports at once is decided by a [`DomainController`](domain::DomainController), which hears and says [`Message`]s only.

pub mod aggregate;
pub mod bdr;
pub mod brf;
pub mod demand_index;
pub mod domain;
mod flow_id;
mod half_open;
pub mod obp;
pub mod pacec;
pub mod policer;
mod ranges;
pub mod rcp;
pub mod registry;
mod rtt;
pub mod sdn;
pub mod service;
mod slots;
pub mod uniform;
pub mod waterfill;
pub mod xcp;

#[cfg(test)]
mod header_tests;

use core::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::feedback::header::Header;
use crate::units::{Bytes, Rate, Span, Time};

/// Names a flow in its data direction.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FlowKey {
    /// Source address of the data.
    pub saddr: IpAddr,
    /// Destination address of the data.
    pub daddr: IpAddr,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Transport protocol.
    pub proto: Proto,
}

/// Transport protocol.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proto {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// TCP flags that matter to a switch.
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
    /// The packet carries no option.
    #[default]
    Absent,
    /// The option is there, without a value: "permitted" in a SYN, "not assigned yet" in an ACK.
    Unassigned,
    /// A switch wrote this rate, L3 bytes/s.
    Assigned(Rate),
}

/// What a switch can read from one packet.
#[derive(Clone, Debug)]
pub struct PacketInfo {
    /// The flow, always in its data direction, also for an ACK.
    pub key: FlowKey,
    /// Size of the IP datagram.
    pub size: Bytes,
    /// TCP payload (0 for a pure ACK).
    pub payload: Bytes,
    /// TCP flags; all false for UDP.
    pub flags: TcpFlags,
    /// The rate option.
    pub option: RateOption,
    /// The sender's "I am not limited by the application" bit (BRF-100); `None` from a sender that has no such bit.
    pub unlimited: Option<bool>,
    /// First sequence number of the payload (bytes).
    pub seq: u64,
    /// Timestamp option: TSval, TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// The congestion header (data direction only).
    pub header: Header,
}

/// The controlled port as its host measures it.
#[derive(Clone, Debug, Default)]
pub struct PortCounters {
    /// Capacity as told by whoever knows it; `None` when it has to be measured (BRF-101).
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
    /// Queue limit in packets, by leaf; 0: no limit.
    pub limit_packets: [u32; LEAVES],
}

/// L3 bytes of a full packet, where limits in packets have to be compared with bytes.
const FULL_PACKET: u64 = 1500;

impl PortCounters {
    /// L3 bytes queued, all leaves.
    pub fn backlog(&self) -> Bytes {
        self.queued.iter().copied().sum()
    }

    /// Limit of the rated flows' queue, of full packets; `None`: no limit.
    pub fn limit(&self) -> Option<Bytes> {
        let packets = u64::from(self.limit_packets[Leaf::Elephant as usize]);
        (packets > 0).then(|| Bytes::new(packets * FULL_PACKET))
    }
}

/// How a packet is counted by a controller that does not classify by more than the headers: flows that carry its header are
/// rated, all others TCP or UDP.
pub fn plain_leaf(packet: &PacketInfo) -> Leaf {
    match (packet.header, packet.key.proto) {
        (Header::None, Proto::Tcp) => Leaf::OtherTcp,
        (Header::None, Proto::Udp) => Leaf::Udp,
        _ => Leaf::Elephant,
    }
}

/// Leaves of a controlled port's queue.
pub const LEAVES: usize = 4;

/// A leaf of the port's queue: explicit-rate flows in two layers (strict priority), other TCP, UDP.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum Leaf {
    /// Flows that obey rates, upper layer (mice).
    Mouse = 0,
    /// Flows that obey rates.
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
    /// The three classes of BRF-20 to BRF-23: an HTB takes the place of the port's queue.
    #[default]
    Classes,
    /// As the port would without a controller: the queue and its limit stay.
    Own,
}

/// What becomes of a packet at the controlled port.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Into this leaf; with [`Queueing::Own`] it says only how the packet is counted.
    Queue(Leaf),
    /// Discarded by the policer.
    Drop,
}

/// What a rate controller asks of its host.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Give an HTB class this rate and ceiling.
    SetClass {
        /// The class.
        class: Class,
        /// Guaranteed rate.
        rate: Rate,
        /// Most it may borrow up to.
        ceil: Rate,
    },
    /// Send this to the domain's SDN controller.
    ToController(Message),
    /// Tell the flow's source, by a message of its own rather than in an ACK, the rate that it may have (PAC-3b).
    ToSource {
        /// The flow.
        flow: FlowKey,
        /// Its rate, L3 bytes/s.
        rate: Rate,
    },
    /// Write this to the log of the run: what happened, to which flow, with which figure.
    Log {
        /// A fixed word, e.g. `congestion-theta1`.
        event: &'static str,
        /// The flow it is about.
        flow: Option<FlowKey>,
        /// Figure in SI units (bytes/s, seconds, count).
        value: f64,
    },
}

/// Identifies a controlled port in its domain.
pub type PortId = u32;

/// What switches and the SDN controller say to each other (BRF-63, BRF-73).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Message {
    /// Controller to switch: read your counters.
    Poll,
    /// Switch to controller: the answer to `Poll`.
    Report(Report),
    /// Controller to switch: this port is congested, or no longer.
    Congestion {
        /// Which kind; `None`: clear.
        kind: Option<CongestionKind>,
        /// The port.
        port: PortId,
    },
    /// A switch that sees a flow's data but no ACKs tells the others what the flow may have (BRF-63).
    FlowAdvertisement {
        /// The flow.
        key: FlowKey,
        /// Its allocation, L3 bytes/s.
        rate: Rate,
        /// The port that allocated it.
        port: PortId,
        /// Grows by one with each advertisement of a port.
        seq: u64,
        /// How long it is good for without a refresh.
        valid_for: Span,
    },
    /// Ingress to controller: a flow has begun or has ended here (PAC-21).
    Flow {
        /// The port that says so.
        port: PortId,
        /// The flow.
        key: FlowKey,
        /// It has begun; otherwise it has ended.
        begun: bool,
        /// All that it can use, L3 bytes/s, if that was measured to be less than what it was granted.
        demand: Option<Rate>,
    },
    /// Controller to ingress: rates of flows that began there, and of those that may begin until the next word (PAC-22).
    Grants {
        /// The port that is told.
        port: PortId,
        /// Rates of flows, L3 bytes/s.
        flows: Vec<(FlowKey, Rate)>,
        /// The rate for a newcomer to a destination, L3 bytes/s.
        newcomers: Vec<(IpAddr, Rate)>,
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

/// A port's figures as reported to the SDN controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The port.
    pub port: PortId,
    /// When it was read.
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

/// A rate controller of one port: a pure state machine. What a controller does not use of it has a default.
pub trait RateController: Send {
    /// The name in scenarios and results, e.g. `brf`.
    fn name(&self) -> &'static str;

    /// The port is up. Sets the first class rates.
    fn on_start(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action>);

    /// A packet of the data direction is about to join the controlled port's queue.
    fn on_data(
        &mut self,
        _now: Time,
        packet: &PacketInfo,
        _port: &PortCounters,
        _actions: &mut Vec<Action>,
    ) -> Admission {
        Admission::Queue(plain_leaf(packet))
    }

    /// How the port queues: with headers there are no classes of flows to keep apart.
    fn queueing(&self) -> Queueing {
        if self.works_on_headers() { Queueing::Own } else { Queueing::Classes }
    }

    /// Whether it works on congestion headers: [`on_arrival`](RateController::on_arrival) and
    /// [`on_departure`](RateController::on_departure) are then called for each packet of the data direction.
    fn works_on_headers(&self) -> bool {
        false
    }

    /// A packet of the data direction has arrived for the port, before [`on_data`](RateController::on_data). Its header, which
    /// may be [`Header::None`], may be rewritten.
    fn on_arrival(&mut self, _now: Time, _size: Bytes, _header: &mut Header, _port: &PortCounters) {}

    /// A packet of the data direction begins to leave, and `queued` L3 bytes wait behind it. Its header may be rewritten.
    fn on_departure(&mut self, _now: Time, _size: Bytes, _header: &mut Header, _queued: Bytes) {}

    /// Whether it has to be told the capacity; others measure it if they are not.
    fn must_be_told(&self) -> bool {
        self.works_on_headers()
    }

    /// Whether it does nothing without a [`domain::DomainController`].
    fn needs_domain(&self) -> bool {
        false
    }

    /// A packet of the opposite direction passes the switch. Returns the rate to write into it, if any.
    fn on_reverse(&mut self, _now: Time, _packet: &PacketInfo, _actions: &mut Vec<Action>) -> Option<Rate> {
        None
    }

    /// The rate that the last `on_reverse` of this flow returned did not fit into its packet (BRF-11).
    fn on_write_failed(&mut self, _key: &FlowKey) {}

    /// The deadline of [`next_timer`](RateController::next_timer) has come, or the told capacity changed.
    fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action>);

    /// A message from the SDN controller has arrived.
    fn on_message(
        &mut self,
        _now: Time,
        _message: &Message,
        _port: &PortCounters,
        _actions: &mut Vec<Action>,
    ) {
    }

    /// When `on_timer` wants to be called next.
    fn next_timer(&self) -> Time;

    /// What a flow is allowed now, for traces. `None` if the flow is not in the table, or there is none.
    fn allocation(&self, _key: &FlowKey) -> Option<Rate> {
        None
    }

    /// This controller as one that takes counts in place of packets, if it does.
    fn aggregated(&mut self) -> Option<&mut dyn aggregate::Aggregated> {
        None
    }

    /// Names and values of the internal state, for traces.
    fn trace(&self, _trace: &mut dyn FnMut(&'static str, f64)) {}
}
