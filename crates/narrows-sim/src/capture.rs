//! The packets that pass links and hosts, in the form that packet captures need.
//!
//! The simulator numbers segments, but captured packets have the byte numbers of real TCP. Both ends begin with
//! sequence number 0, so the first byte of data has number 1. Receive windows are not part of packets in the
//! simulator.

use std::ops::ControlFlow;

pub use narrows_control::feedback::header::{Custom, Echo, Header};
use narrows_control::units::Time;

/// Receives captured packets, in the order of time.
pub trait Tap {
    /// Called each time a packet passes one of the places in the plan's `capture`. The run ends at a
    /// [`ControlFlow::Break`], e.g. if a file cannot be written.
    fn on_packet(&mut self, packet: &Captured<'_>) -> ControlFlow<()>;
}

/// A place where a packet was captured.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The end of the link with this index in the plan.
    Link(u32),
    /// The node with this index, at which the flow sends the packet. The captured time is that at which the transport
    /// sends the packet, before the packet enters any queue.
    Sent(u32),
    /// The node with this index, at which the flow receives the packet.
    Received(u32),
}

/// A packet at a place.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Captured<'a> {
    /// The time.
    pub at: Time,
    /// The place.
    pub place: Place,
    /// The packet's flow.
    pub flow: &'a FlowName,
    /// Index of the node that sent the packet.
    pub source: u32,
    /// Index of the node that the packet is sent to.
    pub destination: u32,
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Bytes of the IP datagram, including a congestion header or its echo.
    pub size: u16,
    /// Bytes of payload.
    pub payload: u16,
    /// The two bits of ECN (RFC 3168).
    pub ecn: u8,
    /// The packet's congestion header.
    pub header: Header,
    /// The echo of a congestion header.
    pub echo: Option<Echo>,
    /// The copy of another crate's congestion header in an ACK.
    pub copy: Option<Custom>,
    /// The TCP header; `None` for UDP.
    pub segment: Option<Segment>,
    /// The payload of a datagram, if an external transport has written it. Otherwise only its length is known.
    pub contents: &'a [u8],
}

/// The name of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowName {
    /// Number in the results.
    pub id: u32,
    /// The name in the results.
    pub name: String,
    /// The congestion controller, or `udp`.
    pub cc: String,
}

/// A TCP header.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// The TCP flag of this name.
    pub syn: bool,
    /// The TCP flag of this name.
    pub ack: bool,
    /// The TCP flag of this name.
    pub fin: bool,
    /// The TCP flag of this name.
    pub rst: bool,
    /// The TCP flag of this name.
    pub ece: bool,
    /// The TCP flag of this name.
    pub cwr: bool,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number; 0 if the ACK flag is not set.
    pub ack_number: u32,
    /// Value and echo of the timestamp option, in ms.
    pub timestamps: (u32, u32),
    /// SACK blocks `[start, end)`; the first `sacks` are valid.
    pub sack: [(u32, u32); 3],
    /// Number of SACK blocks.
    pub sacks: u8,
    /// The value of the rate option ([`RateCode`](narrows_control::feedback::code::RateCode)).
    pub rate_code: Option<u16>,
    /// In a SYN: the maximum segment size.
    pub mss: Option<u16>,
}
