//! FQ-CoDel (RFC 8290). A hash selects the queue of each flow, and each queue runs CoDel. The queues are served by
//! deficit round robin. Queues of new flows are served first.

use narrows_control::units::{Bytes, Time};

use super::codel::{Law, Params};
use super::{Discipline, Leaf, Losses, Next, Waiting, fits};
use crate::engine::Ring;
use crate::packet::{Packet, flag};
use crate::packets::Packets;
use crate::plan::LimitPlan;

/// Upper bound of the quantum. A larger quantum would make the sharing unfair, and the deficits could overflow.
const MAX_QUANTUM_BYTES: u64 = 1 << 30;

/// The state of FQ-CoDel.
pub(crate) struct FqCodel {
    queues: Vec<Queue>,
    /// Indices of queues that have just become active. `old` contains the indices of the other queues with packets (RFC
    /// 8290 section 4.2).
    new: Ring<u32>,
    old: Ring<u32>,
    limit: LimitPlan,
    params: Params,
    quantum: i64,
    backlog: (u32, u64),
}

#[derive(Clone, Default)]
struct Queue {
    leaf: Leaf,
    law: Law,
    deficit: i64,
    /// Whether the queue is in one of the two lists.
    is_listed: bool,
}

impl FqCodel {
    pub(crate) fn new(limit: LimitPlan, params: Params, quantum: Bytes, queues: u32) -> Self {
        FqCodel {
            queues: vec![Queue::default(); queues.max(1) as usize],
            new: Ring::new(),
            old: Ring::new(),
            limit,
            params,
            quantum: quantum.get().clamp(1, MAX_QUANTUM_BYTES) as i64,
            backlog: (0, 0),
        }
    }

    /// Returns the index of a packet's queue. As in a router, the two directions of a flow have different hashes.
    fn hash(&self, packet: &Packet) -> usize {
        let id = (packet.flow as u64) << 1 | packet.is(flag::REVERSE) as u64;
        (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % self.queues.len()
    }

    /// Drops the head of the queue that holds the most bytes. Called when the limit is reached (section 4.1).
    fn drop_from_longest(&mut self, losses: &mut Losses) {
        let longest = self.queues.iter_mut().max_by_key(|q| q.leaf.bytes());
        if let Some(waiting) = longest.and_then(|q| q.leaf.pop()) {
            self.backlog.0 -= 1;
            self.backlog.1 -= waiting.size as u64;
            losses.dropped.push(waiting.packet);
        }
    }
}

impl Discipline for FqCodel {
    fn enqueue(&mut self, waiting: Waiting, _leaf: usize, packets: &mut Packets, losses: &mut Losses) {
        let at = self.hash(packets.get(waiting.packet));
        let queue = &mut self.queues[at];
        queue.leaf.push(waiting);
        if !queue.is_listed {
            queue.is_listed = true;
            queue.deficit = self.quantum;
            self.new.push_back(at as u32);
        }
        let fit = fits(self.limit, self.backlog.0, self.backlog.1, waiting.size);
        self.backlog.0 += 1;
        self.backlog.1 += waiting.size as u64;
        if !fit {
            self.drop_from_longest(losses);
        }
    }

    fn dequeue(&mut self, now: Time, packets: &mut Packets, losses: &mut Losses) -> Next {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let Some(&at) = list.front() else { return Next::Empty };
            let queue = &mut self.queues[at as usize];
            if queue.deficit <= 0 {
                queue.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(at);
                continue;
            }
            let before = (queue.leaf.len(), queue.leaf.bytes());
            let head = queue.law.dequeue(now, &mut queue.leaf, &self.params, packets, losses);
            self.backlog.0 -= before.0 - queue.leaf.len();
            self.backlog.1 -= before.1 - queue.leaf.bytes();
            match head {
                Some(waiting) => {
                    queue.deficit -= waiting.size as i64;
                    return Next::Packet(waiting);
                }
                None => {
                    list.pop_front();
                    // Section 4.2: when a new queue becomes empty, it first moves to the old list. Otherwise its next
                    // packet could at once make it a new queue again.
                    if from_new && !self.old.is_empty() {
                        self.old.push_back(at);
                    } else {
                        queue.is_listed = false;
                    }
                }
            }
        }
    }

    fn backlog(&self) -> (u32, u64) {
        self.backlog
    }
}
