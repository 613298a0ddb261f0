//! The flow table as the control loop sees it: slots that the eBPF program fills and the loop answers.

use std::io;

use narrows_control::feedback::code::RateCode;
use narrows_control::rate::{FlowKey, Leaf};

use crate::dataplane::layout;

/// What happened to a flow, as the program notes it: bits of `nrw_slot.flags` (bpf/include/maps.h).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    /// The SYN asked for feedback, or the flow speaks BRF.
    pub const RATED: Flags = Flags(layout::RATED);
    /// The handshake was not seen.
    pub const GUESSED: Flags = Flags(layout::GUESSED);
    /// The side that receives the data sent the SYN.
    pub const OPENED_BY_RECEIVER: Flags = Flags(layout::OPENED_BY_RECEIVER);
    /// The SYN was seen more than once.
    pub const SYN_REPEATED: Flags = Flags(layout::SYN_REPEATED);
    /// A packet of the data direction came after the handshake's first two.
    pub const SENDER_HEARD: Flags = Flags(layout::SENDER_HEARD);
    /// A packet of the other direction did.
    pub const RECEIVER_HEARD: Flags = Flags(layout::RECEIVER_HEARD);
    /// FIN of the data direction.
    pub const FIN_SENDER: Flags = Flags(layout::FIN_SENDER);
    /// FIN of the other direction.
    pub const FIN_RECEIVER: Flags = Flags(layout::FIN_RECEIVER);
    /// RST of either direction.
    pub const RST: Flags = Flags(layout::RST);
    /// An option or a mark was seen after the handshake.
    pub const SPEAKS_BRF: Flags = Flags(layout::SPEAKS_BRF);

    /// It began with data: no SYN-ACK was seen, or it was refused a slot then.
    pub const ADOPTED: Flags = Flags(layout::ADOPTED);
    /// In use, and complete.
    pub const LIVE: Flags = Flags(layout::LIVE);
    /// Heard from both sides.
    pub const CONFIRMED: Flags = Flags(layout::CONFIRMED);

    /// All of `other` is set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// What is set here and not in `before`.
    pub fn since(self, before: Flags) -> Flags {
        Flags(self.0 & !before.0)
    }
}

/// The first cache line of a slot without its key: enough to see that nothing happened.
#[derive(Copy, Clone, Debug, Default)]
pub struct Head {
    /// A flow has the slot.
    pub live: bool,
    /// What happened so far.
    pub flags: Flags,
    /// L3 bytes of its data so far.
    pub bytes: u64,
    /// Payload bytes skipped by sequence numbers so far (wraps).
    pub missing: u32,
}

/// The second cache line.
#[derive(Copy, Clone, Debug, Default)]
pub struct Tail {
    /// Last packet of either direction, CLOCK_MONOTONIC ns.
    pub last_ns: u64,
    /// Last sample of the RTT between switch and receiver, us, and the number of samples (wraps).
    pub rtt_receiver: (u32, u16),
    /// The same between switch and sender.
    pub rtt_sender: (u32, u16),
    /// Marks "not limited by the application" so far (wraps).
    pub said_unlimited: u16,
    /// Marks "limited" so far (wraps).
    pub said_limited: u16,
    /// Last rate of another switch in an ACK that passed, and the number of such ACKs (wraps).
    pub passed: (u16, u16),
    /// What is written into ACKs now: at first the ready grant, if one was handed out.
    pub code: u16,
}

/// What the program is to do with a flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Orders {
    /// What to write into ACKs; [`RateCode::UNASSIGNED`]: nothing.
    pub code: RateCode,
    /// The leaf for its data.
    pub leaf: Leaf,
    /// Its RTT in us, which spaces feedback if it is to come once per RTT.
    pub rtt_us: u32,
}

/// The slots. Reading and ordering are memory accesses; releasing is a system call.
pub trait FlowTable {
    /// Number of slots.
    fn capacity(&self) -> u32;
    /// The first line of a slot.
    fn head(&self, slot: u32) -> Head;
    /// The second line.
    fn tail(&self, slot: u32) -> Tail;
    /// Whose it is, in its data direction, and the number of its controlled port. `None` if it makes no sense.
    fn owner(&self, slot: u32) -> Option<(FlowKey, usize)>;
    /// Tells the program what to do from now on.
    fn order(&self, slot: u32, orders: Orders);
    /// Takes the flow as heard from both sides, although no ACK of it passes here (BRF-63).
    fn confirm(&self, slot: u32);
    /// Ends a flow; its slot goes back to the program with one of the next ticks.
    fn release(&mut self, slot: u32) -> io::Result<()>;
    /// A tick begins.
    fn begin_tick(&mut self) -> io::Result<()>;
}
