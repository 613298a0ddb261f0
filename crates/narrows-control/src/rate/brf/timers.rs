//! Deadlines of single flows. A flow has only a few deadlines in its life.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::table::FlowId;
use crate::units::Time;

/// The kind of a deadline.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// Before this deadline, packets of both sides should have been seen (BRF-15).
    Confirmation,
    /// Before this deadline, an ACK of the flow should have passed this switch (BRF-63).
    FirstAck,
    /// Before this deadline, an ACK of the newcomer's data should have passed this switch (BRF-34).
    FirstFeedback,
    /// At this deadline, late retransmissions of the closed flow have passed, so its record can be removed (BRF-15).
    Removal,
}

/// Deadlines, earliest first. Deadlines of removed flows are dropped when they expire.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Time, FlowId, Due)>>,
}

impl Timers {
    pub(super) fn set(&mut self, at: Time, id: FlowId, due: Due) {
        self.heap.push(Reverse((at, id, due)));
    }

    pub(super) fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }

    /// Removes and returns the earliest deadline that has passed, if there is one.
    pub(super) fn pop(&mut self, now: Time) -> Option<(FlowId, Due)> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, id, due))| (id, due))
    }
}
