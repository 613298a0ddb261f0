//! Events of a flow: the packets that begin, confirm and end the flow.

use super::{FlowKey, PacketInfo};
use crate::units::Bytes;

/// One of a flow's two sides.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side that sends the data.
    Sender,
    /// The side that receives the data.
    Receiver,
}

impl Side {
    /// Returns the other side.
    pub fn other(self) -> Side {
        match self {
            Side::Sender => Side::Receiver,
            Side::Receiver => Side::Sender,
        }
    }
}

/// The kind of a TCP packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// SYN without ACK.
    Syn,
    /// SYN with ACK.
    SynAck,
    /// Data or an ACK, without SYN, FIN and RST.
    Plain,
    /// FIN.
    Fin,
    /// RST.
    Rst,
}

/// The properties of a TCP packet that determine whether its flow begins, is confirmed or ends.
#[derive(Copy, Clone, Debug)]
pub struct FlowEvent<K = FlowKey> {
    /// The flow, in the direction of its data.
    pub key: K,
    /// The side that sent the packet.
    pub from: Side,
    /// The kind of the packet.
    pub segment: Segment,
    /// Whether the packet contains data of the flow.
    pub has_data: bool,
    /// Whether the packet shows that the flow follows rates: it has the rate option or a report of its sender (BRF-10,
    /// BRF-105).
    pub follows_rates: bool,
    /// Timestamp option: TSval, TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// VLAN of the flow; 0 for none.
    pub vlan: u16,
    /// Mark of the flow, set by its host's rules; 0 for none.
    pub mark: u32,
}

impl<K: Copy> FlowEvent<K> {
    /// Returns the event of a TCP packet from this side.
    pub fn of(packet: &PacketInfo<K>, from: Side) -> Self {
        let flags = packet.flags;
        FlowEvent {
            key: packet.key,
            from,
            segment: match () {
                () if flags.rst => Segment::Rst,
                () if flags.syn && flags.ack => Segment::SynAck,
                () if flags.syn => Segment::Syn,
                () if flags.fin => Segment::Fin,
                () => Segment::Plain,
            },
            has_data: from == Side::Sender && packet.payload > Bytes::ZERO,
            follows_rates: packet.sender_follows_rates(),
            timestamps: packet.timestamps,
            vlan: packet.vlan,
            mark: packet.mark,
        }
    }
}
