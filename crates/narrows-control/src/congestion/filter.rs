//! Two running maxima. [`WindowedMax`] covers a sliding window, and [`TwoPeriodMax`] covers the last two periods.
//!
//! Source of [`WindowedMax`]: Kathleen Nichols' filter, Linux `lib/minmax.c`. The filter keeps the three best samples
//! in the order of their times. When the best sample expires, the next one replaces it. The result is exact for a
//! steady path. On other paths, the filter may ignore the samples of a part of the window. This part is at most a
//! quarter of the window.

/// The maximum of samples within a window. Time can be any count that never decreases, for example a number of rounds
/// or nanoseconds. For a minimum filter, wrap values in `core::cmp::Reverse`.
#[derive(Copy, Clone, Debug)]
pub struct WindowedMax<V> {
    samples: [Sample<V>; 3],
}

#[derive(Copy, Clone, Debug)]
struct Sample<V> {
    at: u64,
    value: V,
}

impl<V: Copy + Ord> WindowedMax<V> {
    /// Returns a filter that contains one sample.
    pub fn new(at: u64, value: V) -> Self {
        WindowedMax { samples: [Sample { at, value }; 3] }
    }

    /// Returns the maximum.
    pub fn get(&self) -> V {
        self.samples[0].value
    }

    /// Removes all samples except this one.
    pub fn reset(&mut self, at: u64, value: V) {
        *self = Self::new(at, value);
    }

    /// Adds a sample, and returns the maximum over the last `window` units of time.
    pub fn update(&mut self, window: u64, at: u64, value: V) -> V {
        let [best, second, third] = &mut self.samples;
        let sample = Sample { at, value };
        if value >= best.value || at.saturating_sub(third.at) > window {
            self.reset(at, value);
            return value;
        }
        if value >= second.value {
            *second = sample;
            *third = sample;
        } else if value >= third.value {
            *third = sample;
        }
        self.age(window, sample);
        self.get()
    }

    /// Removes expired samples, and keeps the remaining samples apart in time.
    fn age(&mut self, window: u64, sample: Sample<V>) {
        let [best, second, third] = &mut self.samples;
        let age = sample.at.saturating_sub(best.at);
        if age > window {
            // The second best sample may have expired as well. `update` has checked the third best.
            for _ in 0..2 {
                if sample.at.saturating_sub(best.at) > window {
                    *best = *second;
                    *second = *third;
                    *third = sample;
                }
            }
        } else if second.at == best.at && age > window / 4 {
            // For a quarter of the window, no sample was better than the best one. So the second best sample is now
            // taken from the rest of the window.
            *second = sample;
            *third = sample;
        } else if third.at == second.at && age > window / 2 {
            *third = sample;
        }
    }
}

/// The maximum over the current and the previous period. The caller ends periods.
#[derive(Copy, Clone, Debug, Default)]
pub struct TwoPeriodMax<V> {
    before: V,
    current: V,
}

impl<V: Copy + Ord + Default> TwoPeriodMax<V> {
    /// Returns the maximum. Before the first sample, the maximum is the default value of `V`.
    #[inline]
    pub fn get(&self) -> V {
        self.before.max(self.current)
    }

    /// Returns the maximum of the current period alone.
    pub fn current(&self) -> V {
        self.current
    }

    /// Adds a sample to the current period.
    #[inline]
    pub fn update(&mut self, value: V) {
        self.current = self.current.max(value);
    }

    /// Ends the current period and discards the previous period.
    pub fn advance(&mut self) {
        self.before = core::mem::take(&mut self.current);
    }
}

#[cfg(test)]
mod tests {
    use core::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_maximum_expires_when_the_window_has_passed() {
        let mut max = WindowedMax::new(0, 0);
        max.update(10, 0, 100);
        for round in 1..=10 {
            assert_eq!(max.update(10, round, 50), 100, "round {round}");
        }
        assert_eq!(max.update(10, 11, 50), 50);
    }

    #[test]
    fn reversed_values_make_it_a_minimum() {
        let mut min = WindowedMax::new(0, Reverse(30));
        assert_eq!(min.update(10, 1, Reverse(20)), Reverse(20));
        assert_eq!(min.update(10, 5, Reverse(25)), Reverse(20));
    }

    #[test]
    fn two_periods_are_remembered_and_a_third_is_forgotten() {
        let mut max = TwoPeriodMax::default();
        max.update(7);
        max.advance();
        max.update(5);
        assert_eq!((max.get(), max.current()), (7, 5));
        max.advance();
        assert_eq!((max.get(), max.current()), (5, 0));
        max.advance();
        assert_eq!(max.get(), 0);
    }

    proptest! {
        /// The filter keeps only three samples, so it may lose a maximum early. The result is still a sample of the
        /// window, and at least the latest sample.
        #[test]
        fn the_answer_is_a_sample_of_the_window(
            steps in prop::collection::vec((0u64..4, 0u32..1000), 1..200), window in 1u64..20,
        ) {
            let mut at = 0;
            let mut seen: Vec<(u64, u32)> = vec![(0, 0)];
            let mut max = WindowedMax::new(0, 0);
            for (step, value) in steps {
                at += step;
                seen.push((at, value));
                let answer = max.update(window, at, value);
                let recent = || seen.iter().filter(|s| at - s.0 <= window).map(|s| s.1);
                prop_assert!(answer >= value);
                prop_assert!(recent().any(|v| v == answer), "{answer} is not in the window");
                prop_assert!(Some(answer) <= recent().max());
            }
        }
    }
}
