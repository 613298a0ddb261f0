//! Strict priority: class 0 is served first. Each class is a FIFO with its own limit.

use narrows_control::units::Time;

use super::{Discipline, Leaf, Losses, Next, Waiting};
use crate::packets::Packets;
use crate::plan::LimitPlan;

/// The queues of all classes.
pub(crate) struct Priority {
    classes: Vec<Leaf>,
}

impl Priority {
    pub(crate) fn new(classes: &[LimitPlan]) -> Self {
        Priority { classes: classes.iter().map(|&limit| Leaf::new(limit)).collect() }
    }
}

impl Discipline for Priority {
    /// If `leaf` is not the number of a class, the packet is added to the last class.
    fn enqueue(&mut self, waiting: Waiting, leaf: usize, _packets: &mut Packets, losses: &mut Losses) {
        let last = self.classes.len().saturating_sub(1);
        match self.classes.get_mut(leaf.min(last)) {
            Some(class) if class.fits(waiting.size) => class.push(waiting),
            _ => losses.dropped.push(waiting.packet),
        }
    }

    fn dequeue(&mut self, _now: Time, _packets: &mut Packets, _losses: &mut Losses) -> Next {
        match self.classes.iter_mut().find_map(Leaf::pop) {
            Some(waiting) => Next::Packet(waiting),
            None => Next::Empty,
        }
    }

    fn backlog(&self) -> (u32, u64) {
        self.classes.iter().fold((0, 0), |(p, b), class| (p + class.len(), b + class.bytes()))
    }
}
