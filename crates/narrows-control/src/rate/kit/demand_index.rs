//! Water-filling over a stored set of demands. Each change and each computation of the level costs
//! O(log) (BRF-103).
//!
//! Demands are counted in buckets of 1/128 relative width. A Fenwick tree over the buckets keeps counts and sums as
//! integers, so they never drift. The level is found by descending the tree. In the bucket that contains the level,
//! each demand is replaced by the bucket's mean. For all other buckets the computation is exact. The level is never too
//! high: `min(d, level)` is concave in d, so the mean overestimates the bucket's use (Jensen's inequality). The level
//! may be too low, by at most half the bucket's width.

/// There are 2^7 buckets per doubling of the demand.
const PRECISION: u32 = 7;
const PER_OCTAVE: u64 = 1 << PRECISION;
/// Larger demands are clamped to this value, 8.8e12 B/s, because a rate code cannot represent higher rates (BRF-5).
pub const MAX_DEMAND: u64 = (1 << 43) - 1;
const BUCKETS: usize = bucket(MAX_DEMAND) + 1;

/// Returns the bucket of a demand: its binary exponent and its first seven mantissa bits.
pub(in crate::rate) const fn bucket(demand: u64) -> usize {
    let exponent = (demand | 1).ilog2();
    if exponent < PRECISION {
        return demand as usize;
    }
    let shift = exponent - PRECISION;
    ((shift as u64 + 1) * PER_OCTAVE + ((demand >> shift) - PER_OCTAVE)) as usize
}

/// Returns the largest demand in a bucket.
pub(in crate::rate) const fn upper_edge(bucket: usize) -> u64 {
    let (octave, mantissa) = (bucket as u64 / PER_OCTAVE, bucket as u64 % PER_OCTAVE);
    if octave == 0 { mantissa } else { ((PER_OCTAVE + mantissa + 1) << (octave - 1)) - 1 }
}

/// Number and sum of the demands in one bucket.
#[derive(Copy, Clone, Default)]
pub(in crate::rate) struct Node {
    pub(in crate::rate) count: u64,
    pub(in crate::rate) sum: u64,
}

/// A multiset of demands, bytes/s.
pub struct DemandIndex {
    buckets: Vec<Node>,
    /// Fenwick tree over `buckets`, one-based.
    tree: Vec<Node>,
    /// Whether a bulk change is in progress. The tree is updated at the end of a bulk change.
    bulk: bool,
    total: Node,
    unbounded: u64,
}

impl Default for DemandIndex {
    fn default() -> Self {
        DemandIndex {
            buckets: vec![Node::default(); BUCKETS],
            tree: vec![Node::default(); BUCKETS + 1],
            bulk: false,
            total: Node::default(),
            unbounded: 0,
        }
    }
}

impl Node {
    pub(in crate::rate) fn add(&mut self, demand: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(demand);
    }

    pub(in crate::rate) fn take(&mut self, demand: u64) {
        self.count = self.count.saturating_sub(1);
        self.sum = self.sum.saturating_sub(demand);
    }
}

impl DemandIndex {
    /// Adds a flow. [`UNBOUNDED`](super::waterfill::UNBOUNDED) is a demand that no share satisfies.
    pub fn insert(&mut self, demand: u64) {
        if demand == super::waterfill::UNBOUNDED {
            self.unbounded += 1;
        } else {
            self.change(demand.min(MAX_DEMAND), Node::add);
        }
    }

    /// Removes a flow that was inserted with this demand.
    pub fn remove(&mut self, demand: u64) {
        if demand == super::waterfill::UNBOUNDED {
            self.unbounded = self.unbounded.saturating_sub(1);
        } else {
            self.change(demand.min(MAX_DEMAND), Node::take);
        }
    }

    fn change(&mut self, demand: u64, change: fn(&mut Node, u64)) {
        let bucket = bucket(demand);
        change(&mut self.total, demand);
        change(&mut self.buckets[bucket], demand);
        if self.bulk {
            return;
        }
        let mut at = bucket + 1;
        while let Some(node) = self.tree.get_mut(at) {
            change(node, demand);
            at += at & at.wrapping_neg();
        }
    }

    /// Begins a bulk change, for use when most flows change. Until [`end_bulk`](DemandIndex::end_bulk) each change
    /// costs O(1), and the end costs O(buckets) once. Before the end, the tree is outdated, so
    /// [`level`](DemandIndex::level) must not be called.
    pub fn begin_bulk(&mut self) {
        self.bulk = true;
    }

    /// Updates the tree after a bulk change.
    pub fn end_bulk(&mut self) {
        if !core::mem::take(&mut self.bulk) {
            return;
        }
        self.tree[1..].copy_from_slice(&self.buckets);
        for at in 1..self.tree.len() {
            let Node { count, sum } = self.tree[at];
            if let Some(parent) = self.tree.get_mut(at + (at & at.wrapping_neg())) {
                parent.count += count;
                parent.sum = parent.sum.saturating_add(sum);
            }
        }
    }

    /// Returns the number of flows in the set.
    pub fn len(&self) -> u64 {
        self.total.count + self.unbounded
    }

    /// Returns whether the set has no flow.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the sum of the bounded demands, bytes/s.
    pub fn bounded_sum(&self) -> u64 {
        self.total.sum
    }

