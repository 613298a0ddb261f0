//! The table of flows. When a flow has ended, a later flow may use its slot.
//!
//! The module `flows` adds a flow when its source starts it, and frees the flow's slot when the flow ends. Packets,
//! events and samples refer to a flow by its slot. Rate controllers refer to a flow by its [`FlowIndex`].

use std::ops::{Index, IndexMut, Range};

use narrows_control::rate::Proto;

use crate::flow::{Flow, FlowIndex};
use crate::packet::{Packet, flag};
use crate::tcp::Scoreboard;

/// Largest number of scoreboards that the table keeps for later flows.
const MOST_BOARDS: usize = 64;
/// Largest number of segments for which a kept scoreboard may have memory.
const MOST_SEGMENTS: usize = 64;

/// The flows of a run. A slot keeps its flow after the flow has ended, until another flow takes the slot.
#[derive(Default)]
pub(super) struct FlowTable {
    flows: Vec<Flow>,
    /// For each slot: the number of flows in this slot that have ended. `live` says whether the slot has a running
    /// flow.
    generations: Vec<u16>,
    live: Vec<bool>,
    free: Vec<u32>,
    /// Empty scoreboards of flows that have ended. Later flows use their memory.
    boards: Vec<Scoreboard>,
    /// Number of the next flow in the results.
    next_id: u32,
}

impl FlowTable {
    /// Reserves a slot for the next flow. Returns the flow's number, the slot and the slot's generation. The caller
    /// then adds the flow by [`insert`](FlowTable::insert).
    pub(super) fn reserve(&mut self) -> (u32, u32, u16) {
        let id = self.next_id;
        self.next_id += 1;
        let slot = self.free.pop().unwrap_or(self.flows.len() as u32);
        if slot as usize == self.flows.len() {
            self.generations.push(0);
            self.live.push(false);
        }
        (id, slot, self.generations[slot as usize])
    }

    /// Adds a flow. The slot must have been reserved for this flow.
    pub(super) fn insert(&mut self, slot: u32, flow: Flow) {
        if slot as usize == self.flows.len() {
            self.flows.push(flow);
        } else {
            self.flows[slot as usize] = flow;
        }
        self.live[slot as usize] = true;
    }

    /// Frees a slot and changes its generation. Packets of the old flow may still be in flight. Because of the new
    /// generation, they are not delivered to the next flow in this slot.
    pub(super) fn free(&mut self, slot: u32) {
        self.live[slot as usize] = false;
        self.generations[slot as usize] = self.generations[slot as usize].wrapping_add(1);
        self.free.push(slot);
    }

    /// Keeps the memory of an ended flow's scoreboard for a later flow. Frees it if it is large, or if enough scoreboards
    /// are kept.
    pub(super) fn keep_board(&mut self, board: Scoreboard) {
        if self.boards.len() < MOST_BOARDS
            && let Some(board) = board.emptied(MOST_SEGMENTS)
        {
            self.boards.push(board);
        }
    }

    /// Returns an empty scoreboard.
    pub(super) fn take_board(&mut self) -> Scoreboard {
        self.boards.pop().unwrap_or_default()
    }

    /// Returns the number of running flows.
    pub(super) fn in_use(&self) -> u64 {
        (self.flows.len() - self.free.len()) as u64
    }

    /// Returns all slots, including free ones.
    pub(super) fn slots(&self) -> Range<u32> {
        0..self.flows.len() as u32
    }

    #[inline]
    pub(super) fn is_live(&self, slot: u32) -> bool {
        self.live[slot as usize]
    }

    pub(super) fn generation(&self, slot: u32) -> u16 {
        self.generations[slot as usize]
    }

    /// Whether the flow with this slot and generation is still running.
    #[inline]
    pub(super) fn is_current(&self, slot: u32, generation: u16) -> bool {
        self.live[slot as usize] && self.generations[slot as usize] == generation
    }

    /// Returns the running flows, in the order of slots.
    pub(super) fn live(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter().zip(&self.live).filter(|(_, live)| **live).map(|(flow, _)| flow)
    }

    pub(super) fn live_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.flows.iter_mut().zip(&self.live).filter(|(_, live)| **live).map(|(flow, _)| flow)
    }

    /// Returns the identity of a packet's flow, as rate controllers see it.
    pub(super) fn key_of(&self, p: &Packet) -> FlowIndex {
        if self.is_current(p.flow, p.generation) {
            return self.flows[p.flow as usize].meta.key;
        }
        // The packet's flow has ended, and another flow may use its slot.
        FlowIndex::of_late_packets(if p.is(flag::UDP) { Proto::Udp } else { Proto::Tcp })
    }

    /// Returns the flow with this identity. Returns `None` if the flow has ended.
    pub(super) fn find(&self, key: &FlowIndex) -> Option<&Flow> {
        let slot = key.slot as usize;
        self.flows.get(slot).filter(|flow| self.live[slot] && flow.meta.key == *key)
    }
}

impl Index<u32> for FlowTable {
    type Output = Flow;

    #[inline]
    fn index(&self, slot: u32) -> &Flow {
        &self.flows[slot as usize]
    }
}

impl IndexMut<u32> for FlowTable {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Flow {
        &mut self.flows[slot as usize]
    }
}
