//! Queues. A plain FIFO (with tail drop, threshold marking or RED) knows every departure on arrival and lives in
//! [`fifo`]; queues that decide when they dequeue implement [`Discipline`].

pub(crate) mod codel;
pub(crate) mod fifo;
pub(crate) mod fq_codel;
pub(crate) mod htb;
pub(crate) mod priority;

use narrows_control::units::{Span, Time};

use crate::engine::{Ring, Slab};
use crate::packet::{Packet, flag};
use crate::plan::{LimitPlan, QueuePlan};

/// A packet that waits.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) packet: u32,
    pub(crate) since: Time,
    pub(crate) size: u32,
}

/// What a queue has to say when it is asked for the next packet.
#[derive(Debug)]
pub(crate) enum Next {
    /// Send this one.
    Packet(Waiting),
    /// Nothing may leave before this time.
    Wait(Time),
    /// Nothing waits.
    Empty,
}

/// Packets that a queue gave up, and marks it set, since the last look.
#[derive(Default, Debug)]
pub(crate) struct Losses {
    pub(crate) dropped: Vec<u32>,
    pub(crate) marked: u64,
}

/// A queue that decides at dequeue time.
pub(crate) trait Discipline: Send {
    /// Takes a packet into leaf `leaf` (its class, or what a rate controller said); what does not fit goes to `losses`.
    fn enqueue(&mut self, waiting: Waiting, leaf: usize, packets: &mut Slab<Packet>, losses: &mut Losses);

    /// The next packet to transmit at `now`.
    fn dequeue(&mut self, now: Time, packets: &mut Slab<Packet>, losses: &mut Losses) -> Next;

    /// Packets and bytes waiting.
    fn backlog(&self) -> (u32, u64);

    /// For a queue with classes: itself.
    fn as_htb(&mut self) -> Option<&mut htb::Htb> {
        None
    }
}

/// The scheduling queue that the plan asks for; `None` for a FIFO.
pub(crate) fn build(plan: &QueuePlan) -> Option<Box<dyn Discipline>> {
    match plan {
        QueuePlan::Fifo { .. } => None,
        QueuePlan::Codel { limit, target, interval, ecn } => {
            Some(Box::new(codel::Codel::new(*limit, codel::Params::new(*target, *interval, *ecn))))
        }
        QueuePlan::FqCodel { limit, target, interval, quantum, queues, ecn } => Some(Box::new(
            fq_codel::FqCodel::new(*limit, codel::Params::new(*target, *interval, *ecn), *quantum, *queues),
        )),
        QueuePlan::Priority { bands } => Some(Box::new(priority::Priority::new(bands))),
        QueuePlan::Htb { classes } => Some(Box::new(htb::Htb::new(classes))),
    }
}

/// A first-in first-out list with a limit: the leaf of every discipline.
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

    /// Whether another packet of `size` bytes still fits.
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

/// Whether a packet of `size` bytes fits beside `packets` and `bytes` under `limit`.
#[inline]
pub(crate) fn fits(limit: LimitPlan, packets: u32, bytes: u64, size: u32) -> bool {
    limit.packets.is_none_or(|l| packets < l) && limit.bytes.is_none_or(|l| bytes + size as u64 <= l.get())
}

/// Marks a packet if its flow can take marks; `false`: drop it instead.
pub(crate) fn mark(packet: &mut Packet) -> bool {
    let capable = packet.is(flag::ECT);
    if capable {
        packet.flags |= flag::CE;
    }
    capable
}

/// Time in the queue.
pub(crate) fn sojourn(waiting: &Waiting, now: Time) -> Span {
    now.since(waiting.since)
}
