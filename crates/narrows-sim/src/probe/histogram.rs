//! A histogram of times with a bounded relative error.

use hdrhistogram::Histogram as Hdr;

/// A histogram of durations from 1 microsecond to 10 minutes (HdrHistogram). It stores two significant digits, so the
/// relative error is at most 0.8 %.
#[derive(Clone, Debug)]
pub struct Histogram {
    hdr: Hdr<u32>,
    /// Exact minimum and maximum in nanoseconds. Quantiles are clamped to this range.
    least: u64,
    most: u64,
}

/// Nanoseconds per unit of `hdr`.
const UNIT_NANOS: u64 = 1_000;
/// Largest value for which a new histogram has memory, in units.
const FIRST_BUCKET: u64 = 255;
/// Longest duration of the nominal range, in units. A duration of [`BEYOND`] or more is recorded as this duration.
const LONGEST: u64 = 600_000_000;
/// The upper end, in units, of the bucket of `hdr` that contains [`LONGEST`].
const BEYOND: u64 = 1 << 30;

impl Histogram {
    /// Creates an empty histogram.
    pub fn new() -> Option<Box<Self>> {
        // The memory for the counts grows with the largest sample. In a network with many links, histograms with memory
        // for the whole range would not fit into the processor's caches.
        let mut hdr = Hdr::new_with_bounds(1, FIRST_BUCKET, 2).ok()?;
        hdr.auto(true);
        Some(Box::new(Histogram { hdr, least: u64::MAX, most: 0 }))
    }

    /// Adds a sample.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        self.record_times(nanos, 1);
    }

    /// Adds a sample `times` times.
    #[inline]
    pub fn record_times(&mut self, nanos: u64, times: u32) {
        if times == 0 {
            return;
        }
        self.least = self.least.min(nanos);
        self.most = self.most.max(nanos);
        let value = nanos / UNIT_NANOS;
        if value <= self.hdr.high() {
            self.hdr.saturating_record_n(value, times);
        } else {
            self.record_and_grow(value, times);
        }
    }

    /// Adds a sample for which the histogram has no memory yet, and allocates this memory. This function is not
    /// inlined, so that the code for all other samples stays short.
    #[cold]
    #[inline(never)]
    fn record_and_grow(&mut self, value: u64, times: u32) {
        let value = if value < BEYOND { value } else { LONGEST };
        // Recording fails only if the counts do not fit into the address space.
        let _ = self.hdr.record_n(value, times);
    }

    /// Returns the quantile `q` in seconds. Returns NaN if there are no samples.
    pub fn quantile(&self, q: f64) -> f64 {
        if self.hdr.is_empty() {
            return f64::NAN;
        }
        let nanos = self.hdr.value_at_quantile(q).saturating_mul(UNIT_NANOS);
        nanos.clamp(self.least, self.most) as f64 / 1e9
    }

    /// Whether the histogram has no samples.
    pub fn is_empty(&self) -> bool {
        self.hdr.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_lie_between_minimum_and_maximum() {
        let mut h = Histogram::new().unwrap();
        for nanos in [1_234_567, 80_406_789] {
            h.record(nanos);
        }
        assert_eq!(h.quantile(0.0), 0.001234567);
        assert_eq!(h.quantile(1.0), 0.080406789);
    }

    proptest! {
        /// The quantiles equal those of a histogram that has memory for the whole range from the start.
        #[test]
        fn growing_counts_change_no_quantile(samples in vec((0u64..2_000_000_000_000, 1u32..4), 1..60), q in 0.0..=1.0) {
            let mut whole = Hdr::<u32>::new_with_bounds(1, LONGEST, 2).unwrap();
            let mut h = Histogram::new().unwrap();
            for (nanos, times) in samples {
                whole.saturating_record_n(nanos / UNIT_NANOS, times);
                h.record_times(nanos, times);
            }
            prop_assert_eq!(h.hdr.value_at_quantile(q), whole.value_at_quantile(q));
            prop_assert_eq!(h.hdr.len(), whole.len());
        }
    }
}
