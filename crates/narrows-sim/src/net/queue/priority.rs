//! Strict priority: band 0 is served first. Each band is a FIFO with its own limit.

use narrows_control::units::Time;

use super::{Discipline, Leaf, Losses, Next, Waiting};
use crate::engine::Slab;
use crate::packet::Packet;
use crate::plan::LimitPlan;

/// The scheduler.
pub(crate) struct Priority {
    bands: Vec<Leaf>,
}

impl Priority {
    pub(crate) fn new(bands: &[LimitPlan]) -> Self {
        Priority { bands: bands.iter().map(|&limit| Leaf::new(limit)).collect() }
    }
}

impl Discipline for Priority {
    /// A class above the last band is queued in the last band.
    fn enqueue(&mut self, waiting: Waiting, leaf: usize, _packets: &mut Slab<Packet>, losses: &mut Losses) {
        let last = self.bands.len().saturating_sub(1);
        match self.bands.get_mut(leaf.min(last)) {
            Some(band) if band.fits(waiting.size) => band.push(waiting),
            _ => losses.dropped.push(waiting.packet),
        }
    }

    fn dequeue(&mut self, _now: Time, _packets: &mut Slab<Packet>, _losses: &mut Losses) -> Next {
        match self.bands.iter_mut().find_map(Leaf::pop) {
            Some(waiting) => Next::Packet(waiting),
            None => Next::Empty,
        }
    }

    fn backlog(&self) -> (u32, u64) {
        self.bands.iter().fold((0, 0), |(p, b), band| (p + band.len(), b + band.bytes()))
    }
}
