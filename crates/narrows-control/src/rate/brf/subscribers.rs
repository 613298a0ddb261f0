//! The division of a subscriber's share among its flows (BRF-106).
//!
//! The division is max-min fair in two steps. The port's level limits the demand of each subscriber. The subscriber's
//! own level limits the demand of each of its flows. The demand of a subscriber is the sum of its flows' demands. A
//! subscriber without active flows has no demand, so the other subscribers get its share.
//!
//! A change of one flow changes the levels of many subscribers. So a subscriber's level is computed only when the rate
//! of one of its flows is needed. The level is kept until the subscriber's demands or its share change. A subscriber
//! with one flow needs no separate level: the port's level gives exactly the same rate.

use core::cell::Cell;

use rustc_hash::FxHashMap;

use super::allocate::Terms;
use super::commitments::Commitments;
use crate::rate::Host;
use crate::rate::kit::demand_list::DemandList;
use crate::rate::kit::subscriber::Subscriber;
use crate::rate::kit::waterfill::UNBOUNDED;
use crate::units::Rate;

/// The weight of a subscriber in the split between the classes; see [`Subscribers::weights`].
pub(super) const WEIGHT: u64 = 1 << 20;
/// The subscriber of a slot without a record.
const NONE: u32 = u32::MAX;

/// One subscriber.
struct Group<H> {
    key: Subscriber<H>,
    /// Number of records of the subscriber's flows, including idle flows.
    records: u32,
    /// Number of active flows that follow rates, and number of other active TCP flows.
    active: (u32, u32),
    demands: DemandList,
    /// The rates of newcomers, which are not among the demands.
    newcomers: Commitments,
    /// The share for which `level` was computed; `None` after a change of the demands.
    granted: Cell<Option<u64>>,
    level: Cell<u64>,
}

impl<H> Group<H> {
    /// Returns the demand of all flows together, or `None` if there is no demand.
    fn demand(&self) -> Option<u64> {
        (!self.demands.is_empty()).then(|| self.demands.sum())
    }

    /// Returns the largest share of a flow if the port's level is `port_level`.
    fn level(&self, port_level: u64) -> u64 {
        let granted = self.demands.sum().min(port_level);
        if self.granted.get() != Some(granted) {
            let level = match granted {
                UNBOUNDED => UNBOUNDED,
                _ => self.demands.level(granted).unwrap_or(UNBOUNDED),
            };
            self.level.set(level);
            self.granted.set(Some(granted));
        }
        self.level.get()
    }

    /// Returns the share that a flow would get if its demand were unlimited instead of this demand.
    fn ceiling(&self, port_level: u64, demand: u64) -> u64 {
        match self.level(port_level) {
            // All demands of the subscriber fit, so a flow with an unlimited demand would get the rest of the
            // subscriber's share.
            UNBOUNDED if port_level != UNBOUNDED => {
                port_level.saturating_sub(self.demands.sum()).saturating_add(demand)
            }
            level => level,
        }
    }

    /// Returns the parts of [`WEIGHT`] for flows that follow rates, and for other TCP flows.
    fn weights(&self) -> (u64, u64) {
        let (rated, other) = (u64::from(self.active.0), u64::from(self.active.1));
        match rated + other {
            0 => (0, 0),
            flows => {
                let rated = WEIGHT * rated / flows;
                (rated, WEIGHT - rated)
            }
        }
    }
}

/// The subscribers of a port. Functions identify a flow by its slot in the flow table.
pub(super) struct Subscribers<H> {
    by_key: FxHashMap<Subscriber<H>, u32>,
    groups: Vec<Group<H>>,
    free: Vec<u32>,
    of_slot: Vec<u32>,
    /// Number of flows with a demand.
    flows: u64,
    /// Number of subscribers with active flows that follow rates.
    rated: u64,
    weights: (u64, u64),
    /// Number of times that a change of one flow may have changed the shares of its subscriber's other flows.
    epoch: u64,
}

impl<H> Default for Subscribers<H> {
    fn default() -> Self {
        Subscribers {
            by_key: FxHashMap::default(),
            groups: Vec::new(),
            free: Vec::new(),
            of_slot: Vec::new(),
            flows: 0,
            rated: 0,
            weights: (0, 0),
            epoch: 0,
        }
    }
}

impl<H: Host> Subscribers<H> {
    /// Records that the flow in this slot belongs to this subscriber.
    pub(super) fn join(&mut self, slot: u32, key: Subscriber<H>) {
        let number = *self.by_key.entry(key).or_insert_with(|| {
            let group = Group {
                key,
                records: 0,
                active: (0, 0),
                demands: DemandList::default(),
                newcomers: Commitments::default(),
                granted: Cell::new(None),
                level: Cell::new(UNBOUNDED),
            };
            // There are at most as many groups as slots, so the index fits into 32 bits.
            match self.free.pop() {
                Some(number) => {
                    self.groups[number as usize] = group;
                    number
                }
                None => {
                    self.groups.push(group);
                    self.groups.len() as u32 - 1
                }
            }
        });
        self.groups[number as usize].records += 1;
        let slot = slot as usize;
        if slot >= self.of_slot.len() {
            self.of_slot.resize(slot + 1, NONE);
        }
        self.of_slot[slot] = number;
    }

