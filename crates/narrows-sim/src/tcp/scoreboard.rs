//! The scoreboard. It has one record for each segment, from the first unacknowledged segment to the last segment sent.
//!
//! `transmit` adds segments. ACKs remove or mark them. RACK and timeouts mark lost segments.

use narrows_control::units::Time;

use crate::engine::Ring;
use crate::packet::SackBlock;

const SACKED: u8 = 1;
const LOST: u8 = 1 << 1;
/// The segment's retransmission is in flight.
const RETRANS: u8 = 1 << 2;
const EVER_RETRANS: u8 = 1 << 3;
const APP_LIMITED: u8 = 1 << 4;
const FIN: u8 = 1 << 5;
/// The segment carries the rate option.
const OPTION: u8 = 1 << 6;

/// The record of a segment that was sent and is not cumulatively acknowledged yet.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Time of the last transmission or retransmission.
    pub(crate) sent: Time,
    /// The sampler's state when the segment was last sent. The fields up to `tx_in_flight` belong to this state.
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
    pub(crate) fn was_retransmitted(&self) -> bool {
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

/// The records of the segments in `[una, nxt)`, with the same counters as in Linux.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    segments: Ring<Segment>,
    /// First unacknowledged segment.
    pub(crate) una: u32,
    pub(crate) sacked_out: u32,
    pub(crate) lost_out: u32,
    pub(crate) retrans_out: u32,
    /// No segment below this number is waiting to be retransmitted.
    lost_hint: u32,
    /// Number after the highest SACKed segment.
    pub(crate) high_sacked: u32,
    /// SACK blocks of the previous ACK, which have already been processed.
    known: [SackBlock; 3],
    /// The retransmissions in the order of sending: (time, segment). An entry becomes stale when the segment is
    /// delivered, marked lost or retransmitted again. Readers skip stale entries.
    pub(crate) retransmissions: Ring<(Time, u32)>,
}

impl Scoreboard {
    /// Returns an empty scoreboard that reuses the memory of this one. Returns `None` if the memory has room for more
    /// than `most` segments.
    pub(crate) fn emptied(mut self, most: usize) -> Option<Self> {
        if self.segments.capacity().max(self.retransmissions.capacity()) > most {
            return None;
        }
        self.segments.clear();
        self.retransmissions.clear();
        Some(Scoreboard {
            segments: self.segments,
            retransmissions: self.retransmissions,
            ..Scoreboard::default()
        })
    }

    /// Returns the number of the next new segment.
    #[inline]
    pub(crate) fn nxt(&self) -> u32 {
        self.una + self.segments.len() as u32
    }

    #[inline]
    pub(crate) fn packets_out(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Returns the number of segments in flight. RFC 6675 calls it pipe; this function counts it as Linux does.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        (self.packets_out() + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// Returns the record of a segment in `[una, nxt)`.
    #[inline]
    pub(crate) fn get(&self, seq: u32) -> Option<&Segment> {
        self.segments.get(seq.wrapping_sub(self.una) as usize)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, seq: u32) -> Option<&mut Segment> {
        self.segments.get_mut(seq.wrapping_sub(self.una) as usize)
    }

    /// Adds the record of a segment that is sent for the first time.
    #[inline]
    pub(crate) fn push(&mut self, segment: Segment) {
        self.segments.push_back(segment);
    }

    /// Removes the first segment after its acknowledgement, and returns its record.
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

    /// Marks a segment as SACKed. Returns its record before the change. Returns `None` if it was already SACKed.
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

    /// Returns the parts of a SACK block that the previous ACK did not contain (Linux `recv_sack_cache`).
    pub(crate) fn new_parts(&self, block: SackBlock) -> [SackBlock; 2] {
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

    pub(crate) fn store_blocks(&mut self, blocks: &[SackBlock]) {
        self.known = std::array::from_fn(|i| blocks.get(i).copied().unwrap_or_default());
    }

    /// Marks a segment as lost. If the segment was already retransmitted, marks this retransmission as lost. Returns
    /// `None` if the segment is SACKed or was already marked.
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

    /// Clears all loss marks. Called when a reduction is undone. Retransmissions stay in flight.
    pub(crate) fn unmark_lost(&mut self) {
        for s in &mut self.segments {
            s.flags &= !LOST;
        }
        self.lost_out = 0;
    }

    /// Returns the lowest lost segment whose retransmission is not in flight.
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

    /// Whether the retransmission of this entry of `retransmissions` is still in flight.
    pub(crate) fn is_current(&self, &(sent, seq): &(Time, u32)) -> bool {
        seq >= self.una && self.get(seq).is_some_and(|s| s.is_retransmitted() && s.sent == sent)
    }

    /// Returns the time of the last original transmission before `newest`. A segment counts only if it is below
    /// `above`, is in flight, and was never retransmitted.
    pub(crate) fn last_original_before(&self, newest: (Time, u32), above: u32) -> Option<Time> {
        let sent_before = |seq| {
            let s = self.get(seq)?;
            let in_flight = !s.is_sacked() && !s.is_lost() && !s.was_retransmitted();
            (in_flight && (s.sent, seq) < newest).then_some(s.sent)
        };
        (self.una..above.min(self.nxt())).rev().find_map(sent_before)
    }

    /// Returns the time of the last retransmission before `newest`. Only retransmissions that are still in flight
    /// count.
    pub(crate) fn last_retransmission_before(&self, newest: (Time, u32)) -> Option<Time> {
        let before = self.retransmissions.iter().rev().skip_while(|entry| **entry >= newest);
        before.into_iter().find(|entry| self.is_current(entry)).map(|&(sent, _)| sent)
    }

    /// Records a retransmission.
    pub(crate) fn record_retransmission(&mut self, now: Time, seq: u32) {
        let at = seq.wrapping_sub(self.una) as usize;
        let Some(s) = self.segments.get_mut(at) else { return };
        if !s.is_retransmitted() {
            self.retrans_out += 1;
        }
        s.flags |= RETRANS | EVER_RETRANS;
        s.sent = now;
        self.retransmissions.push_back((now, seq));
    }

    /// Whether a retransmission is in flight, or the first segment has ever been retransmitted (Linux
    /// `tcp_any_retrans_done` without its case for SYNs).
    pub(crate) fn has_retransmissions(&self) -> bool {
        self.retrans_out > 0 || self.segments.front().is_some_and(|s| s.was_retransmitted())
    }

    /// Returns the segments from number `from` on, in order, as (number, record).
    pub(crate) fn segments_from(&self, from: u32) -> impl Iterator<Item = (u32, &Segment)> {
        let skip = from.max(self.una).wrapping_sub(self.una) as usize;
        self.segments.iter().enumerate().skip(skip).map(|(i, s)| (self.una + i as u32, s))
    }
}
