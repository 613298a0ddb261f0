//! CoDel (RFC 8289). It drops packets at the head of the queue after the sojourn time has stayed above the target for
//! one `interval`.

use narrows_control::units::{Span, Time};

use super::{Discipline, Leaf, Losses, Next, Waiting, mark, sojourn};
use crate::packets::Packets;
use crate::plan::LimitPlan;

/// MAXPACKET of RFC 8289 section 5.5, in bytes.
const MAX_PACKET: u64 = 1500;

/// Parameters of CoDel. RFC 8289 (sections 4.3 and 4.4) recommends an interval of 100 ms and a target of 5 ms.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Params {
    target: Span,
    interval: Span,
    ecn: bool,
}

impl Params {
    pub(crate) fn new(target: Span, interval: Span, ecn: bool) -> Self {
        Params { target, interval, ecn }
    }
}

/// The state of CoDel's control law. The packets are stored elsewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Law {
    /// The time at which CoDel begins to drop packets, if the sojourn time stays above the target until then. `None`
    /// while the sojourn time is below the target, and while the backlog is at most one MTU.
    first_above: Option<Time>,
    next_drop: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Law {
    /// Returns the time of the next drop after a drop at `from`. The gap between two drops is inversely proportional
    /// to the square root of the number of drops (RFC 8289 section 5.6).
    fn control(&self, from: Time, params: &Params) -> Time {
        from + params.interval.mul_f64(1.0 / libm::sqrt(self.count.max(1) as f64))
    }

    /// Removes the packet at the head. Returns the packet, and whether CoDel may drop it (section 5.5, `dodequeue`).
    fn head(&mut self, now: Time, leaf: &mut Leaf, params: &Params) -> (Option<Waiting>, bool) {
        let Some(waiting) = leaf.pop() else {
            self.first_above = None;
            return (None, false);
        };
        // With a backlog of one MTU or less, a drop would leave the link idle.
        if sojourn(&waiting, now) < params.target || leaf.bytes() <= MAX_PACKET {
            self.first_above = None;
            return (Some(waiting), false);
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + params.interval);
                (Some(waiting), false)
            }
            Some(t) => (Some(waiting), now >= t),
        }
    }

    /// Returns the next packet to send. Adds the packets that CoDel drops to `losses` (section 5.5, `dequeue`).
    pub(crate) fn dequeue(
        &mut self,
        now: Time,
        leaf: &mut Leaf,
        params: &Params,
        packets: &mut Packets,
        losses: &mut Losses,
    ) -> Option<Waiting> {
        let (mut head, mut may_drop) = self.head(now, leaf, params);
        if self.dropping {
            if !may_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.next_drop {
                self.count += 1;
                if self.mark_or_drop(head?, params, packets, losses) {
                    self.next_drop = self.control(self.next_drop, params);
                    return head;
                }
                (head, may_drop) = self.head(now, leaf, params);
                if may_drop {
                    self.next_drop = self.control(self.next_drop, params);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            let marked = self.mark_or_drop(head?, params, packets, losses);
            if !marked {
                (head, _) = self.head(now, leaf, params);
            }
            self.dropping = true;
            // Section 5.4: if the previous dropping state ended recently, start with a drop rate close to the final
            // rate of that state.
            let delta = self.count.saturating_sub(self.last_count);
            let recent = now.since(self.next_drop) < params.interval.scale(16, 1);
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.next_drop = self.control(now, params);
            self.last_count = self.count;
        }
        head
    }

    /// Marks the packet if possible, and returns `true`. The packet is then sent. Otherwise drops the packet and
    /// returns `false`.
    fn mark_or_drop(&self, w: Waiting, params: &Params, packets: &mut Packets, losses: &mut Losses) -> bool {
        if params.ecn && mark(packets.get_mut(w.packet)) {
            losses.marked += 1;
            return true;
        }
        losses.dropped.push(w.packet);
        false
    }
}

/// One CoDel queue.
pub(crate) struct Codel {
    leaf: Leaf,
    law: Law,
    params: Params,
}

impl Codel {
    pub(crate) fn new(limit: LimitPlan, params: Params) -> Self {
        Codel { leaf: Leaf::new(limit), law: Law::default(), params }
    }
}

impl Discipline for Codel {
    fn enqueue(&mut self, waiting: Waiting, _leaf: usize, _packets: &mut Packets, losses: &mut Losses) {
        if self.leaf.fits(waiting.size) {
            self.leaf.push(waiting);
        } else {
            losses.dropped.push(waiting.packet);
        }
    }

    fn dequeue(&mut self, now: Time, packets: &mut Packets, losses: &mut Losses) -> Next {
        match self.law.dequeue(now, &mut self.leaf, &self.params, packets, losses) {
            Some(waiting) => Next::Packet(waiting),
            None => Next::Empty,
        }
    }

    fn backlog(&self) -> (u32, u64) {
        (self.leaf.len(), self.leaf.bytes())
    }
}
