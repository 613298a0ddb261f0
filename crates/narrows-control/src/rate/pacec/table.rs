//! The flows of a port that follow rates.

use rustc_hash::FxHashMap;

use super::demand::Meter;
use crate::rate::FlowIdentity;
pub(super) use crate::rate::kit::flow_id::FlowId;
use crate::rate::kit::slots::Slots;
use crate::units::{Rate, Time};

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Active,
    /// The flow has sent no data for `idle_after`.
    Idle,
    /// The flow has ended with FIN or RST. Later data of the flow is retransmitted data.
    Closed,
}

/// A flow that follows rates.
#[derive(Copy, Clone, Debug)]
pub(super) struct Flow<K> {
    pub(super) key: K,
    pub(super) state: State,
    /// Whether the flow has sent data. A flow that has sent only a SYN is removed when it becomes idle.
    pub(super) had_data: bool,
    /// The time of the last data or SYN.
    pub(super) heard: Time,
    pub(super) announced: Time,
    /// The rate until the controller answers. `None` if the flow may have begun before the port knew it, or if the
    /// parameter `edge` is false.
    pub(super) initial: Option<Rate>,
    /// The controller's rate; [`Rate::MAX`] if the flow begins elsewhere.
    pub(super) granted: Option<Rate>,
    /// The rate last sent to the source out of band.
    pub(super) told: Option<Rate>,
    /// In-band signalling: the next rate may be written from `gate` on. `gate_before` is the value before the last
    /// write.
    pub(super) gate: Time,
    pub(super) gate_before: Time,
    pub(super) meter: Meter,
}

impl<K> Flow<K> {
    /// Returns a flow that begins and is announced. Its rate is `initial` until the controller answers.
    pub(super) fn new(now: Time, key: K, initial: Option<Rate>) -> Self {
        Flow {
            key,
            state: State::Active,
            had_data: false,
            heard: now,
            announced: now,
            initial,
            granted: None,
            told: None,
            gate: Time::ZERO,
            gate_before: Time::ZERO,
            meter: Meter::default(),
        }
    }

    /// Returns whether the controller says that the flow begins at another port.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.granted == Some(Rate::MAX)
    }

    /// Returns the rate to send to the flow's source.
    pub(super) fn rate(&self) -> Option<Rate> {
        match self.granted {
            Some(Rate::MAX) => None,
            Some(rate) => Some(rate),
            None => self.initial,
        }
    }
}

/// The flows of a port.
#[derive(Debug)]
pub(super) struct Table<K> {
    flows: Slots<Flow<K>>,
    by_key: FxHashMap<K, FlowId>,
    most: usize,
}

impl<K: FlowIdentity> Table<K> {
    pub(super) fn new(most: usize) -> Self {
        Table { flows: Slots::default(), by_key: FxHashMap::default(), most }
    }

    pub(super) fn is_full(&self) -> bool {
        self.by_key.len() >= self.most
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Flow<K>> {
        self.flows.iter()
    }

    /// Returns the number of slots, including empty ones.
    pub(super) fn slots(&self) -> usize {
        self.flows.len()
    }

    /// Returns the identifier of the flow in this slot, if there is one.
    pub(super) fn in_slot(&self, slot: usize) -> Option<FlowId> {
        self.flows.id(slot)
    }

    pub(super) fn find(&self, key: &K) -> Option<FlowId> {
        self.by_key.get(key).copied()
    }

    pub(super) fn at(&self, id: FlowId) -> Option<&Flow<K>> {
        self.flows.get(id)
    }

    pub(super) fn at_mut(&mut self, id: FlowId) -> Option<&mut Flow<K>> {
        self.flows.get_mut(id)
    }

    pub(super) fn get(&self, key: &K) -> Option<&Flow<K>> {
        self.at(self.find(key)?)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut Flow<K>> {
        self.at_mut(self.find(key)?)
    }

    /// Adds a flow, or replaces the flow with the same key. If there is no such flow, the table must have room.
    pub(super) fn insert(&mut self, flow: Flow<K>) {
        let key = flow.key;
        if let Some(old) = self.get_mut(&key) {
            *old = flow;
        } else if !self.is_full()
            && let Some(id) = self.flows.insert(flow)
        {
            self.by_key.insert(key, id);
        }
    }

    pub(super) fn remove(&mut self, key: &K) {
        if let Some(id) = self.by_key.remove(key) {
            self.flows.remove(id);
        }
    }
}
