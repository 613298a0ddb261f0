//! Captures packets that arrive at the end of chosen links, or that chosen hosts send or receive.
//!
//! In the simulator, sequence numbers count segments. In captured packets, they count bytes, as in real TCP. The SYN of
//! each end has sequence number 0, so the first byte of data has number 1. Captured packets have no receive window,
//! because the simulator's packets do not carry one.

use std::ops::ControlFlow;

pub use narrows_control::feedback::header::{Custom, Echo, Header};
use narrows_control::units::Time;

/// Receives the captured packets, in the order of their capture times.
pub trait Tap {
    /// Called for each captured packet. The plan's `capture` lists the links and hosts at which packets are captured.
    /// Return [`ControlFlow::Break`] to end the run, e.g. if a file cannot be written.
    fn on_packet(&mut self, packet: &Captured<'_>) -> ControlFlow<()>;
}

impl<T: Tap + ?Sized> Tap for &mut T {
    fn on_packet(&mut self, packet: &Captured<'_>) -> ControlFlow<()> {
        (**self).on_packet(packet)
    }
}

/// A place where a packet was captured.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The receiving end of a link. The number is the link's index in the plan.
    Link(u32),
    /// The sending host. The number is the node's index in the plan. The packet is captured when the transport sends
    /// it, before it enters any queue.
    Sent(u32),
    /// The receiving host. The number is the node's index in the plan.
    Received(u32),
}

/// A captured packet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Captured<'a> {
    /// Time of capture.
    pub at: Time,
    /// Place of capture.
    pub place: Place,
    /// The packet's flow.
    pub flow: &'a FlowName,
    /// Index of the node that sent the packet.
    pub source: u32,
    /// Index of the node that the packet is sent to.
    pub destination: u32,
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Bytes of the IP datagram. A congestion header, or the echo of one, is included.
    pub size: u16,
    /// Bytes of payload.
    pub payload: u16,
    /// The two ECN bits of the IP header (RFC 3168).
    pub ecn: u8,
    /// The packet's congestion header.
    pub header: Header,
    /// In an ACK: the echo of a congestion header.
    pub echo: Option<Echo>,
    /// In an ACK: the receiver's copy of a [`Custom`] congestion header.
    pub copy: Option<Custom>,
    /// The TCP header; `None` for UDP.
    pub segment: Option<Segment>,
    /// The payload, if an external transport wrote it. In all other packets, `contents` is empty, because the simulator
    /// stores only the length of the payload.
    pub contents: &'a [u8],
}

/// The name of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowName {
    /// The flow's number in the results.
    pub id: u32,
    /// The flow's name in the results.
    pub name: String,
    /// The name of the congestion controller; `udp` for UDP.
    pub cc: String,
}

/// A TCP header.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// The SYN flag.
    pub syn: bool,
    /// The ACK flag.
    pub ack: bool,
    /// The FIN flag.
    pub fin: bool,
    /// The RST flag.
    pub rst: bool,
    /// The ECE flag (RFC 3168).
    pub ece: bool,
    /// The CWR flag (RFC 3168).
    pub cwr: bool,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number; 0 if the ACK flag is not set.
    pub ack_number: u32,
    /// Value and echo of the timestamp option, in ms.
    pub timestamps: (u32, u32),
    /// SACK blocks `[start, end)`. Only the first `sacks` blocks are valid.
    pub sack: [(u32, u32); 3],
    /// Number of SACK blocks.
    pub sacks: u8,
    /// The value of the rate option ([`RateCode`](narrows_control::feedback::code::RateCode)).
    pub rate_code: Option<u16>,
    /// In a SYN: the maximum segment size.
    pub mss: Option<u16>,
}
