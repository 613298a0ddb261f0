//! RACK finds lost segments (RFC 8985, Linux `tcp_recovery.c`). RACK considers a segment lost if two conditions hold:
//!
//! * A segment that was sent later has been delivered.
//! * The RTT plus a reordering window has passed since the segment itself was sent.
//!
//! `flight` calls `deliver` for each segment that an ACK delivers. `recovery` searches for losses after ACKs that may
//! indicate a loss, and when the reordering timer expires.

use narrows_control::congestion::State;
use narrows_control::units::{Span, Time};

use super::rtt::Rtt;
use super::scoreboard::{Scoreboard, Segment};

/// DupThresh of RFC 8985, which is also Linux's initial degree of reordering.
const REORDERING_SEGMENTS: u32 = 3;
/// After a DSACK, the enlarged reordering window is kept for this many recoveries (RFC 8985 section 7.2).
const PERSIST_RECOVERIES: u8 = 16;

/// State of the detector.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Transmission time of the newest delivered segment, which is the delivered segment that was sent last. `seq` is
    /// the number of this segment.
    sent: Time,
    seq: u32,
    /// RTT of the segment that was delivered last.
    rtt: Span,
    advanced: bool,
    /// Whether segments have been reordered on this connection.
    pub(crate) reordering_seen: bool,
    /// Number after the highest delivered segment, to detect reordering. `prior_fack` is the value before the current
    /// ACK.
    fack: u32,
    prior_fack: u32,
    window_mult: u32,
    persist: u8,
    dsack_round: Option<u32>,
    dsack_seen: bool,
    /// Each segment below this number is SACKed, is marked lost, or was retransmitted.
    scan: u32,
}

/// The result of loss detection.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Detection {
    pub(crate) newly_lost: u32,
    /// RACK waits for the segments in flight that were sent before the newest delivered segment. At `timeout`, all of
    /// these segments are overdue, and RACK must check for losses again. `None` if there are no such segments.
    pub(crate) timeout: Option<Time>,
}

impl Rack {
    pub(crate) fn new() -> Self {
        Rack {
            sent: Time::ZERO,
            seq: 0,
            rtt: Span::ZERO,
            advanced: false,
            reordering_seen: false,
            fack: 0,
            prior_fack: 0,
            window_mult: 1,
            persist: 0,
            dsack_round: None,
            dsack_seen: false,
            scan: 0,
        }
    }

    /// Starts the processing of an ACK. An ACK does not tell in which order its segments arrived, so RACK does not
    /// compare the segments of one ACK with each other (Linux `prior_fack`). Example: a receiver delays the ACK of an
    /// in-order segment, and the next segment arrives out of order. One ACK then reports both segments.
    #[inline]
    pub(crate) fn begin_ack(&mut self) {
        self.prior_fack = self.fack;
    }

