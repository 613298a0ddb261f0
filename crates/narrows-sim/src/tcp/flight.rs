//! The segments in flight, and the measurements of their path from ACKs: RTT, delivery rate and losses.
//!
//! `sender` calls `deliver` for each segment that an ACK delivers. `recovery` searches for losses. `transmit` adds
//! segments to the scoreboard.

use narrows_control::congestion::State;
use narrows_control::units::{Span, Time};

use super::control::Control;
use super::rack::Rack;
use super::rtt::Rtt;
use super::sampler::{Draft, Sampler};
use super::scoreboard::{Scoreboard, Segment};

pub(crate) struct Flight {
    pub(crate) board: Scoreboard,
    pub(crate) rtt: Rtt,
    pub(super) sampler: Sampler,
    pub(super) rack: Rack,
}

/// The result of a search for losses.
pub(super) struct Losses {
    /// Whether a retransmission was lost.
    pub(super) retransmission: bool,
    /// The time at which the search is repeated, if no ACK arrives earlier.
    pub(super) timeout: Option<Time>,
}

impl Flight {
    pub(super) fn new() -> Self {
        Flight {
            board: Scoreboard::default(),
            rtt: Rtt::new(),
            sampler: Sampler::default(),
            rack: Rack::new(),
        }
    }

    /// Handles the delivery of a segment.
    #[inline]
    pub(super) fn deliver(&mut self, now: Time, seq: u32, segment: &Segment, draft: &mut Draft) {
        self.sampler.deliver(segment, draft);
        self.rack.deliver(now, seq, segment, self.rtt.min);
    }

    /// Runs RACK's loss detection, and notifies the controller of each lost segment.
    pub(super) fn find_losses(&mut self, now: Time, state: State, control: &mut Control) -> Losses {
        let before = self.board.retrans_out;
        let found = self.rack.detect(now, state, &mut self.board, &self.rtt, |segment| {
            control.cc.on_lost(&self.sampler.record_loss(now, segment), &control.window);
        });
        Losses { retransmission: self.board.retrans_out < before, timeout: found.timeout }
    }

    /// Marks segments as lost after a timeout. Marks the first segment, and each later segment that RACK considers
    /// overdue. SACKed segments are not marked.
    pub(super) fn mark_all_lost(&mut self, now: Time, control: &mut Control) {
        let (una, nxt) = (self.board.una, self.board.nxt());
        for seq in una..nxt {
            let overdue = |sent| self.rack.is_overdue(now, sent, Span::ZERO);
            let is_recent = self.board.get(seq).is_some_and(|s| !overdue(s.sent));
            if (seq == una || !is_recent)
                && let Some(segment) = self.board.mark_lost(seq)
            {
                control.cc.on_lost(&self.sampler.record_loss(now, segment), &control.window);
            }
        }
        self.rack.restart_scan();
    }
}
