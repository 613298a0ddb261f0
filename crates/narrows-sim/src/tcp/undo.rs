//! The state that is needed to undo a window reduction, and the kinds of segments that may be sent after an ACK.
//!
//! `recovery` stores this state when a reduction begins, and reads it at later ACKs.

use crate::packet::SackBlock;

/// The segments that the sender may send after it has processed an ACK.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Rexmit {
    /// Lost segments first, then new data.
    Lost,
    /// New data first, because F-RTO tests whether the new data is acknowledged.
    New,
    /// New data only, because the ACKs of segments that were considered lost have begun to arrive.
    Nothing,
}

/// The state before a window reduction. The sender restores it if the reduction was unnecessary.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// The scoreboard's `una` at the start of the reduction; `None` if the reduction cannot be undone.
    pub(super) marker: Option<u32>,
    /// Number of retransmissions that no DSACK has reported; `None` if nothing was retransmitted.
    pub(super) outstanding: Option<u32>,
    pub(super) prior_cwnd: u32,
    pub(super) prior_ssthresh: u32,
    /// Timestamp of the first retransmission of the episode.
    pub(super) retransmitted_at: Option<u32>,
}

impl Undo {
    /// Handles a DSACK for a segment of this episode (Linux `tcp_check_dsack`).
    pub(super) fn on_dsack(&mut self, block: SackBlock, ack: u32) {
        if self.marker.is_some_and(|m| block.end > m) && block.end <= ack {
            self.outstanding = self.outstanding.map(|n| n.saturating_sub(1));
        }
    }

    pub(super) fn on_retransmit(&mut self, timestamp: u32) {
        self.retransmitted_at.get_or_insert(timestamp);
        self.outstanding = Some(self.outstanding.map_or(1, |n| n + 1));
    }
}
