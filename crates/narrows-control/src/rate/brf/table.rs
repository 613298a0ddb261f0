//! The flow table: records, and lists by which nothing is ever searched (section 3).

use rustc_hash::FxHashMap;

use super::allocate::AppClass;
use super::feedback::Gate;
use super::layers::Layer;
use super::rtt::RttEstimate;
use crate::rate::{Class, FlowKey};
use crate::units::{Bytes, Rate, Span, Time};

/// Names a record while it lives. A slot is used again, its generation is not.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowId {
    slot: u32,
    generation: u32,
}

/// Which list a record is on; every record is on one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Explicit-rate flows that hold an allocation, least recent data first: N_BRF.
    Rated = 0,
    /// Other TCP flows with data, least recent first: N_CUBIC.
    Other = 1,
    /// Flows without data for a while, longest first.
    Idle = 2,
    /// Flows not yet seen from both sides, and flows closed from both.
    Waiting = 3,
}

/// From which side a handshake began, or which side is yet to be heard from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The side that sends the data.
    Sender,
    /// The side that receives it.
    Receiver,
}

/// What is counted of a flow in one measurement window.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Window {
    /// Number of the window that the counts belong to.
    pub(super) number: u64,
    /// L3 bytes that arrived.
    pub(super) bytes: Bytes,
    /// Payload bytes that the sequence numbers skip: sent, but lost before this switch (BRF-100).
    pub(super) missing: Bytes,
    /// The sender said that its application does not limit it (BRF-100).
    pub(super) unlimited: bool,
}

/// Counts of the windows since the class was last decided, all under one and the same allocation.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Evidence {
    /// When the sender was told that allocation.
    pub(super) since: Time,
    /// L3 bytes that the sender sent.
    pub(super) sent: Bytes,
    /// In this time.
    pub(super) span: Span,
    /// Number of windows.
    pub(super) windows: u32,
}

/// One flow (FLOW_INFO_BRF of the paper).
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) key: FlowKey,
    pub(super) class: Class,
    /// Both sides have been heard: not a forged packet.
    pub(super) confirmed: bool,
    /// The side whose next packet confirms the flow.
    pub(super) awaited: Side,
    /// When the SYN-ACK passed, while the last packet of the handshake is awaited.
    pub(super) syn_ack_at: Option<Time>,
    pub(super) rtt: RttEstimate,
    /// bytes/s, `UNBOUNDED` if no share satisfies it; in literal mode the allocation. See `Shares`.
    pub(super) demand: u64,
    pub(super) app_class: AppClass,
    /// Base allocation that the sender was told, and since when.
    pub(super) told: Option<(Rate, Time)>,
    pub(super) gate: Gate,
    pub(super) window: Window,
    pub(super) evidence: Evidence,
    /// Rate in the last window.
    pub(super) real: Rate,
    /// Sums over all windows, for the predictor.
    pub(super) measured: (Bytes, Span),
    /// When the flow was last given a rate as a newcomer.
    pub(super) joined: Time,
    /// First data since then.
    pub(super) first_data: Option<Time>,
    pub(super) next_seq: Option<u64>,
    pub(super) last_data: Time,
    pub(super) last_seen: Time,
    /// An ACK came back through this switch; otherwise the flow has to be advertised (BRF-63).
    pub(super) ack_seen_here: bool,
    pub(super) fin: (bool, bool),
    pub(super) layer: Layer,
    /// Number of the window after which `layer` was assigned.
    pub(super) layer_as_of: u64,
}

impl Flow {
    pub(super) fn new(now: Time, key: FlowKey, class: Class, awaited: Side) -> Self {
        Flow {
            key,
            class,
            confirmed: false,
            awaited,
            syn_ack_at: None,
            rtt: RttEstimate::default(),
            demand: 0,
            app_class: AppClass::Unknown,
            told: None,
            gate: Gate::default(),
            window: Window::default(),
            evidence: Evidence::default(),
            real: Rate::ZERO,
            measured: (Bytes::ZERO, Span::ZERO),
            joined: now,
            first_data: None,
            next_seq: None,
            last_data: now,
            last_seen: now,
            ack_seen_here: false,
            fin: (false, false),
            layer: Layer::default(),
            layer_as_of: 0,
        }
    }

    /// Both sides have said that they are done.
    pub(super) fn closed(&self) -> bool {
        self.fin == (true, true)
    }

    /// Mean rate over the flow's measurement windows.
    pub(super) fn mean(&self) -> Option<Rate> {
        let (bytes, time) = self.measured;
        (time > Span::ZERO).then(|| Rate::of(bytes, time))
    }
}

const NIL: u32 = u32::MAX;

#[derive(Debug)]
struct Entry {
    flow: Option<Flow>,
    generation: u32,
    list: List,
    prev: u32,
    next: u32,
}

#[derive(Copy, Clone, Debug)]
struct Ends {
    head: u32,
    tail: u32,
    len: usize,
}

