//! RTT statistics of a connection over the measurement interval, for the results (MET-14).
//!
//! The sender adds each sample of its estimator. The run reads the sums when it writes the flow's row.

use narrows_control::units::{Span, Time};

use crate::probe::Histogram;

#[derive(Debug)]
pub(crate) struct RttStats {
    from: Time,
    /// Sum of the samples in ns; 64 bits are enough for 584 years. `jitter_sum` adds up the absolute differences
    /// between successive samples, also in ns.
    pub(crate) sum: u64,
    pub(crate) count: u64,
    pub(crate) max: Span,
    pub(crate) jitter_sum: u64,
    previous: Span,
    pub(crate) histogram: Option<Box<Histogram>>,
}

impl RttStats {
    /// Creates the statistics of an interval that begins at `from`.
    pub(crate) fn new(from: Time) -> Self {
        RttStats {
            from,
            sum: 0,
            count: 0,
            max: Span::ZERO,
            jitter_sum: 0,
            previous: Span::ZERO,
            histogram: None,
        }
    }

    /// Returns whether the interval has begun.
    #[inline]
    pub(crate) fn has_begun(&self, now: Time) -> bool {
        now >= self.from
    }

    #[inline]
    pub(crate) fn add(&mut self, now: Time, rtt: Span) {
        if !self.has_begun(now) {
            return;
        }
        if self.count > 0 {
            let change = rtt.as_nanos().abs_diff(self.previous.as_nanos());
            self.jitter_sum = self.jitter_sum.saturating_add(change);
        }
        self.previous = rtt;
        self.sum = self.sum.saturating_add(rtt.as_nanos());
        self.count += 1;
        self.max = self.max.max(rtt);
        if let Some(h) = &mut self.histogram {
            h.record(rtt.as_nanos());
        }
    }
}
