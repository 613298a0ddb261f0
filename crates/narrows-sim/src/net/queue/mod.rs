//! Queues. There are two kinds:
//!
//! * In a plain FIFO, the departure time of a packet is known when the packet arrives; see [`fifo`]. A FIFO may use
//!   tail drop, threshold marking or RED.
//! * A scheduling queue chooses the next packet only when the link is free. Scheduling queues implement [`Discipline`].

pub(crate) mod codel;
pub(crate) mod fifo;
pub(crate) mod flow_queues;
pub(crate) mod fq_codel;
pub(crate) mod htb;
pub(crate) mod priority;

use narrows_control::units::{Span, Time};

use crate::engine::Ring;
use crate::packet::{Packet, flag};
use crate::packets::Packets;
use crate::plan::{LimitPlan, QueuePlan};

/// A packet that waits in a queue.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) packet: u32,
    pub(crate) since: Time,
    pub(crate) size: u32,
}

/// The result of a dequeue.
#[derive(Debug)]
pub(crate) enum Next {
    /// Send this packet.
    Packet(Waiting),
    /// No packet may leave before this time.
    Wait(Time),
    /// The queue is empty.
    Empty,
}

/// The packets that a queue has dropped, and the number of packets that it has marked. The caller processes and resets
/// these values.
#[derive(Default, Debug)]
pub(crate) struct Losses {
    pub(crate) dropped: Vec<u32>,
    pub(crate) marked: u64,
}

/// A scheduling queue, which chooses the next packet only when the link is free.
pub(crate) trait Discipline: Send {
    /// Adds a packet to a leaf. `leaf` is the packet's class, or the leaf that a rate controller has chosen. If the
    /// queue drops packets, it adds them to `losses`.
    fn enqueue(&mut self, waiting: Waiting, leaf: usize, packets: &mut Packets, losses: &mut Losses);

    /// Removes the packet that is transmitted next and returns it. If no packet may leave yet, returns the time at
    /// which one may.
    fn dequeue(&mut self, now: Time, packets: &mut Packets, losses: &mut Losses) -> Next;

    /// Returns the numbers of packets and bytes in the queue.
    fn backlog(&self) -> (u32, u64);

    /// Returns the queue as an HTB; `None` if the queue is of another kind.
    fn as_htb(&mut self) -> Option<&mut htb::Htb> {
        None
    }
}

/// Builds the scheduling queue of a plan. Returns `None` if the plan has a FIFO.
pub(crate) fn build(plan: &QueuePlan) -> Option<Box<dyn Discipline>> {
    match plan {
        QueuePlan::Fifo { .. } => None,
        QueuePlan::Codel { limit, target, interval, ecn } => {
            Some(Box::new(codel::Codel::new(*limit, codel::Params::new(*target, *interval, *ecn))))
        }
        QueuePlan::FqCodel { limit, target, interval, quantum, queues, ecn } => Some(Box::new(
            fq_codel::FqCodel::new(*limit, codel::Params::new(*target, *interval, *ecn), *quantum, *queues),
        )),
        QueuePlan::Priority { classes } => Some(Box::new(priority::Priority::new(classes))),
        QueuePlan::Htb { classes } => Some(Box::new(htb::Htb::new(classes))),
    }
}

/// A first-in first-out list with a limit. All scheduling queues are built from such lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaf {
    queue: Ring<Waiting>,
    bytes: u64,
    limit: LimitPlan,
}

impl Leaf {
    pub(crate) fn new(limit: LimitPlan) -> Self {
        Leaf { limit, ..Leaf::default() }
    }

    /// Whether another packet of `size` bytes fits into the list.
    pub(crate) fn fits(&self, size: u32) -> bool {
        fits(self.limit, self.queue.len() as u32, self.bytes, size)
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.size as u64;
        self.queue.push_back(waiting);
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.queue.pop_front()?;
        self.bytes -= waiting.size as u64;
        Some(waiting)
    }

    pub(crate) fn head(&self) -> Option<&Waiting> {
        self.queue.front()
    }

    pub(crate) fn len(&self) -> u32 {
        self.queue.len() as u32
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Whether another packet of `size` bytes fits into a queue with this `limit`. The queue already holds `packets`
/// packets and `bytes` bytes.
#[inline]
pub(crate) fn fits(limit: LimitPlan, packets: u32, bytes: u64, size: u32) -> bool {
    limit.packets.is_none_or(|l| packets < l) && limit.bytes.is_none_or(|l| bytes + size as u64 <= l.get())
}

/// Marks a packet if it is ECN-capable. Returns `false` if it is not. The caller must then drop
/// the packet.
pub(crate) fn mark(packet: &mut Packet) -> bool {
    let capable = packet.is(flag::ECT);
    if capable {
        packet.flags |= flag::CE;
    }
    capable
}

/// Returns how long a packet has been in the queue at `now`.
pub(crate) fn sojourn(waiting: &Waiting, now: Time) -> Span {
    now.since(waiting.since)
}