    /// Returns the water level for this capacity, or `None` if every demand fits.
    pub fn level(&self, capacity: u64) -> Option<u64> {
        let capacity = u128::from(capacity);
        if self.unbounded == 0 && u128::from(self.total.sum) <= capacity {
            return None;
        }
        // Descend to the last bucket whose demands are all satisfied. They are satisfied if the capacity covers the
        // demands up to this bucket, plus the bucket's upper edge for each larger demand.
        let (mut at, mut below) = (0, Node::default());
        let mut step = BUCKETS.next_power_of_two();
        while step > 0 {
            if let Some(node) = self.tree.get(at + step) {
                let (count, sum) = (below.count + node.count, below.sum.saturating_add(node.sum));
                let edge = u128::from(upper_edge(at + step - 1));
                if u128::from(sum) + edge * u128::from(self.len() - count) <= capacity {
                    at += step;
                    below = Node { count, sum };
                }
            }
            step /= 2;
        }
        let left = capacity.saturating_sub(u128::from(below.sum));
        let boundary = self.prefix(at + 1);
        let (count, sum) = (boundary.count - below.count, boundary.sum - below.sum);
        let above = u128::from(self.len() - boundary.count);
        // The boundary bucket contains the level. If the level is above the bucket's mean demand, its flows get their
        // demands. Otherwise each of them gets the level.
        let cleared = left.saturating_sub(u128::from(sum)).checked_div(above);
        let level = match cleared {
            Some(level) if level * u128::from(count) >= u128::from(sum) && left >= u128::from(sum) => level,
            _ => left / (above + u128::from(count)).max(1),
        };
        Some(u64::try_from(level).unwrap_or(u64::MAX))
    }

    /// Returns the count and the sum of the demands in the first `buckets` buckets.
    fn prefix(&self, buckets: usize) -> Node {
        let mut at = buckets.min(BUCKETS);
        let mut total = Node::default();
        while at > 0 {
            let node = self.tree[at];
            total.count += node.count;
            total.sum = total.sum.saturating_add(node.sum);
            at -= at & at.wrapping_neg();
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::kit::waterfill::{self, UNBOUNDED};
    use proptest::prelude::*;

    #[test]
    fn buckets_are_in_order_and_have_their_edges() {
        let mut last = 0;
        for demand in (0..100_000).chain((0..40).map(|i| 123_457 << i).take_while(|d| *d <= MAX_DEMAND)) {
            let b = bucket(demand);
            assert!(b >= last);
            assert!(demand <= upper_edge(b) && (b == 0 || demand > upper_edge(b - 1)), "{demand}");
            last = b;
        }
        assert_eq!(upper_edge(BUCKETS - 1), MAX_DEMAND);
    }

    fn demand() -> impl Strategy<Value = u64> {
        prop_oneof![Just(UNBOUNDED), 0u64..300, 1_000_000u64..1_040_000, 0u64..=MAX_DEMAND]
    }

    proptest! {
        #[test]
        fn the_level_is_never_above_the_exact_one_and_close_below(
            capacity in prop_oneof![0u64..1000, 0u64..100_000_000, 0u64..100_000_000_000_000],
            demands in proptest::collection::vec(demand(), 0..60),
        ) {
            let mut index = DemandIndex::default();
            demands.iter().for_each(|d| index.insert(*d));
            let exact = waterfill::level(capacity, &mut demands.clone());
            let found = index.level(capacity);
            prop_assert_eq!(found.is_none(), exact.is_none());
            if let (Some(found), Some(exact)) = (found, exact) {
                prop_assert!(found <= exact, "{} > {}", found, exact);
                prop_assert!(found as f64 >= exact as f64 * (1.0 - 0.5 / PER_OCTAVE as f64) - 1.0, "{} << {}", found, exact);
            }
        }

        #[test]
        fn a_bulk_change_equals_its_single_changes(
            before in proptest::collection::vec(demand(), 0..20), added in proptest::collection::vec(demand(), 0..20),
        ) {
            let (mut bulk, mut single) = (DemandIndex::default(), DemandIndex::default());
            before.iter().for_each(|d| { bulk.insert(*d); single.insert(*d) });
            bulk.begin_bulk();
            for index in [&mut bulk, &mut single] {
                added.iter().for_each(|d| index.insert(*d));
                before.iter().for_each(|d| index.remove(*d));
            }
            bulk.end_bulk();
            for capacity in [0, 1_000, 20_000_000, u64::MAX] {
                prop_assert_eq!(bulk.level(capacity), single.level(capacity));
            }
        }

        #[test]
        fn removed_demands_leave_no_trace(
            kept in proptest::collection::vec(demand(), 0..20), gone in proptest::collection::vec(demand(), 0..20),
        ) {
            let (mut with, mut without) = (DemandIndex::default(), DemandIndex::default());
            gone.iter().for_each(|d| with.insert(*d));
            kept.iter().for_each(|d| { with.insert(*d); without.insert(*d) });
            gone.iter().for_each(|d| with.remove(*d));
            prop_assert_eq!(with.len(), without.len());
            for capacity in [0, 1_000, 20_000_000, u64::MAX] {
                prop_assert_eq!(with.level(capacity), without.level(capacity));
            }
        }
    }
}
