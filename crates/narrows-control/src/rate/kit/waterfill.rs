//! Max-min water-filling, which divides one capacity among many demands (Bertsekas and Gallager, *Data Networks*,
//! sec. 6.5.2).
//!
//! Every flow gets its demand or the *level*, whichever is smaller. The level is the highest level that the capacity
//! allows. Rates are whole bytes/s. The level is rounded down, so the sum never exceeds the capacity.

/// A demand that no share satisfies.
pub const UNBOUNDED: u64 = u64::MAX;

/// Returns the level, or `None` if every demand fits. Reorders `demands`. The cost is O(n).
///
/// The median splits the flows in two halves. If the level is above the median, all demands of the lower half are
/// satisfied. Otherwise no demand of the upper half is satisfied. In both cases one half is decided, and the search
/// continues in the other half.
pub fn level(capacity: u64, demands: &mut [u64]) -> Option<u64> {
    let mut undecided = demands;
    let mut above = 0u128;
    let mut left = u128::from(capacity);
    while !undecided.is_empty() {
        let middle = undecided.len() / 2;
        let (low, median, high) = undecided.select_nth_unstable(middle);
        let median = u128::from(*median);
        let lower = low.iter().map(|d| u128::from(*d)).sum::<u128>() + median;
        if lower + median * (high.len() as u128 + above) <= left {
            left -= lower;
            undecided = high;
        } else {
            above += high.len() as u128 + 1;
            undecided = low;
        }
    }
    // The quotient is at most `capacity`.
    (above > 0).then(|| (left / above) as u64)
}

/// Returns each demand's allocation, in the order of `demands`.
pub fn fill(capacity: u64, demands: &[u64]) -> Vec<u64> {
    let level = level(capacity, &mut demands.to_vec()).unwrap_or(UNBOUNDED);
    demands.iter().map(|d| (*d).min(level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Computes the reference: the level by bisection, directly from the definition.
    fn reference(capacity: u64, demands: &[u64]) -> Vec<u64> {
        let used = |level: u64| demands.iter().map(|d| u128::from((*d).min(level))).sum::<u128>();
        let (mut fits, mut too_much) = (0u64, u64::MAX);
        if used(u64::MAX) <= u128::from(capacity) {
            fits = u64::MAX;
        }
        while fits != u64::MAX && fits + 1 < too_much {
            let middle = fits + (too_much - fits) / 2;
            if used(middle) <= u128::from(capacity) { fits = middle } else { too_much = middle }
        }
        demands.iter().map(|d| (*d).min(fits)).collect()
    }

    fn demand() -> impl Strategy<Value = u64> {
        prop_oneof![Just(UNBOUNDED), Just(0), 0u64..100, 0u64..10_000_000_000]
    }

    proptest! {
        #[test]
        fn equals_the_reference(capacity in 0u64..20_000_000_000, demands in proptest::collection::vec(demand(), 0..80)) {
            prop_assert_eq!(fill(capacity, &demands), reference(capacity, &demands));
        }
    }

    #[test]
    fn tv_5_to_7() {
        // Rates are scaled by 1000. The demand of a limited flow is 1.1 times its measured use.
        assert_eq!(fill(100_000, &[8_800, UNBOUNDED, UNBOUNDED]), [8_800, 45_600, 45_600]);
        assert_eq!(fill(100_000, &[96_800, UNBOUNDED, UNBOUNDED]), [33_333; 3]);
        assert_eq!(fill(98_000, &[99_000, UNBOUNDED, UNBOUNDED]), [32_666; 3]);
    }

    #[test]
    fn no_flows_and_no_capacity() {
        assert_eq!(level(10, &mut []), None);
        assert_eq!(fill(0, &[5, UNBOUNDED]), [0, 0]);
        assert_eq!(fill(u64::MAX, &[UNBOUNDED]), [UNBOUNDED]);
    }
}
