//! The event queue: a 4-ary heap of 16-byte keys. Events at the same time are processed in the order in which they were
//! scheduled.
//!
//! A key holds the complete event: time (64 bits), sequence number (36), kind (3) and index (25). One integer
//! comparison therefore orders two events, without access to other memory.
//!
//! One key stays outside the heap: the front key. After each `pop`, the next event that is scheduled becomes the front
//! key. If an event is scheduled that is earlier than the front key, this event becomes the front key, and the old
//! front key enters the heap. Events that are due soon, such as an arrival at the end of a short link, are therefore
//! usually processed without entering the heap.
//!
//! If the earliest event is in the heap, `pop` fills the place of this event with the front key. This takes one sift.
//! To remove one entry now and to insert the front key later would take two sifts.
//!
//! With few pending events, mispredicted branches cost more than comparisons. The code therefore compares siblings
//! without branches.

use std::hint::select_unpredictable;

use narrows_control::units::Time;

/// The kind of an event.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The first packet in flight on a link arrives. Index: link.
    Arrival = 0,
    /// A port with a scheduling queue may transmit its next packet. Index: link.
    Ready = 1,
    /// A timer of TCP (retransmission, reordering, probe, delayed ACK) or of an external transport expires. Index: flow
    /// slot.
    Timer = 2,
    /// A paced sender may send, an application has new data, or a congestion controller's timer expires. Index: flow
    /// slot.
    Send = 3,
    /// A flow starts or stops, or a source of flows starts or stops. Index: flow plan.
    Source = 4,
    /// A rate controller's timer expires, or an outage of this controller starts or ends. Index: switch.
    Switch = 5,
    /// A message of the control network arrives, an SDN controller's timer expires, or an outage of this controller
    /// starts or ends. Index: SDN controller. An index of `NOTICES_FROM` or more stands for a notice, which is a
    /// message that tells a flow's sender its rate.
    Domain = 6,
    /// Samples are due, the measurement interval starts, or the run checks whether a phase has begun. Index: which of
    /// the three (see `samples`).
    Sample = 7,
}

const KINDS: [Kind; 8] = [
    Kind::Arrival,
    Kind::Ready,
    Kind::Timer,
    Kind::Send,
    Kind::Source,
    Kind::Switch,
    Kind::Domain,
    Kind::Sample,
];
const INDEX_BITS: u32 = 25;
const KIND_BITS: u32 = 3;
/// To increase the sequence number by one, add this value to the lower half of a key. The sequence number is in the
/// upper 36 bits of this half.
const SEQ_STEP: u64 = 1 << (INDEX_BITS + KIND_BITS);
/// The highest index that an event can carry.
pub(crate) const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

/// An event that is due.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at: Time,
    pub(crate) kind: Kind,
    pub(crate) index: u32,
}

/// The key of an empty entry. It is greater than the key of any event.
const NONE: u128 = u128::MAX;

/// Four siblings of the heap, which fill a cache line.
#[derive(Copy, Clone)]
#[repr(align(64))]
struct Siblings([u128; 4]);

impl Siblings {
    /// Returns the position of the least key, and the key itself. A branch on this position would often be
    /// mispredicted, so the code has no such branch.
    #[inline]
    fn least(&self) -> (usize, u128) {
        let [a, b, c, d] = self.0;
        let left = lesser((0, a), (1, b));
        let right = lesser((2, c), (3, d));
        lesser(left, right)
    }
}

#[inline]
fn lesser(a: (usize, u128), b: (usize, u128)) -> (usize, u128) {
    let second = b.1 < a.1;
    (select_unpredictable(second, b.0, a.0), select_unpredictable(second, b.1, a.1))
}

/// Pending events, earliest first.
///
/// The heap is a forest without a common root. The entries of group 0 have no parent. The children of entry `e` are the
/// four siblings in group `e + 1`. The earliest event is either the front key or the least key of group 0.
pub(crate) struct EventQueue {
    /// The front key, or [`NONE`]. `pop` empties this field. Afterwards, it holds the least key that was pushed since
    /// then.
    front: u128,
    /// The first `len` entries contain keys. The other entries are empty.
    heap: Vec<Siblings>,
    len: usize,
    seq: u64,
}

impl EventQueue {
    pub(crate) fn new() -> Self {
        let mut heap = Vec::with_capacity(256);
        heap.push(Siblings([NONE; 4]));
        EventQueue { front: NONE, heap, len: 0, seq: 0 }
    }

    /// Schedules an event. Does nothing if the time is [`Time::NEVER`].
    #[inline]
    pub(crate) fn push(&mut self, at: Time, kind: Kind, index: u32) {
        if at == Time::NEVER {
            return;
        }
        debug_assert!(index <= MAX_INDEX);
        self.seq = self.seq.wrapping_add(SEQ_STEP);
        let low = self.seq | (kind as u64) << INDEX_BITS | (index & MAX_INDEX) as u64;
        let key = (at.as_nanos() as u128) << 64 | low as u128;
        if self.front == NONE {
            self.front = key;
        } else {
            self.add(key);
        }
    }

