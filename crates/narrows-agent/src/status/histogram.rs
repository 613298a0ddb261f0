//! Counts iterations of the control loop by duration, in the buckets of a Prometheus histogram.

use narrows_control::units::Span;
use serde::{Deserialize, Serialize};

/// Upper bounds of the buckets in microseconds. One more bucket without a bound follows.
pub(crate) const BOUNDS_US: [u64; 10] = [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

/// A histogram of the durations of iterations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopTimes {
    /// Number of iterations in each bucket. The last bucket is for iterations above the last bound.
    pub buckets: [u64; BOUNDS_US.len() + 1],
    /// Total duration of all iterations.
    pub total: Span,
    /// Longest duration of an iteration.
    pub longest: Span,
}

impl LoopTimes {
    /// Records an iteration.
    pub fn record(&mut self, took: Span) {
        let bucket = BOUNDS_US.partition_point(|bound| Span::from_micros(*bound) < took);
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += 1;
        }
        self.total += took;
        self.longest = self.longest.max(took);
    }

    /// Returns the number of iterations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the quantile `part` (0 to 1) of the durations: the upper bound of the quantile's bucket, or the longest
    /// duration if that is lower.
    pub fn quantile(&self, part: f64) -> Span {
        let rank = (self.count() as f64 * part).ceil() as u64;
        let mut below = 0;
        for (count, bound) in self.buckets.iter().zip(BOUNDS_US) {
            below += count;
            if below >= rank {
                return Span::from_micros(bound).min(self.longest);
            }
        }
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_with_a_sufficient_bound() {
        let mut times = LoopTimes::default();
        for us in [1, 10, 11, 900, 99_999] {
            times.record(Span::from_micros(us));
        }
        assert_eq!(times.buckets, [2, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!((times.count(), times.longest), (5, Span::from_micros(99_999)));
        assert_eq!(times.quantile(0.4), Span::from_micros(10));
        assert_eq!(times.quantile(0.8), Span::from_micros(1_000));
        assert_eq!(times.quantile(1.0), times.longest);
    }
}