/// A slab of flows with four doubly linked lists through it. Everything but [`Table::ids`] is O(1).
///
/// Keys are hashed without a secret, so that runs repeat; who can complete handshakes at will can collide them.
#[derive(Debug)]
pub(super) struct Table {
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_key: FxHashMap<FlowKey, u32>,
    ends: [Ends; 4],
    unconfirmed: usize,
    max: usize,
}

impl Table {
    pub(super) fn new(max: usize) -> Self {
        Table {
            entries: Vec::new(),
            free: Vec::new(),
            by_key: FxHashMap::default(),
            ends: [Ends { head: NIL, tail: NIL, len: 0 }; 4],
            unconfirmed: 0,
            max,
        }
    }

    pub(super) fn len(&self, list: List) -> usize {
        self.ends[list as usize].len
    }

    pub(super) fn is_full(&self) -> bool {
        self.by_key.len() >= self.max
    }

    /// Records of flows that have been heard from one side only, and of those heard from both.
    pub(super) fn unconfirmed_and_confirmed(&self) -> (usize, usize) {
        (self.unconfirmed, self.by_key.len() - self.unconfirmed)
    }

    pub(super) fn find(&self, key: &FlowKey) -> Option<FlowId> {
        let slot = *self.by_key.get(key)?;
        self.entries.get(slot as usize).map(|e| FlowId { slot, generation: e.generation })
    }

    fn entry(&self, id: FlowId) -> Option<&Entry> {
        self.entries.get(id.slot as usize).filter(|e| e.generation == id.generation)
    }

    pub(super) fn get(&self, id: FlowId) -> Option<&Flow> {
        self.entry(id)?.flow.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.entries.get_mut(id.slot as usize).filter(|e| e.generation == id.generation)?.flow.as_mut()
    }

    pub(super) fn list(&self, id: FlowId) -> Option<List> {
        self.entry(id).map(|e| e.list)
    }

    /// Adds a record at the end of [`List::Waiting`]; `None` when the table is full or has the key.
    pub(super) fn insert(&mut self, flow: Flow) -> Option<FlowId> {
        if self.is_full() || self.by_key.contains_key(&flow.key) {
            return None;
        }
        self.unconfirmed += usize::from(!flow.confirmed);
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.entries.push(Entry {
                    flow: None,
                    generation: 0,
                    list: List::Waiting,
                    prev: NIL,
                    next: NIL,
                });
                self.entries.len() as u32 - 1
            }
        };
        self.by_key.insert(flow.key, slot);
        let entry = &mut self.entries[slot as usize];
        entry.flow = Some(flow);
        let id = FlowId { slot, generation: entry.generation };
        self.push_back(slot, List::Waiting);
        Some(id)
    }

    pub(super) fn remove(&mut self, id: FlowId) -> Option<Flow> {
        self.entry(id)?;
        self.unlink(id.slot);
        let entry = &mut self.entries[id.slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        let flow = entry.flow.take()?;
        self.free.push(id.slot);
        self.by_key.remove(&flow.key);
        self.unconfirmed -= usize::from(!flow.confirmed);
        Some(flow)
    }

    /// Both sides of the flow have been heard.
    pub(super) fn confirm(&mut self, id: FlowId) {
        if let Some(flow) = self.get_mut(id)
            && !flow.confirmed
        {
            flow.confirmed = true;
            self.unconfirmed -= 1;
        }
    }

    /// Moves a record to the end of `list`.
    pub(super) fn move_to(&mut self, id: FlowId, list: List) {
        if self.entry(id).is_some() {
            self.unlink(id.slot);
            self.push_back(id.slot, list);
        }
    }

    /// The record that has been longest on `list`.
    pub(super) fn front(&self, list: List) -> Option<FlowId> {
        let slot = self.ends[list as usize].head;
        self.entries.get(slot as usize).map(|e| FlowId { slot, generation: e.generation })
    }

    /// The record behind this one on its list.
    pub(super) fn after(&self, id: FlowId) -> Option<FlowId> {
        let slot = self.entry(id)?.next;
        self.entries.get(slot as usize).map(|e| FlowId { slot, generation: e.generation })
    }

    /// All records on `list`, in its order. O(n): for once a period, not once a packet.
    pub(super) fn ids(&self, list: List) -> impl Iterator<Item = FlowId> + '_ {
        core::iter::successors(self.front(list), |id| self.after(*id))
    }

    fn push_back(&mut self, slot: u32, list: List) {
        let ends = &mut self.ends[list as usize];
        let last = core::mem::replace(&mut ends.tail, slot);
        ends.len += 1;
        if last == NIL {
            ends.head = slot;
        } else {
            self.entries[last as usize].next = slot;
        }
        let entry = &mut self.entries[slot as usize];
        (entry.list, entry.prev, entry.next) = (list, last, NIL);
    }

    fn unlink(&mut self, slot: u32) {
        let Entry { list, prev, next, .. } = self.entries[slot as usize];
        let ends = &mut self.ends[list as usize];
        ends.len -= 1;
        if prev == NIL {
            ends.head = next;
        } else {
            self.entries[prev as usize].next = next;
        }
        let ends = &mut self.ends[list as usize];
        if next == NIL {
            ends.tail = prev;
        } else {
            self.entries[next as usize].prev = prev;
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
