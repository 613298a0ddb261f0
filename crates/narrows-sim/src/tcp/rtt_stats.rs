//! The RTTs of a connection in the measurement interval, for the results (MET-14).
//!
//! The sender adds each sample of its estimator. The run reads the sums when it writes the flow's row.

use narrows_control::units::{Span, Time};

use crate::probe::Histogram;

#[derive(Debug)]
pub(crate) struct RttStats {
    from: Time,
    /// Sum, number and maximum of the samples, and the sum of their differences.
    pub(crate) sum: u128,
    pub(crate) count: u64,
    pub(crate) max: Span,
    pub(crate) jitter_sum: u128,
    previous: Span,
    pub(crate) histogram: Option<Box<Histogram>>,
}

impl RttStats {
    /// Creates the statistics of an interval that begins at `from`.
    pub(super) fn new(from: Time) -> Self {
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

    #[inline]
    pub(super) fn add(&mut self, now: Time, rtt: Span) {
        if now < self.from {
            return;
        }
        if self.count > 0 {
            self.jitter_sum += rtt.as_nanos().abs_diff(self.previous.as_nanos()) as u128;
        }
        self.previous = rtt;
        self.sum += rtt.as_nanos() as u128;
        self.count += 1;
        self.max = self.max.max(rtt);
        if let Some(h) = &mut self.histogram {
            h.record(rtt.as_nanos());
        }
    }
}
