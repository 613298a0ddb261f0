//! The queue of a controlled port: its leaves and classes, and the treatment of a packet.

use serde::{Deserialize, Serialize};

use super::{FlowIdentity, PacketInfo, Proto};
use crate::feedback::header::Header;

/// Returns the leaf of a packet, for controllers that classify packets only by headers. Packets with a header join the
/// leaf of rated flows. All other packets join the leaf of other TCP or of UDP.
pub fn plain_leaf<K: FlowIdentity>(packet: &PacketInfo<K>) -> Leaf {
    match (packet.header, packet.key.proto()) {
        (Header::None, Proto::Tcp) => Leaf::OtherTcp,
        (Header::None, Proto::Udp) => Leaf::Udp,
        _ => Leaf::Elephant,
    }
}

/// Number of leaves of a controlled port's queue.
pub const LEAVES: usize = 4;

/// Number of UDP's queues at a port where UDP may borrow (BRF-23); a power of two. UDP flows are distributed over the
/// queues, which are served in turn. The number is small because the agent reads every queue's counters in each tick.
pub const UDP_QUEUES: u16 = 32;

/// The limit of each UDP queue is the port's limit divided by this number. So all 32 queues together hold at most 3.2
/// times as many packets as one other leaf. Without the division, they could hold 32 times as many.
pub const UDP_QUEUE_PART: u32 = 10;

/// A leaf of the port's queue: rated flows in two layers (strict priority), other TCP, UDP.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[repr(usize)]
pub enum Leaf {
    /// Rated flows, upper layer (mice).
    Mouse = 0,
    /// Rated flows, lower layer (elephants).
    Elephant = 1,
    /// All other TCP.
    OtherTcp = 2,
    /// UDP.
    Udp = 3,
}

/// A class of the port's HTB (BRF-20 to BRF-23).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[repr(usize)]
pub enum Class {
    /// The rated flows: [`Leaf::Mouse`], and with lower priority [`Leaf::Elephant`].
    Rated = 0,
    /// [`Leaf::OtherTcp`].
    OtherTcp = 1,
    /// [`Leaf::Udp`].
    Udp = 2,
}

/// How a controlled port queues packets.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// The three classes of BRF-20 to BRF-23. An HTB replaces the port's queue.
    Classes {
        /// Whether UDP flows have queues of their own and may borrow bandwidth. Borrowing requires a configured
        /// capacity. If UDP may not borrow, it is policed: a packet that would have to wait is dropped (BRF-23).
        queues_udp: bool,
    },
    /// The port keeps the queue that it has, without classes.
    Own,
}

/// The treatment of a packet at the controlled port.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The packet joins this leaf. With [`Queueing::Own`] the leaf only determines how the packet is counted.
    Queue(Leaf),
    /// The policer drops the packet.
    Drop,
}