    /// Handles the delivery of a segment (RFC 8985 section 6.2 step 2).
    #[inline]
    pub(crate) fn deliver(&mut self, now: Time, seq: u32, segment: &Segment, min_rtt: Span) {
        if seq < self.prior_fack && !segment.was_retransmitted() {
            // Step 3: this original transmission arrived after a higher segment, so the network has reordered packets.
            self.reordering_seen = true;
        }
        self.fack = self.fack.max(seq + 1);
        let rtt = now.since(segment.sent);
        // If the RTT is below the minimum, the ACK must be for the original transmission. It merely arrived after the
        // retransmission was sent. Such an RTT says nothing about the retransmission.
        if segment.was_retransmitted() && rtt < min_rtt {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if (segment.sent, seq) > (self.sent, self.seq) {
            (self.sent, self.seq) = (segment.sent, seq);
        }
    }

    /// Records a DSACK. It shows that the reordering window was too small (section 7.2). `adapt_window` then enlarges
    /// the window, but at most once per round trip.
    pub(crate) fn on_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// Adapts the reordering window. Called once per ACK.
    pub(crate) fn adapt_window(&mut self, una: u32, nxt: u32) {
        if self.dsack_round.is_some_and(|round| una < round) {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.dsack_seen = false;
            self.dsack_round = Some(nxt);
            self.window_mult = (self.window_mult + 1).min(255);
            self.persist = PERSIST_RECOVERIES;
        }
    }

    /// Handles the end of a recovery.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.window_mult = 1;
        }
    }

    /// Returns the reordering window (section 6.2 step 4).
    pub(crate) fn window(&self, state: State, sacked_out: u32, rtt: &Rtt) -> Span {
        let is_certain = matches!(state, State::Recovery | State::Loss) || sacked_out >= REORDERING_SEGMENTS;
        if !self.reordering_seen && is_certain {
            return Span::ZERO;
        }
        if rtt.min == Span::MAX {
            return Span::ZERO;
        }
        rtt.min.scale(self.window_mult as u64, 4).min(rtt.srtt)
    }

    /// Restarts the scan from the first segment. Called when an undo or a timeout has changed the loss marks.
    pub(crate) fn restart_scan(&mut self) {
        self.advanced = true;
        self.scan = 0;
    }

    /// Whether a segment that was sent at `sent` is overdue: the RTT and the reordering window have passed since then.
    pub(crate) fn is_overdue(&self, now: Time, sent: Time, window: Span) -> bool {
        now >= sent + self.rtt + window
    }

    /// Step 5: marks the lost segments, and calls `on_lost` for each. Original transmissions are scanned in the order
    /// of their numbers, and retransmissions in the order in which they were sent. Each scan ends at the first segment
    /// that is not overdue. The returned timeout is the time at which all remaining segments are overdue. (Linux scans
    /// a single list, which is sorted by time.)
    pub(crate) fn detect(
        &mut self,
        now: Time,
        state: State,
        board: &mut Scoreboard,
        rtt: &Rtt,
        mut on_lost: impl FnMut(&Segment),
    ) -> Detection {
        let mut found = Detection::default();
        if !self.advanced {
            return found;
        }
        self.advanced = false;
        let window = self.window(state, board.sacked_out, rtt);
        let newest = (self.sent, self.seq);

        let mut lost_until = self.scan.max(board.una);
        let mut due = None;
        for (seq, s) in board.segments_from(self.scan) {
            if s.is_sacked() || s.is_lost() || s.was_retransmitted() {
                lost_until = seq + 1;
                continue;
            }
            if (s.sent, seq) >= newest {
                break;
            }
            if !self.is_overdue(now, s.sent, window) {
                // Original transmissions are sent in the order of their numbers. If the newest delivered segment is an
                // original transmission, original transmissions with higher numbers were therefore sent after it.
                let original = board.get(self.seq).is_some_and(|s| !s.was_retransmitted());
                let above = if original { self.seq } else { board.nxt() };
                due = board.last_original_before(newest, above).map(|sent| sent + self.rtt + window);
                break;
            }
            lost_until = seq + 1;
        }
        for seq in self.scan.max(board.una)..lost_until {
            let original =
                board.get(seq).is_some_and(|s| !s.is_sacked() && !s.is_lost() && !s.was_retransmitted());
            if original && let Some(segment) = board.mark_lost(seq) {
                on_lost(segment);
                found.newly_lost += 1;
            }
        }
        self.scan = lost_until;

        while let Some(&(sent, seq)) = board.retransmissions.front() {
            if board.is_current(&(sent, seq)) {
                if (sent, seq) >= newest {
                    break;
                }
                if !self.is_overdue(now, sent, window) {
                    let last = board.last_retransmission_before(newest).unwrap_or(sent);
                    let at = last + self.rtt + window;
                    due = Some(due.map_or(at, |d: Time| d.max(at)));
                    break;
                }
                if let Some(segment) = board.mark_lost(seq) {
                    on_lost(segment);
                    found.newly_lost += 1;
                }
            }
            board.retransmissions.pop_front();
        }
        found.timeout = due;
        if due.is_some() {
            // When the timer expires, detection must run again, even if no segment has been delivered since this
            // detection.
            self.advanced = true;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vector TV-S13: min_rtt is 40 ms, and the reordering window is 10 ms. Two segments are sent, at 0 and 2 ms.
    /// The second is delivered at 42 ms, and the first is marked lost at 50 ms.
    #[test]
    fn a_segment_is_lost_one_reordering_window_after_the_delivery_of_a_later_one() {
        let ms = |n| Time::ZERO + Span::from_millis(n);
        let mut board = Scoreboard::default();
        board.push(Segment::new(ms(0), 1448, false, false));
        board.push(Segment::new(ms(2), 1448, false, false));
        let mut rtt = Rtt::new();
        rtt.sample(Span::from_millis(40));
        let mut rack = Rack::new();
        let delivered = board.sack(1).unwrap();
        rack.deliver(ms(42), 1, &delivered, rtt.min);
        assert_eq!(rack.window(State::Disorder, board.sacked_out, &rtt), Span::from_millis(10));
        let early = rack.detect(ms(42), State::Disorder, &mut board, &rtt, |_| ());
        assert_eq!(early, Detection { newly_lost: 0, timeout: Some(ms(50)) });
        assert_eq!(rack.detect(ms(49), State::Disorder, &mut board, &rtt, |_| ()).newly_lost, 0);
        assert_eq!(rack.detect(ms(50), State::Disorder, &mut board, &rtt, |_| ()).newly_lost, 1);
        assert!(board.get(0).unwrap().is_lost());
    }

    /// As in Linux, the timeout is the latest of the times at which the remaining segments become overdue
    /// (`tcp_rack_detect_loss`: max_t(*reo_timeout, remaining)).
    #[test]
    fn the_timeout_is_for_the_last_segment_that_is_not_overdue() {
        let ms = |n| Time::ZERO + Span::from_millis(n);
        let mut board = Scoreboard::default();
        for sent in [0, 1, 2, 4] {
            board.push(Segment::new(ms(sent), 1448, false, false));
        }
        let mut rtt = Rtt::new();
        rtt.sample(Span::from_millis(40));
        let mut rack = Rack::new();
        let delivered = board.sack(2).unwrap();
        rack.deliver(ms(42), 2, &delivered, rtt.min);
        let found = rack.detect(ms(42), State::Disorder, &mut board, &rtt, |_| ());
        assert_eq!(
            found,
            Detection { newly_lost: 0, timeout: Some(ms(51)) },
            "segment 3 was sent after the newest delivery"
        );
        let found = rack.detect(ms(50), State::Disorder, &mut board, &rtt, |_| ());
        assert_eq!(found, Detection { newly_lost: 1, timeout: Some(ms(51)) });

        // Segments 0 and 1 are retransmitted, and segment 4 is delivered.
        board.mark_lost(1);
        board.record_retransmission(ms(50), 0);
        board.record_retransmission(ms(51), 1);
        board.push(Segment::new(ms(52), 1448, false, false));
        rack.reordering_seen = true;
        let delivered = board.sack(4).unwrap();
        rack.deliver(ms(92), 4, &delivered, rtt.min);
        let found = rack.detect(ms(92), State::Recovery, &mut board, &rtt, |_| ());
        assert_eq!(
            found,
            Detection { newly_lost: 1, timeout: Some(ms(101)) },
            "segment 3, sent at 4 ms, is lost by now"
        );
    }

    #[test]
    fn an_ack_for_a_segment_and_an_out_of_order_one_is_not_reordering() {
        let ms = |n| Time::ZERO + Span::from_millis(n);
        let segment = Segment::new(ms(0), 1448, false, false);
        let mut rack = Rack::new();
        // The ACK of segment 0 is delayed, and segment 2 arrives before segment 1. One ACK then acknowledges segment 0
        // and SACKs segment 2. SACKs are processed first.
        rack.begin_ack();
        rack.deliver(ms(40), 2, &segment, Span::from_millis(40));
        rack.deliver(ms(40), 0, &segment, Span::from_millis(40));
        assert!(!rack.reordering_seen);
        rack.begin_ack();
        rack.deliver(ms(41), 1, &segment, Span::from_millis(40));
        assert!(rack.reordering_seen, "an original transmission that a later ACK reports has arrived late");
    }

    #[test]
    fn a_lost_retransmission_is_detected() {
        let ms = |n| Time::ZERO + Span::from_millis(n);
        let mut board = Scoreboard::default();
        for i in 0..4 {
            board.push(Segment::new(ms(i), 1448, false, false));
        }
        let mut rtt = Rtt::new();
        rtt.sample(Span::from_millis(40));
        let mut rack = Rack::new();
        for seq in 1..4 {
            let s = board.sack(seq).unwrap();
            rack.deliver(ms(40 + seq as u64), seq, &s, rtt.min);
        }
        assert_eq!(rack.detect(ms(43), State::Disorder, &mut board, &rtt, |_| ()).newly_lost, 1);
        board.record_retransmission(ms(43), 0);
        board.push(Segment::new(ms(44), 1448, false, false));
        let s = board.sack(4).unwrap();
        rack.deliver(ms(84), 4, &s, rtt.min);
        assert_eq!(rack.detect(ms(84), State::Recovery, &mut board, &rtt, |_| ()).newly_lost, 1);
        assert_eq!((board.lost_out, board.retrans_out), (1, 0));
    }
}
