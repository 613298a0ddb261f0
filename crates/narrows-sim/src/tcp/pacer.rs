//! The pacer. It computes the earliest time of the next transmission from the pacing rate.
//!
//! `transmit` reads this time before it sends a segment, and advances the time after each packet.

use narrows_control::units::{Bytes, Rate, Span, Time};

#[derive(Clone, Debug)]
pub(super) struct Pacer {
    next: Time,
}

impl Pacer {
    pub(super) fn new(now: Time) -> Self {
        Pacer { next: now }
    }

    /// Returns the earliest time of the next transmission.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Advances the time of the next transmission after a packet was sent. The gap between packets is the packet's size
    /// divided by the rate. A packet may be sent later than the pacer allowed. If this delay is shorter than the gap,
    /// the next gap is shortened by the delay. (Linux shortens a gap by at most one half.) If the delay is longer, the
    /// next gap has its full length.
    pub(super) fn charge(&mut self, now: Time, size: u32, rate: Rate) {
        let gap: Span = rate.time_for(Bytes::new(size as u64));
        let base = if now.since(self.next) < gap { self.next.max(now - gap) } else { now };
        self.next = base + gap;
    }
}
