//! The control loop's interface to the flow table. The eBPF program writes observations of a flow into a slot, and the
//! loop writes orders into the same slot.

use std::io;

use narrows_control::feedback::code::RateCode;
use narrows_control::rate::{FlowKey, Leaf};

use crate::dataplane::layout;

/// Events of a flow, as the program records them: bits of `nrw_slot.flags` (bpf/include/maps.h).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    /// The SYN asked for feedback, or the flow uses BRF.
    pub const RATED: Flags = Flags(layout::RATED);
    /// The handshake was not seen.
    pub const GUESSED: Flags = Flags(layout::GUESSED);
    /// The receiver of the data sent the SYN.
    pub const OPENED_BY_RECEIVER: Flags = Flags(layout::OPENED_BY_RECEIVER);
    /// The SYN was seen more than once.
    pub const SYN_REPEATED: Flags = Flags(layout::SYN_REPEATED);
    /// A packet of the data direction passed after the SYN and the SYN-ACK.
    pub const SENDER_SEEN: Flags = Flags(layout::SENDER_SEEN);
    /// A packet of the other direction passed after the SYN and the SYN-ACK.
    pub const RECEIVER_SEEN: Flags = Flags(layout::RECEIVER_SEEN);
    /// A FIN of the data direction passed.
    pub const FIN_SENDER: Flags = Flags(layout::FIN_SENDER);
    /// A FIN of the other direction passed.
    pub const FIN_RECEIVER: Flags = Flags(layout::FIN_RECEIVER);
    /// An RST of either direction passed.
    pub const RST: Flags = Flags(layout::RST);
    /// A BRF option or a mark (BRF-100) was seen after the handshake.
    pub const SPEAKS_BRF: Flags = Flags(layout::SPEAKS_BRF);

    /// The flow began with data: its SYN-ACK was not seen, or got no slot.
    pub const ADOPTED: Flags = Flags(layout::ADOPTED);
    /// The slot is in use and complete.
    pub const LIVE: Flags = Flags(layout::LIVE);
    /// Packets of both sides were seen.
    pub const CONFIRMED: Flags = Flags(layout::CONFIRMED);

    /// Returns whether all flags of `other` are set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags that are set in `self` but not in `before`.
    pub fn since(self, before: Flags) -> Flags {
        Flags(self.0 & !before.0)
    }
}

/// The first cache line of a slot, without the flow's key. It shows whether something has happened to the flow.
#[derive(Copy, Clone, Debug, Default)]
pub struct Head {
    /// Whether a flow uses the slot.
    pub live: bool,
    /// Events so far.
    pub flags: Flags,
    /// L3 bytes of data so far.
    pub bytes: u64,
    /// Payload bytes so far that the sequence numbers skipped (wraps).
    pub missing: u32,
}

/// The second cache line of a slot.
#[derive(Copy, Clone, Debug, Default)]
pub struct Tail {
    /// Time of the last packet in any direction, CLOCK_MONOTONIC ns.
    pub last_ns: u64,
    /// Last RTT sample between switch and receiver in us, and number of samples (wraps).
    pub rtt_receiver: (u32, u16),
    /// Last RTT sample between switch and sender in us, and number of samples (wraps).
    pub rtt_sender: (u32, u16),
    /// Number of marks "not limited by the application" so far (BRF-100; wraps).
    pub marked_unlimited: u16,
    /// Number of marks "limited by the application" so far (BRF-100; wraps).
    pub marked_limited: u16,
    /// Last rate of another switch in an ACK, and the number of such ACKs (wraps).
    pub passed: (u16, u16),
    /// The code that is written into ACKs now. At first, this may be the ready grant of the SYN-ACK.
    pub code: u16,
}

/// Properties of a flow, besides its addresses, that can identify its subscriber.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// VLAN of the data; 0 for none.
    pub vlan: u16,
    /// Mark (`skb->mark`) of the first packet of the data direction.
    pub mark: u32,
}

/// The program's orders for a flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Orders {
    /// Code to write into ACKs. [`RateCode::UNASSIGNED`] means none.
    pub code: RateCode,
    /// The leaf for the flow's data.
    pub leaf: Leaf,
    /// RTT of the flow in us: the interval of feedback in once-per-RTT mode.
    pub rtt_us: u32,
}

/// The slots of the flow table. Reading a slot and writing orders are memory accesses. Releasing a slot needs system
/// calls.
pub trait FlowTable {
    /// Returns the number of slots.
    fn capacity(&self) -> u32;
    /// Reads the first cache line of a slot.
    fn head(&self, slot: u32) -> Head;
    /// Reads the second cache line of a slot.
    fn tail(&self, slot: u32) -> Tail;
    /// Returns a slot's flow in its data direction, and the number of its controlled port. Returns `None` if there
    /// is no such slot.
    fn owner(&self, slot: u32) -> Option<(FlowKey, usize)>;
    /// Returns the tags of a slot's flow. The tags do not change while the slot is live.
    fn tags(&self, slot: u32) -> Tags;
    /// Sets the orders that the program follows from now on.
    fn order(&self, slot: u32, orders: Orders);
    /// Confirms a flow whose ACKs take another path (BRF-63).
    fn confirm(&self, slot: u32);
    /// Frees the slot of a flow. The program can use the slot again after the next tick has begun.
    fn release(&mut self, slot: u32) -> io::Result<()>;
    /// Begins a tick, and gives the slots released in the last tick back to the program.
    fn begin_tick(&mut self) -> io::Result<()>;
}