    /// Called when the record is removed. The flow is no longer active at that time.
    pub(super) fn leave(&mut self, slot: u32) {
        let Some(place) = self.of_slot.get_mut(slot as usize) else { return };
        let number = core::mem::replace(place, NONE);
        let Some(group) = self.groups.get_mut(number as usize) else { return };
        group.records -= 1;
        if group.records == 0 {
            self.by_key.remove(&group.key);
            group.demands = DemandList::default();
            self.free.push(number);
        }
    }

    fn group(&self, slot: u32) -> Option<&Group<H>> {
        self.groups.get(*self.of_slot.get(slot as usize)? as usize)
    }

    fn group_mut(&mut self, slot: u32) -> Option<&mut Group<H>> {
        self.groups.get_mut(*self.of_slot.get(slot as usize)? as usize)
    }

    /// Counts a flow that becomes active (`change` is 1), or is no longer active (-1). `rated` tells whether the flow
    /// follows rates.
    pub(super) fn count_active(&mut self, slot: u32, rated: bool, change: i32) {
        let Some(group) = self.group_mut(slot) else { return };
        let (before, had_rated) = (group.weights(), group.active.0 > 0);
        let count = if rated { &mut group.active.0 } else { &mut group.active.1 };
        *count = count.saturating_add_signed(change);
        let (after, has_rated) = (group.weights(), group.active.0 > 0);
        self.weights.0 = self.weights.0 - before.0 + after.0;
        self.weights.1 = self.weights.1 - before.1 + after.1;
        self.rated = self.rated - u64::from(had_rated) + u64::from(has_rated);
    }

    /// Returns the sum of all subscribers' weights for flows that follow rates, and for other TCP. A subscriber has
    /// the weight of one flow, so it cannot enlarge a class by opening connections.
    pub(super) fn weights(&self) -> (u64, u64) {
        self.weights
    }

    /// Returns the number of subscribers with active flows that follow rates.
    pub(super) fn rated(&self) -> u64 {
        self.rated
    }

    /// Returns N such that the equal share of this active flow is the capacity divided by N.
    pub(super) fn divisor(&self, slot: u32) -> u64 {
        let flows = self.group(slot).map_or(1, |group| u64::from(group.active.0));
        self.rated.max(1).saturating_mul(flows.max(1))
    }

    /// Returns the part of a subscriber's equal share that a newcomer of this subscriber gets (BRF-34, BRF-106), or
    /// `None` if the subscriber has no other active flow that follows rates.
    pub(super) fn newcomer_share(&self, slot: u32, capacity: Rate) -> Option<Rate> {
        let group = self.group(slot).filter(|group| group.active.0 > 1)?;
        let of_group = Rate::from_bytes_per_sec(capacity.as_bytes_per_sec() / self.rated.max(1));
        Some(group.newcomers.share(of_group, group.demands.len(), 1))
    }

    /// Returns the commitments of the flow's subscriber.
    pub(super) fn commitments_mut(&mut self, slot: u32) -> Option<&mut Commitments> {
        self.group_mut(slot).map(|group| &mut group.newcomers)
    }

    /// Applies `change` to the demands of the flow's subscriber. Returns the subscriber's total demand before and after
    /// the change.
    pub(super) fn change(
        &mut self,
        slot: u32,
        change: impl FnOnce(&mut DemandList),
    ) -> (Option<u64>, Option<u64>) {
        let Some(group) = self.group_mut(slot) else { return (None, None) };
        let (before, flows) = (group.demand(), group.demands.len());
        change(&mut group.demands);
        group.granted.set(None);
        let (after, left) = (group.demand(), group.demands.len());
        self.flows = self.flows - flows + left;
        self.epoch += u64::from(flows.max(left) > 1);
        (before, after)
    }

    /// Returns the number of flows with a demand.
    pub(super) fn flows(&self) -> u64 {
        self.flows
    }

    /// Returns the terms of this flow. `level` is the port's level, and `spread` is the remainder that the
    /// flow's subscriber gets.
    pub(super) fn terms(&self, slot: u32, level: u64, spread: u64) -> Terms {
        self.group(slot).map_or(Terms { level, spread: 0 }, |group| Terms {
            level: group.level(level),
            spread: spread / group.demands.len().max(1),
        })
    }

    /// Returns the largest share that this flow could get; see [`Group::ceiling`].
    pub(super) fn ceiling(&self, slot: u32, port_level: u64, demand: u64) -> u64 {
        self.group(slot).map_or(port_level, |group| group.ceiling(port_level, demand))
    }

    /// Returns the flow's part of the remainder that its subscriber gets.
    pub(super) fn spread(&self, slot: u32, of_subscriber: u64) -> u64 {
        if of_subscriber == 0 {
            return 0;
        }
        self.group(slot).map_or(0, |group| of_subscriber / group.demands.len().max(1))
    }

    /// Returns a number that changes whenever one flow may have changed the shares of its subscriber's other flows.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }
}

#[cfg(test)]
#[path = "subscribers_tests.rs"]
mod tests;
