//! Separate queues for UDP flows at a port with a rate controller (BRF-23).
//!
//! A flow that sends too much fills only its own queue. The queues take turns, and each sends a quantum in its turn
//! (deficit round robin). In Linux's HTB, leaves of equal priority also take turns by deficit round robin.

use narrows_control::rate::{UDP_QUEUE_PART, UDP_QUEUES};
use narrows_control::units::Bytes;

use super::{Leaf, Waiting};
use crate::plan::LimitPlan;

/// Number of queues. The agent selects the queue of a flow by a hash. The simulator uses the flow number modulo the
/// number of queues instead.
const QUEUES: usize = UDP_QUEUES as usize;
/// Number of bytes that a queue sends in its turn: two full packets.
const QUANTUM: i64 = 3_000;

/// The queues of all UDP flows of a port.
pub(crate) struct FlowQueues {
    queues: Vec<(Leaf, i64)>,
    turn: usize,
    packets: u32,
}

impl FlowQueues {
    pub(crate) fn new(limit: LimitPlan) -> Self {
        let part = |whole: u64| (whole / u64::from(UDP_QUEUE_PART)).max(1);
        let limit = LimitPlan {
            packets: limit.packets.map(|packets| part(packets.into()) as u32),
            bytes: limit.bytes.map(|bytes| Bytes::new(part(bytes.get()))),
        };
        FlowQueues { queues: vec![(Leaf::new(limit), QUANTUM); QUEUES], turn: 0, packets: 0 }
    }

    /// Adds a packet to the queue of its flow. Returns `false` if this queue is full.
    pub(crate) fn push(&mut self, flow: u32, waiting: Waiting) -> bool {
        let (queue, _) = &mut self.queues[flow as usize % QUEUES];
        if !queue.fits(waiting.size) {
            return false;
        }
        queue.push(waiting);
        self.packets += 1;
        true
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        if self.packets == 0 {
            return None;
        }
        while self.queues[self.turn].0.head().is_none() {
            self.turn = (self.turn + 1) % QUEUES;
        }
        let (queue, deficit) = &mut self.queues[self.turn];
        let waiting = queue.pop()?;
        self.packets -= 1;
        *deficit -= i64::from(waiting.size);
        if *deficit <= 0 {
            *deficit += QUANTUM;
            self.turn = (self.turn + 1) % QUEUES;
        }
        Some(waiting)
    }

    pub(crate) fn len(&self) -> u32 {
        self.packets
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.queues.iter().map(|(queue, _)| queue.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_control::units::Time;

    #[test]
    fn flows_take_turns_and_a_full_queue_drops_only_its_own_flow() {
        let mut queues = FlowQueues::new(LimitPlan::packets(100));
        let packet = |packet, size| Waiting { packet, since: Time::ZERO, size };
        let taken = (0..30).filter(|n| queues.push(1, packet(*n, 1500))).count();
        assert_eq!(taken, 10);
        assert!((0..4).all(|n| queues.push(2, packet(100 + n, 750))));
        assert_eq!((queues.len(), queues.bytes()), (14, 10 * 1500 + 4 * 750));
        let order: Vec<u32> = std::iter::from_fn(|| queues.pop()).map(|w| w.packet / 100).collect();
        // A quantum fits two packets of the first flow, or four packets of the second flow.
        assert_eq!(order, [0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(queues.bytes(), 0);
    }
}
