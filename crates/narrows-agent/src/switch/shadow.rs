//! The loop's record of a slot: the counts and events that were reported to the controller.

use narrows_control::feedback::code::RateCode;
use narrows_control::rate::aggregate::{Counts, FlowHandle};
use narrows_control::rate::{FlowKey, Leaf};
use narrows_control::units::{Bytes, Span, Time};

use super::table::{Flags, Head, Orders, Tail};

/// Only one of this many consecutive reports of a flow has an RTT sample. This is enough because the RTT changes
/// slowly. Each sample makes the loop read one more cache line.
const RTT_EVERY: u8 = 8;

/// The record of one slot. It has the data that every tick reads, and fits into one cache line. The flow's key is in
/// [`Openings`].
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    pub(super) handle: Option<FlowHandle>,
    pub(super) opened: Time,
    bytes: u64,
    /// Events that are already reported.
    pub(super) flags: Flags,
    missing: u32,
    /// When data or other activity was last reported, in ms (wraps).
    seen_ms: u32,
    rtt_us: u32,
    code: RateCode,
    marked_unlimited: u16,
    marked_limited: u16,
    passed_n: u16,
    rtt_receiver_n: u16,
    rtt_sender_n: u16,
    /// The [`Leaf`] as a number.
    leaf: u8,
    until_rtt: u8,
    port: u8,
}

const _: () = assert!(size_of::<Option<Shadow>>() <= 64);

fn ms(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

impl Shadow {
    /// Returns the record of a new slot. Nothing is reported yet.
    pub(super) fn new(now: Time, slot: u32, port: u8, flags: Flags, tail: &Tail) -> Self {
        let opening = Flags::RATED.0
            | Flags::GUESSED.0
            | Flags::OPENED_BY_RECEIVER.0
            | Flags::SYN_REPEATED.0
            | Flags::ADOPTED.0
            | Flags::CONFIRMED.0
            | Flags::LIVE.0;
        let leaf = if flags.has(Flags::RATED) { Leaf::Elephant } else { Leaf::OtherTcp };
        Shadow {
            handle: None,
            opened: now,
            bytes: 0,
            flags: Flags(flags.0 & opening),
            missing: 0,
            seen_ms: ms(now),
            rtt_us: 0,
            code: RateCode::from_bits(tail.code),
            marked_unlimited: 0,
            marked_limited: 0,
            passed_n: 0,
            rtt_receiver_n: tail.rtt_receiver.1,
            rtt_sender_n: tail.rtt_sender.1,
            leaf: leaf as u8,
            // The slots start at different values, so that the loop does not read the RTT of all flows in the same
            // tick.
            until_rtt: (slot % u32::from(RTT_EVERY)) as u8,
            port,
        }
    }

    /// Marks the flow as older than this agent. The loop then does not report the flow's present counts as new, and
    /// treats the flow's orders as unknown.
    pub(super) fn inherit(&mut self, head: &Head, tail: &Tail) {
        (self.bytes, self.missing) = (head.bytes, head.missing);
        (self.marked_unlimited, self.marked_limited) = (tail.marked_unlimited, tail.marked_limited);
        self.passed_n = tail.passed.1;
        // This value differs from every RTT by more than an eighth, so that the first order is written.
        self.rtt_us = u32::MAX;
    }

    /// Returns the number of the flow's port.
    pub(super) fn port(&self) -> usize {
        usize::from(self.port)
    }

    /// Returns the program's orders for the flow.
    pub(super) fn orders(&self) -> Orders {
        let leaf = match self.leaf {
            0 => Leaf::Mouse,
            1 => Leaf::Elephant,
            2 => Leaf::OtherTcp,
            _ => Leaf::Udp,
        };
        Orders { code: self.code, leaf, rtt_us: self.rtt_us }
    }

    /// Stores new orders, and returns whether they must be written. If only the RTT has changed, the orders must be
    /// written only if the change exceeds an eighth.
    pub(super) fn order(&mut self, orders: Orders) -> bool {
        let moved = orders.rtt_us.abs_diff(self.rtt_us) > self.rtt_us / 8;
        let news = moved || (orders.code, orders.leaf as u8) != (self.code, self.leaf);
        if news {
            (self.code, self.leaf, self.rtt_us) = (orders.code, orders.leaf as u8, orders.rtt_us);
        }
        news
    }

    /// Returns the L3 bytes that are already reported.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether there is data to report.
    pub(super) fn has_news(&self, head: &Head) -> bool {
        head.bytes != self.bytes
    }

    /// Records that the flow is reported now.
    pub(super) fn see(&mut self, now: Time) {
        self.seen_ms = ms(now);
    }

    /// Returns the time since the last report.
    pub(super) fn unseen(&self, now: Time) -> Span {
        Span::from_millis(u64::from(ms(now).wrapping_sub(self.seen_ms)))
    }

    /// Returns the counts since the last report, which was at `since`, and records them as reported.
    pub(super) fn report(&mut self, since: Time, head: &Head, tail: &Tail) -> Counts {
        let mut counts = Counts {
            since: since.max(self.opened),
            bytes: Bytes::new(head.bytes.wrapping_sub(self.bytes)),
            missing: Bytes::new(u64::from(head.missing.wrapping_sub(self.missing))),
            unlimited: tail.marked_unlimited != self.marked_unlimited,
            limited: tail.marked_limited != self.marked_limited,
            ..Counts::default()
        };
        if tail.passed.1 != self.passed_n {
            counts.passed = RateCode::from_bits(tail.passed.0).decode();
        }
        self.until_rtt = self.until_rtt.wrapping_sub(1);
        if self.until_rtt >= RTT_EVERY {
            self.until_rtt = RTT_EVERY - 1;
            let sample = |(us, n): (u32, u16), before: &mut u16| {
                let fresh = core::mem::replace(before, n) != n;
                fresh.then(|| Span::from_micros(u64::from(us)))
            };
            counts.receiver_half = sample(tail.rtt_receiver, &mut self.rtt_receiver_n);
            counts.sender_half = sample(tail.rtt_sender, &mut self.rtt_sender_n);
        }
        (self.bytes, self.missing) = (head.bytes, head.missing);
        (self.marked_unlimited, self.marked_limited) = (tail.marked_unlimited, tail.marked_limited);
        self.passed_n = tail.passed.1;
        counts
    }
}

/// Data of a flow that are needed only at its start and end, and for display.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    pub(super) key: FlowKey,
    /// L3 bytes of data that the program had counted when the loop opened the slot.
    pub(super) bytes: u64,
}

/// The flows' openings, by slot.
#[derive(Debug)]
pub(super) struct Openings(Vec<Option<Opening>>);

impl Openings {
    /// Returns a table for this many slots.
    pub(super) fn new(slots: u32) -> Self {
        Openings(vec![None; slots as usize])
    }

    pub(super) fn set(&mut self, slot: u32, opening: Opening) {
        if let Some(place) = self.0.get_mut(slot as usize) {
            *place = Some(opening);
        }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Opening> {
        self.0.get(slot as usize)?.as_ref()
    }
}
