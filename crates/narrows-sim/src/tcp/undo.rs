//! Stores the state that is needed to undo a window reduction. Also defines which segments may be sent after an ACK.
//!
//! `recovery` writes this state when a reduction begins, and reads it at later ACKs.

use crate::packet::SackBlock;

/// The segments that the sender may send after an ACK.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Rexmit {
    /// Lost segments first, then new data.
    Lost,
    /// New data first. F-RTO then tests whether this data is acknowledged.
    New,
    /// Only new data. ACKs have begun to arrive for segments that were considered lost, so no more are retransmitted.
    Nothing,
}

/// The state before a window reduction. The sender restores this state if the reduction was unnecessary.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// The scoreboard's `una` at the start of the reduction; `None` if the reduction cannot be undone.
    pub(super) marker: Option<u32>,
    /// Number of retransmissions that no DSACK has reported yet. `None` if nothing was retransmitted.
    pub(super) outstanding: Option<u32>,
    pub(super) prior_cwnd: u32,
    pub(super) prior_ssthresh: u32,
    /// Timestamp of the first retransmission in the current episode of loss.
    pub(super) retransmitted_at: Option<u32>,
}

impl Undo {
    /// Handles a DSACK. If it is for a segment of this reduction, counts it (Linux `tcp_check_dsack`).
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
