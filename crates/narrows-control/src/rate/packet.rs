//! The fields of a packet that a rate controller reads.

use super::FlowKey;
use crate::feedback::header::Header;
use crate::units::{Bytes, Rate};

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
    /// The flow, in the direction of its data even if this packet is an ACK.
    pub key: K,
    /// Size of the IP datagram.
    pub size: Bytes,
    /// TCP payload (0 for a pure ACK).
    pub payload: Bytes,
    /// TCP flags; all false for UDP.
    pub flags: TcpFlags,
    /// The rate option.
    pub option: RateOption,
    /// Whether the sender reports that its application does not limit the flow (BRF-100). `None` if the packet carries
    /// no report.
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
    /// Returns whether the packet shows that the flow's sender follows rates, even if the flow's SYN was not seen
    /// (BRF-10, BRF-105).
    pub(crate) fn sender_follows_rates(&self) -> bool {
        self.option != RateOption::Absent || self.unlimited.is_some()
    }
}
