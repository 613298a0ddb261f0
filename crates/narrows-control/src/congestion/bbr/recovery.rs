//! The window during loss recovery: packet conservation for a round, and what to come back to (BBR-21).

use crate::congestion::{Ack, State};

/// What BBR remembers of the window while losses or ProbeRTT keep it down.
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
    /// Remembers the window, unless it is already cut; then the larger one.
    pub fn save(&mut self, cwnd: u32, cut: bool) {
        self.cwnd = if cut || is_recovering(self.last_state) { self.cwnd.max(cwnd) } else { cwnd };
    }

    /// The window to come back to.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// A timeout moved the connection to Loss between two ACKs.
    pub fn on_timeout(&mut self) {
        self.last_state = State::Loss;
    }

    /// Losses are being repaired, as of the last ACK.
    pub fn is_recovering(&self) -> bool {
        is_recovering(self.last_state)
    }

    /// The state after an ACK, for who does without [`on_ack`](SavedWindow::on_ack).
    pub fn see(&mut self, state: State) {
        self.last_state = state;
    }

    /// A round has passed: from conservation to slow start.
    pub fn on_round_start(&mut self) {
        self.conserving = false;
    }

    /// The window after this ACK as recovery wants it, and whether recovery alone decides about it. `new_round`
    /// is set when recovery begins, as its first round starts now.
    pub fn on_ack(&mut self, ack: &Ack, cwnd: u32, new_round: &mut bool) -> (u32, bool) {
        // An ACK of n segments releases at most 2n: what was lost is taken off here, slow start adds n.
        let mut cwnd = cwnd.saturating_sub(ack.lost).max(1);
        if ack.state == State::Recovery && self.last_state != State::Recovery {
            self.conserving = true;
            *new_round = true;
            // Cuts what the application had left unused.
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
