//! The pacer: the time of the next transmission that the pacing rate allows.
//!
//! `transmit` reads this time before it sends a segment, and advances it after each packet.

use narrows_control::units::{Bytes, Rate, Span, Time};

#[derive(Clone, Debug)]
pub(super) struct Pacer {
    next: Time,
}

impl Pacer {
    pub(super) fn new(now: Time) -> Self {
        Pacer { next: now }
    }

    /// Returns the time of the next transmission.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Advances the time of the next transmission by one gap: the packet's size divided by the rate. A packet may leave
    /// some time after the pacer has permitted it. If this delay is shorter than a gap, it is subtracted from the gap.
    /// (Linux subtracts at most half a gap.) If the delay is a gap or longer, a full gap begins at `now`.
    pub(super) fn charge(&mut self, now: Time, size: u32, rate: Rate) {
        let gap: Span = rate.time_for(Bytes::new(size as u64));
        let base = if now.since(self.next) < gap { self.next.max(now - gap) } else { now };
        self.next = base + gap;
    }
}
