//! What is where: one record per segment between the first unacknowledged and the next to be sent.

use narrows_control::units::Time;

use crate::engine::Ring;
use crate::packet::SackBlock;

const SACKED: u8 = 1;
const LOST: u8 = 1 << 1;
/// Its retransmission is in flight.
const RETRANS: u8 = 1 << 2;
const EVER_RETRANS: u8 = 1 << 3;
const APP_LIMITED: u8 = 1 << 4;
const FIN: u8 = 1 << 5;
/// Carries the rate option.
const OPTION: u8 = 1 << 6;

/// A segment that was sent and is not yet cumulatively acknowledged (40 bytes).
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Last (re)transmission.
    pub(crate) sent: Time,
    /// Snapshot of the delivery-rate sampler at that moment.
    pub(crate) first_sent: Time,
    pub(crate) delivered_time: Time,
    pub(crate) delivered: u32,
    pub(crate) lost_before: u32,
    pub(crate) tx_in_flight: u32,
    /// Payload bytes.
    pub(crate) len: u16,
    flags: u8,
}

impl Segment {
    pub(crate) fn new(now: Time, len: u16, fin: bool, option: bool) -> Self {
        let flags = if fin { FIN } else { 0 } | if option { OPTION } else { 0 };
        Segment {
            sent: now,
            first_sent: now,
            delivered_time: now,
            delivered: 0,
            lost_before: 0,
            tx_in_flight: 0,
            len,
            flags,
        }
    }
    pub(crate) fn is_sacked(&self) -> bool {
        self.flags & SACKED != 0
    }
    pub(crate) fn is_lost(&self) -> bool {
        self.flags & LOST != 0
    }
    pub(crate) fn is_retransmitted(&self) -> bool {
        self.flags & RETRANS != 0
    }
    pub(crate) fn ever_retransmitted(&self) -> bool {
        self.flags & EVER_RETRANS != 0
    }
    pub(crate) fn is_app_limited(&self) -> bool {
        self.flags & APP_LIMITED != 0
    }
    pub(crate) fn is_fin(&self) -> bool {
        self.flags & FIN != 0
    }
    pub(crate) fn has_option(&self) -> bool {
        self.flags & OPTION != 0
    }
    pub(crate) fn set_app_limited(&mut self, on: bool) {
        self.flags = if on { self.flags | APP_LIMITED } else { self.flags & !APP_LIMITED };
    }
}

/// The segments in `[una, nxt)` and Linux's counters over them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    segments: Ring<Segment>,
    /// First unacknowledged segment.
    pub(crate) una: u32,
    pub(crate) sacked_out: u32,
    pub(crate) lost_out: u32,
    pub(crate) retrans_out: u32,
    /// No segment below this is lost and waiting for retransmission.
    lost_hint: u32,
    /// Highest SACKed segment + 1.
    pub(crate) high_sacked: u32,
    /// SACK blocks of the previous ACK, already processed.
    known: [SackBlock; 3],
    /// Segments that were retransmitted, in order of time: (time, number). Stale entries are skipped.
    pub(crate) retransmissions: Ring<(Time, u32)>,
}

impl Scoreboard {
    /// Next segment to be sent for the first time.
    #[inline]
    pub(crate) fn nxt(&self) -> u32 {
        self.una + self.segments.len() as u32
    }

    #[inline]
    pub(crate) fn packets_out(&self) -> u32 {
        self.segments.len() as u32
    }

    /// RFC 6675 pipe, as Linux counts it.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        (self.packets_out() + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// The record of a segment in `[una, nxt)`.
    #[inline]
    pub(crate) fn get(&self, seq: u32) -> Option<&Segment> {
        self.segments.get(seq.wrapping_sub(self.una) as usize)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, seq: u32) -> Option<&mut Segment> {
        self.segments.get_mut(seq.wrapping_sub(self.una) as usize)
    }

    /// Adds a segment that is sent for the first time.
    #[inline]
    pub(crate) fn push(&mut self, segment: Segment) {
        self.segments.push_back(segment);
    }