    /// Removes the earliest event and returns it.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let (at, mut key) = self.heap[0].least();
        if self.front <= key {
            key = std::mem::replace(&mut self.front, NONE);
            if key == NONE {
                return None;
            }
        } else {
            let filler =
                if self.front == NONE { self.last() } else { std::mem::replace(&mut self.front, NONE) };
            // If the removed event was the last entry, no key has to move into its place.
            if filler != key {
                self.sift_down(at, filler);
            }
        }
        Some(Event {
            at: Time::from_nanos((key >> 64) as u64),
            kind: KINDS[(key >> INDEX_BITS) as usize & (KINDS.len() - 1)],
            index: key as u32 & MAX_INDEX,
        })
    }

    /// Returns the time of the earliest event.
    #[cold]
    pub(crate) fn next_at(&self) -> Option<Time> {
        let key = self.heap[0].least().1.min(self.front);
        (key != NONE).then(|| Time::from_nanos((key >> 64) as u64))
    }

    /// Puts an event back that `pop` has just returned. The next call of `pop` returns this event again.
    #[cold]
    pub(crate) fn put_back(&mut self, event: Event) {
        // The sequence number 0 is less than all others, so the event stays before all events at the same time.
        let low = (event.kind as u64) << INDEX_BITS | event.index as u64;
        let key = (event.at.as_nanos() as u128) << 64 | low as u128;
        if self.front == NONE {
            self.front = key;
        } else {
            self.add(key);
        }
    }

    /// Adds `key` when the front key is in use. The earlier of the two keys becomes the front key, and the later one
    /// enters the heap.
    #[inline(never)]
    fn add(&mut self, mut key: u128) {
        if key < self.front {
            std::mem::swap(&mut key, &mut self.front);
        }
        let mut at = self.len;
        self.len += 1;
        if at / 4 == self.heap.len() {
            self.heap.push(Siblings([NONE; 4]));
        }
        while at >= 4 {
            let parent = at / 4 - 1;
            let above = self.heap[parent / 4].0[parent % 4];
            if above <= key {
                break;
            }
            self.heap[at / 4].0[at % 4] = above;
            at = parent;
        }
        self.heap[at / 4].0[at % 4] = key;
    }

    /// Removes the last entry and returns its key. The heap must not be empty.
    #[inline]
    fn last(&mut self) -> u128 {
        self.len -= 1;
        std::mem::replace(&mut self.heap[self.len / 4].0[self.len % 4], NONE)
    }

    /// Puts `key` into the empty entry `at` and sifts it down.
    #[inline]
    fn sift_down(&mut self, mut at: usize, key: u128) {
        while let Some(children) = self.heap.get(at + 1) {
            let (least, least_key) = children.least();
            if key <= least_key {
                break;
            }
            self.heap[at / 4].0[at % 4] = least_key;
            at = 4 * (at + 1) + least;
        }
        self.heap[at / 4].0[at % 4] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_event_that_is_put_back_comes_first_again() {
        let mut q = EventQueue::new();
        for index in [3, 1, 2] {
            q.push(Time::from_nanos(7), Kind::Timer, index);
        }
        for index in [3, 1, 2] {
            let event = q.pop().expect("an event");
            q.put_back(event);
            q.push(Time::from_nanos(8), Kind::Ready, index);
            assert_eq!(q.pop(), Some(event));
            assert_eq!((event.at, event.index), (Time::from_nanos(7), index));
        }
    }

    #[test]
    fn events_at_the_same_time_are_popped_in_the_order_of_scheduling() {
        let mut q = EventQueue::new();
        for i in 0..100 {
            q.push(Time::from_nanos(7), Kind::Arrival, i);
        }
        let order: Vec<u32> = std::iter::from_fn(|| q.pop()).map(|e| e.index).collect();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }

    proptest! {
        /// Any interleaving of pushes and pops gives the same events as a sorted list.
        #[test]
        fn pops_in_order_of_time_then_schedule(ops in prop::collection::vec(prop::option::of(0u64..50), 1..300)) {
            let mut q = EventQueue::new();
            let mut reference: Vec<(u64, u32)> = Vec::new();
            for (n, op) in ops.into_iter().enumerate() {
                match op {
                    Some(t) => {
                        q.push(Time::from_nanos(t), Kind::Timer, n as u32);
                        reference.push((t, n as u32));
                    }
                    None => {
                        reference.sort();
                        let expected = (!reference.is_empty()).then(|| reference.remove(0));
                        let got = q.pop().map(|e| (e.at.as_nanos(), e.index));
                        prop_assert_eq!(got, expected);
                    }
                }
            }
        }
    }
}
