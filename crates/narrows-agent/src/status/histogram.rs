//! How long turns of the control loop take, in buckets that Prometheus reads as they are.

use narrows_control::units::Span;
use serde::{Deserialize, Serialize};

/// Upper bounds of the buckets, microseconds; the last bucket has none.
pub(crate) const BOUNDS_US: [u64; 10] = [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

/// A histogram of loop times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopTimes {
    /// Turns in each bucket, and above the last bound.
    pub buckets: [u64; BOUNDS_US.len() + 1],
    /// All together.
    pub total: Span,
    /// The longest.
    pub longest: Span,
}

impl LoopTimes {
    /// Counts a turn.
    pub fn record(&mut self, took: Span) {
        let bucket = BOUNDS_US.partition_point(|bound| Span::from_micros(*bound) < took);
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += 1;
        }
        self.total += took;
        self.longest = self.longest.max(took);
    }

    /// Turns so far.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Upper bound of the bucket in which this part (0 to 1) of the turns has ended; the longest turn when none has.
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
    fn a_turn_falls_into_the_bucket_whose_bound_it_does_not_exceed() {
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