    /// Takes the first segment off because it was acknowledged.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Segment> {
        let s = self.segments.pop_front()?;
        self.una += 1;
        self.sacked_out -= s.is_sacked() as u32;
        self.lost_out -= s.is_lost() as u32;
        self.retrans_out -= s.is_retransmitted() as u32;
        if self.segments.is_empty() {
            self.retransmissions.clear();
        }
        Some(s)
    }

    /// Marks a segment SACKed; returns it as it was if it was not SACKed before.
    pub(crate) fn sack(&mut self, seq: u32) -> Option<Segment> {
        let at = seq.wrapping_sub(self.una) as usize;
        let s = self.segments.get_mut(at)?;
        if s.is_sacked() {
            return None;
        }
        let was = s.clone();
        s.flags = (s.flags | SACKED) & !(LOST | RETRANS);
        self.sacked_out += 1;
        self.lost_out -= was.is_lost() as u32;
        self.retrans_out -= was.is_retransmitted() as u32;
        self.high_sacked = self.high_sacked.max(seq + 1);
        Some(was)
    }

    /// The parts of a SACK block that the previous ACK did not carry (Linux `recv_sack_cache`).
    pub(crate) fn news(&self, block: SackBlock) -> [SackBlock; 2] {
        let empty = SackBlock::default();
        let overlap =
            self.known.iter().find(|k| k.start < k.end && k.start < block.end && block.start < k.end);
        match overlap {
            None => [block, empty],
            Some(k) => [
                SackBlock { start: block.start, end: k.start.max(block.start) },
                SackBlock { start: k.end.min(block.end), end: block.end },
            ],
        }
    }

    pub(crate) fn remember(&mut self, blocks: &[SackBlock]) {
        self.known = std::array::from_fn(|i| blocks.get(i).copied().unwrap_or_default());
    }

    /// Marks a segment lost; returns it if that is news (also for the loss of a retransmission).
    pub(crate) fn mark_lost(&mut self, seq: u32) -> Option<&Segment> {
        let at = seq.wrapping_sub(self.una) as usize;
        let s = self.segments.get_mut(at)?;
        if s.is_sacked() || (s.is_lost() && !s.is_retransmitted()) {
            return None;
        }
        if s.is_lost() {
            s.flags &= !RETRANS;
            self.retrans_out -= 1;
        } else {
            s.flags |= LOST;
            self.lost_out += 1;
        }
        self.lost_hint = self.lost_hint.min(seq);
        Some(s)
    }

    /// Undo: nothing is lost after all. Retransmissions stay in flight.
    pub(crate) fn unmark_lost(&mut self) {
        for s in &mut self.segments {
            s.flags &= !LOST;
        }
        self.lost_out = 0;
    }

    /// The lowest lost segment whose retransmission is not in flight.
    pub(crate) fn next_lost(&mut self) -> Option<u32> {
        if self.lost_out == 0 {
            return None;
        }
        let mut seq = self.lost_hint.max(self.una);
        while seq < self.nxt() {
            if self.get(seq).is_some_and(|s| s.is_lost() && !s.is_retransmitted()) {
                self.lost_hint = seq;
                return Some(seq);
            }
            seq += 1;
        }
        self.lost_hint = seq;
        None
    }

    /// Whether an entry of `retransmissions` is about what is in flight.
    pub(crate) fn is_current(&self, &(sent, seq): &(Time, u32)) -> bool {
        seq >= self.una && self.get(seq).is_some_and(|s| s.is_retransmitted() && s.sent == sent)
    }

    /// When the last segment below `above` that was sent once only, before `newest`, and is in flight, was sent.
    pub(crate) fn last_original_before(&self, newest: (Time, u32), above: u32) -> Option<Time> {
        let waits = |seq| {
            let s = self.get(seq)?;
            let waits = !s.is_sacked() && !s.is_lost() && !s.ever_retransmitted();
            (waits && (s.sent, seq) < newest).then_some(s.sent)
        };
        (self.una..above.min(self.nxt())).rev().find_map(waits)
    }

    /// When the last segment that was retransmitted before `newest`, and is in flight, was sent.
    pub(crate) fn last_retransmission_before(&self, newest: (Time, u32)) -> Option<Time> {
        let before = self.retransmissions.iter().rev().skip_while(|entry| **entry >= newest);
        before.into_iter().find(|entry| self.is_current(entry)).map(|&(sent, _)| sent)
    }

    /// Books a retransmission.
    pub(crate) fn retransmit(&mut self, now: Time, seq: u32) {
        let at = seq.wrapping_sub(self.una) as usize;
        let Some(s) = self.segments.get_mut(at) else { return };
        if !s.is_retransmitted() {
            self.retrans_out += 1;
        }
        s.flags |= RETRANS | EVER_RETRANS;
        s.sent = now;
        self.retransmissions.push_back((now, seq));
    }

    /// Any retransmission in flight or lost again (Linux `tcp_any_retrans_done`, without its SYN case).
    pub(crate) fn any_retransmitted(&self) -> bool {
        self.retrans_out > 0 || self.segments.front().is_some_and(|s| s.ever_retransmitted())
    }

    /// Segments that are neither SACKed nor lost and were sent once, from `from` on, in order: (number, time).
    pub(crate) fn originals(&self, from: u32) -> impl Iterator<Item = (u32, &Segment)> {
        let skip = from.max(self.una).wrapping_sub(self.una) as usize;
        self.segments.iter().enumerate().skip(skip).map(|(i, s)| (self.una + i as u32, s))
    }
}
