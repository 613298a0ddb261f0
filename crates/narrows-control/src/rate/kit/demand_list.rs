//! Water-filling over the few demands of one subscriber.
//!
//! A [`DemandIndex`](super::demand_index::DemandIndex) takes 150 kB, too much for each of ten thousand subscribers. A
//! [`DemandList`] stores only the buckets that have a demand, in order. A change costs a binary search. Computing the
//! level costs one pass over the stored buckets. The results are bit-for-bit the same as with the index.

use super::demand_index::{MAX_DEMAND, Node, bucket, upper_edge};
use super::waterfill::UNBOUNDED;

/// A multiset of demands, bytes/s.
#[derive(Default)]
pub struct DemandList {
    /// The occupied buckets in ascending order.
    buckets: Vec<(u16, Node)>,
    total: Node,
    unbounded: u64,
}

impl DemandList {
    /// Adds a flow. [`UNBOUNDED`] is a demand that no share satisfies.
    pub fn insert(&mut self, demand: u64) {
        if demand == UNBOUNDED {
            self.unbounded += 1;
            return;
        }
        let demand = demand.min(MAX_DEMAND);
        let key = bucket(demand) as u16;
        let at = self.buckets.partition_point(|(of, _)| *of < key);
        if self.buckets.get(at).is_none_or(|(of, _)| *of != key) {
            self.buckets.insert(at, (key, Node::default()));
        }
        self.buckets[at].1.add(demand);
        self.total.add(demand);
    }

    /// Removes a flow that was inserted with this demand.
    pub fn remove(&mut self, demand: u64) {
        if demand == UNBOUNDED {
            self.unbounded = self.unbounded.saturating_sub(1);
            return;
        }
        let demand = demand.min(MAX_DEMAND);
        let key = bucket(demand) as u16;
        let at = self.buckets.partition_point(|(of, _)| *of < key);
        let Some((_, node)) = self.buckets.get_mut(at).filter(|(of, _)| *of == key) else { return };
        node.take(demand);
        if node.count == 0 {
            self.buckets.remove(at);
        }
        self.total.take(demand);
    }

    /// Returns the number of flows in the set.
    pub fn len(&self) -> u64 {
        self.total.count + self.unbounded
    }

    /// Returns whether the set has no flow.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the sum of all demands, or [`UNBOUNDED`] if a demand is unbounded.
    pub fn sum(&self) -> u64 {
        if self.unbounded > 0 { UNBOUNDED } else { self.total.sum.min(MAX_DEMAND) }
    }

    /// Returns the water level for this capacity, or `None` if every demand fits. See
    /// [`DemandIndex::level`](super::demand_index::DemandIndex::level).
    pub fn level(&self, capacity: u64) -> Option<u64> {
        if self.unbounded == 0 && self.total.sum <= capacity {
            return None;
        }
        let mut left = u128::from(capacity);
        let mut above = u128::from(self.len());
        for (of, node) in &self.buckets {
            let (count, sum) = (u128::from(node.count), u128::from(node.sum));
            let edge = u128::from(upper_edge(usize::from(*of)));
            let rest = above - count;
            if sum + edge * rest > left {
                // This bucket contains the level. If the level is above the bucket's mean demand, its flows get their
                // demands. Otherwise each of them gets the level.
                let cleared = left.checked_sub(sum).and_then(|left| left.checked_div(rest));
                return Some(match cleared {
                    Some(level) if level * count >= sum => level as u64,
                    _ => (left / above) as u64,
                });
            }
            (left, above) = (left - sum, rest);
        }
        // Only unbounded flows are left. The quotient is at most `capacity`.
        Some((left / above.max(1)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::kit::demand_index::DemandIndex;
    use proptest::prelude::*;

    fn demand() -> impl Strategy<Value = u64> {
        prop_oneof![Just(UNBOUNDED), 0u64..300, 1_000_000u64..1_040_000, 0u64..=MAX_DEMAND]
    }

    proptest! {
        #[test]
        fn equals_the_index(
            capacity in prop_oneof![0u64..1000, 0u64..100_000_000, any::<u64>()],
            kept in proptest::collection::vec(demand(), 0..40), gone in proptest::collection::vec(demand(), 0..20),
        ) {
            let (mut list, mut index) = (DemandList::default(), DemandIndex::default());
            for d in gone.iter().chain(&kept) {
                list.insert(*d);
                index.insert(*d);
            }
            for d in &gone {
                list.remove(*d);
                index.remove(*d);
            }
            prop_assert_eq!(list.len(), index.len());
            prop_assert_eq!(list.level(capacity), index.level(capacity));
            prop_assert!(list.buckets.len() <= kept.len(), "a bucket without a demand is stored");
        }
    }

    #[test]
    fn one_flow_gets_the_capacity_or_its_demand() {
        let mut list = DemandList::default();
        list.insert(5_000_001);
        assert_eq!((list.level(5_000_001), list.level(5_000_000)), (None, Some(5_000_000)));
        assert_eq!(list.sum(), 5_000_001);
        list.insert(UNBOUNDED);
        assert_eq!(list.sum(), UNBOUNDED);
    }
}
