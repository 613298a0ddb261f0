//! The window during loss recovery: packet conservation for a round, and the window to restore
//! (BBR-21).

use crate::congestion::{Ack, State};

/// The window that BBR restores after losses or ProbeRTT.
#[derive(Clone, Debug, Default)]
pub struct SavedWindow {
    cwnd: u32,
    last_state: State,
    conserving: bool,
}

fn is_recovering(state: State) -> bool {
    matches!(state, State::Recovery | State::Loss)
}

impl SavedWindow {
    /// Saves the window. If `cut` is true or recovery is active, the window may already be reduced. In this case, saves
    /// `cwnd` only if it is larger than the window that was saved before.
    pub fn save(&mut self, cwnd: u32, cut: bool) {
        self.cwnd = if cut || is_recovering(self.last_state) { self.cwnd.max(cwnd) } else { cwnd };
    }

    /// Returns the window to restore.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Called when a timeout has moved the connection to Loss between two ACKs.
    pub fn on_timeout(&mut self) {
        self.last_state = State::Loss;
    }

    /// Returns whether loss recovery was active at the last ACK.
    pub fn is_recovering(&self) -> bool {
        is_recovering(self.last_state)
    }

    /// Stores the recovery state after an ACK, for callers that do not use [`on_ack`](SavedWindow::on_ack).
    pub fn see(&mut self, state: State) {
        self.last_state = state;
    }

    /// Called when a round has passed. Packet conservation ends, and slow start begins.
    pub fn on_round_start(&mut self) {
        self.conserving = false;
    }

    /// Returns the window that recovery sets after this ACK, and whether recovery alone determines the window. When
    /// recovery begins, sets `new_round` to start a round.
    pub fn on_ack(&mut self, ack: &Ack, cwnd: u32, new_round: &mut bool) -> (u32, bool) {
        // Subtracts the losses. After the first round of recovery, slow start adds n segments for an ACK of n segments,
        // so the sender may send 2n segments.
        let mut cwnd = cwnd.saturating_sub(ack.lost).max(1);
        if ack.state == State::Recovery && self.last_state != State::Recovery {
            self.conserving = true;
            *new_round = true;
            // Removes the part of the window that the application left unused.
            cwnd = ack.in_flight.saturating_add(ack.acked);
        } else if is_recovering(self.last_state) && !is_recovering(ack.state) {
            self.conserving = false;
            cwnd = cwnd.max(self.cwnd);
        }
        self.last_state = ack.state;
        if self.conserving {
            return (cwnd.max(ack.in_flight.saturating_add(ack.acked)), true);
        }
        (cwnd, false)
    }
}
