//! The event queue: a 4-ary heap of 16-byte keys, ties broken by order of scheduling.
//!
//! A key holds everything: time (64 bits), sequence number (36), kind (3) and index (25), so that one integer
//! comparison orders two events and nothing is looked up elsewhere. Most events reschedule their own kind (the
//! next packet of a link's flight, the next send of a paced flow), so a pop only leaves a hole at the root, and
//! the push that usually follows fills it with one sift instead of two.

use narrows_control::units::Time;

/// What happens.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The head of a link's flight arrives. Index: link.
    Arrival = 0,
    /// A port with a scheduling queue may transmit its next packet. Index: link.
    Ready = 1,
    /// A retransmission, reordering, probe or delayed-ACK timer. Index: flow slot.
    Timer = 2,
    /// A paced sender may send, or an application has new data. Index: flow slot.
    Send = 3,
    /// A flow or a source of flows starts or stops. Index: plan flow.
    Source = 4,
    /// A rate controller's timer. Index: switch.
    Switch = 5,
    /// A message of the control network arrives, or a domain's controller has something to do. Index: the domain, or beyond
    /// all domains a notice to a source.
    Domain = 6,
    /// Take samples. Index: 0.
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
const SEQ_BITS: u32 = 36;
/// The highest index an event can carry.
pub(crate) const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

/// An event that is due.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at: Time,
    pub(crate) kind: Kind,
    pub(crate) index: u32,
}

/// Pending events, earliest first.
pub(crate) struct EventQueue {
    keys: Vec<u128>,
    /// The root was popped and not yet replaced.
    hole: bool,
    seq: u64,
}

impl EventQueue {
    pub(crate) fn new() -> Self {
        EventQueue { keys: Vec::with_capacity(1024), hole: false, seq: 0 }
    }

    /// Schedules an event. [`Time::NEVER`] is not scheduled at all.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, kind: Kind, index: u32) {
        if at == Time::NEVER {
            return;
        }
        debug_assert!(index <= MAX_INDEX);
        self.seq = (self.seq + 1) & ((1 << SEQ_BITS) - 1);
        let key = (at.as_nanos() as u128) << 64
            | (self.seq as u128) << (INDEX_BITS + KIND_BITS)
            | (kind as u128) << INDEX_BITS
            | (index & MAX_INDEX) as u128;
        if self.hole {
            self.hole = false;
            self.sift_down(key);
        } else {
            self.keys.push(key);
            self.sift_up(self.keys.len() - 1, key);
        }
    }

    /// Takes the earliest event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        if self.hole {
            self.hole = false;
            let last = self.keys.pop()?;
            if self.keys.is_empty() {
                return None;
            }
            self.sift_down(last);
        }
        let key = *self.keys.first()?;
        self.hole = true;
        Some(Event {
            at: Time::from_nanos((key >> 64) as u64),
            kind: KINDS[(key >> INDEX_BITS) as usize & (KINDS.len() - 1)],
            index: key as u32 & MAX_INDEX,
        })
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, key: u128) {
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[at] = self.keys[parent];
            at = parent;
        }
        self.keys[at] = key;
    }

    /// Puts `key` at the root and lets it sink.
    #[inline]
    fn sift_down(&mut self, key: u128) {
        let keys = self.keys.as_mut_slice();
        let len = keys.len();
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            let mut least_key = keys[first];
            for (child, &k) in keys.iter().enumerate().take((first + 4).min(len)).skip(first + 1) {
                if k < least_key {
                    least = child;
                    least_key = k;
                }
            }
            if key <= least_key {
                break;
            }
            keys[at] = least_key;
            at = least;
        }
        keys[at] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_come_out_in_the_order_they_were_scheduled() {
        let mut q = EventQueue::new();
        for i in 0..100 {
            q.push(Time::from_nanos(7), Kind::Arrival, i);
        }
        let order: Vec<u32> = std::iter::from_fn(|| q.pop()).map(|e| e.index).collect();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }

    proptest! {
        /// Any interleaving of pushes and pops gives what a sorted list gives.
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
