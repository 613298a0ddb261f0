//! Histogram of times with a bounded relative error.

use hdrhistogram::Histogram as Hdr;

/// Durations from 1 microsecond to 10 minutes to within 0.8 % (two significant digits, HdrHistogram).
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    hdr: Hdr<u32>,
}

/// Nanoseconds of a bucket unit.
const UNIT: u64 = 1_000;

impl Histogram {
    pub(crate) fn new() -> Option<Box<Self>> {
        Hdr::new_with_bounds(1, 600_000_000, 2).ok().map(|hdr| Box::new(Histogram { hdr }))
    }

    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.hdr.saturating_record(nanos / UNIT);
    }

    /// The value in seconds below which the share `q` lies; NaN without samples.
    pub(crate) fn quantile(&self, q: f64) -> f64 {
        if self.hdr.is_empty() { f64::NAN } else { self.hdr.value_at_quantile(q) as f64 * UNIT as f64 / 1e9 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hdr.is_empty()
    }
}
