//! The flows of a port that obey rates.

use rustc_hash::FxHashMap;

use super::demand::Meter;
use crate::rate::FlowKey;
use crate::units::{Rate, Time};

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Active,
    /// Nothing came for `idle_after`.
    Idle,
    /// FIN was seen; what still comes is retransmitted.
    Closed,
}

/// A flow that obeys rates.
#[derive(Copy, Clone, Debug)]
pub(super) struct Flow {
    pub(super) key: FlowKey,
    pub(super) state: State,
    /// It had data: a SYN alone is not remembered.
    pub(super) had_data: bool,
    /// Last data.
    pub(super) heard: Time,
    pub(super) announced: Time,
    /// Until the controller speaks; none for a flow that was there before this port.
    pub(super) initial: Option<Rate>,
    /// By the controller; [`Rate::MAX`]: it begins elsewhere.
    pub(super) granted: Option<Rate>,
    /// What the source was told last out of band, and when.
    pub(super) told: Option<(Rate, Time)>,
    /// In band: when the next may be written, and what that was before the last.
    pub(super) gate: Time,
    pub(super) gate_before: Time,
    pub(super) meter: Meter,
}

impl Flow {
    /// One that begins, is announced, and may have `initial` until the controller speaks.
    pub(super) fn new(now: Time, key: FlowKey, initial: Option<Rate>) -> Self {
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

    /// It begins at another port, says the controller.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.granted == Some(Rate::MAX)
    }

    /// What its source may be told here.
    pub(super) fn rate(&self) -> Option<Rate> {
        match self.granted {
            Some(Rate::MAX) => None,
            Some(rate) => Some(rate),
            None => self.initial,
        }
    }
}

/// All of them, in no order that means anything.
#[derive(Debug)]
pub(super) struct Table {
    flows: Vec<Flow>,
    index: FxHashMap<FlowKey, usize>,
    most: usize,
}

impl Table {
    pub(super) fn new(most: usize) -> Self {
        Table { flows: Vec::new(), index: FxHashMap::default(), most }
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.flows.len() >= self.most
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter()
    }

    pub(super) fn get(&self, key: &FlowKey) -> Option<&Flow> {
        self.flows.get(*self.index.get(key)?)
    }

    pub(super) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut Flow> {
        self.flows.get_mut(*self.index.get(key)?)
    }

    /// The flow at this place. [`remove`](Table::remove) moves the last one into the gap.
    pub(super) fn at_mut(&mut self, at: usize) -> Option<&mut Flow> {
        self.flows.get_mut(at)
    }

    /// Takes the place of the one of the same key, if there is one. Otherwise there must be room.
    pub(super) fn insert(&mut self, flow: Flow) {
        let full = self.is_full();
        match self.get_mut(&flow.key) {
            Some(old) => *old = flow,
            None if !full => {
                self.index.insert(flow.key, self.flows.len());
                self.flows.push(flow);
            }
            None => {}
        }
    }

    pub(super) fn remove(&mut self, key: &FlowKey) {
        let Some(at) = self.index.remove(key) else { return };
        self.flows.swap_remove(at);
        if let Some(moved) = self.flows.get(at) {
            self.index.insert(moved.key, at);
        }
    }
}
