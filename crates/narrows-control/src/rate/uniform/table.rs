//! The flows of a port: a bounded table with access by key and continuous ageing.

use rustc_hash::FxHashMap;

pub(super) use crate::rate::kit::flow_id::FlowId;
use crate::rate::kit::lifecycle::Life;
use crate::rate::kit::rtt::{RTT_MAX, RTT_MIN};
use crate::rate::kit::slots::Slots;
use crate::rate::{FlowIdentity, Side};
use crate::units::{Span, Time};

/// One flow.
#[derive(Clone, Debug)]
pub(super) struct Flow<K> {
    pub(super) key: K,
    /// The flow uses the rate option.
    pub(super) follows_rates: bool,
    pub(super) life: Life,
    /// The time up to which the flow's reports cover its life; `None` while the flow is idle, or after its FIN.
    pub(super) reported: Option<Time>,
    /// The flow has made no report since it began or resumed.
    pub(super) fresh: bool,
    pub(super) opened: Time,
    /// The time at which the second of the two sides sent FIN.
    pub(super) closed_at: Option<Time>,
}

impl<K> Flow<K> {
    pub(super) fn new(now: Time, key: K, follows_rates: bool, life: Life) -> Self {
        Flow { key, follows_rates, life, reported: None, fresh: true, opened: now, closed_at: None }
    }

    /// Returns whether the flow follows rates and can get them, because a packet of its receiver has passed this port.
    pub(super) fn is_rated(&self) -> bool {
        self.follows_rates && self.life.awaited != Some(Side::Receiver)
    }

    /// Returns whether the law counts the flow.
    pub(super) fn is_counted(&self) -> bool {
        self.follows_rates && self.life.awaited.is_none()
    }

    /// Returns the RTT within its limits, because hosts can influence their samples.
    pub(super) fn rtt(&self) -> Option<Span> {
        self.life.rtt.get().map(|rtt| rtt.max(RTT_MIN).min(RTT_MAX))
    }
}

/// The flows of a port. Keys are hashed without a secret so that runs are reproducible. A host that completes many
/// handshakes can cause collisions.
#[derive(Debug)]
pub(super) struct Table<K> {
    slots: Slots<Flow<K>>,
    by_key: FxHashMap<K, FlowId>,
    unconfirmed: usize,
    max: usize,
    /// The slot at which the next scan continues.
    hand: usize,
}

impl<K: FlowIdentity> Table<K> {
    pub(super) fn new(max: usize) -> Self {
        Table {
            slots: Slots::default(),
            by_key: FxHashMap::default(),
            unconfirmed: 0,
            max: max.min(u32::MAX as usize),
            hand: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns the number of slots, including empty ones.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Returns two numbers: flows seen from one side only, and flows seen from both sides.
    pub(super) fn unconfirmed_and_confirmed(&self) -> (usize, usize) {
        (self.unconfirmed, self.len().saturating_sub(self.unconfirmed))
    }

    pub(super) fn find(&self, key: &K) -> Option<FlowId> {
        self.by_key.get(key).copied()
    }

    pub(super) fn get(&self, id: FlowId) -> Option<&Flow<K>> {
        self.slots.get(id)
    }

    pub(super) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow<K>> {
        self.slots.get_mut(id)
    }

    /// Adds a record. Returns `None` if the table is full or has a record with this key.
    pub(super) fn insert(&mut self, flow: Flow<K>) -> Option<FlowId> {
        if self.len() >= self.max || self.by_key.contains_key(&flow.key) {
            return None;
        }
        let (key, awaited) = (flow.key, flow.life.awaited.is_some());
        let id = self.slots.insert(flow)?;
        self.unconfirmed += usize::from(awaited);
        self.by_key.insert(key, id);
        Some(id)
    }

    pub(super) fn remove(&mut self, id: FlowId) -> Option<Flow<K>> {
        let flow = self.slots.remove(id)?;
        self.by_key.remove(&flow.key);
        self.unconfirmed -= usize::from(flow.life.awaited.is_some());
        Some(flow)
    }

    /// Called when a packet of the awaited side has passed.
    pub(super) fn confirm(&mut self, id: FlowId) {
        if let Some(flow) = self.get_mut(id)
            && flow.life.awaited.take().is_some()
        {
            self.unconfirmed -= 1;
        }
    }

    /// Returns the record in the next slot of the continuous scan, or `None` if this slot is empty.
    pub(super) fn walk(&mut self) -> Option<FlowId> {
        let at = if self.hand < self.slots.len() { self.hand } else { 0 };
        self.hand = at + 1;
        self.slots.id(at)
    }
}
