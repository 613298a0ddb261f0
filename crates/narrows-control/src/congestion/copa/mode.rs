//! The default mode and the competitive mode, and the delta of each mode (section 2.2).
//!
//! Without other traffic, Copa flows empty the queue at least once in five RTTs (section 3). If the queue does not
//! become empty, another flow fills the buffer. In default mode, Copa would get little bandwidth next to such a flow.
//! So in competitive mode, 1/delta grows and shrinks like the window of NewReno.

use super::{Params, UNIT};
use crate::units::{Span, Time};

/// The largest 1/delta. No flow keeps this many packets in a queue.
const LARGEST: u64 = (1 << 30) * UNIT;

/// The mode and 1/delta.
#[derive(Clone, Debug)]
pub struct Mode {
    /// 1/delta in 1/65536 of a packet.
    inverse: u64,
    /// The value of `inverse` in default mode.
    default: u64,
    competitive: bool,
    /// The last time at which the queue was nearly empty.
    empty_at: Time,
    /// Whether there was a loss in the present RTT.
    lost: bool,
}

impl Mode {
    /// Returns the state of the default mode with this 1/delta.
    pub fn new(inverse: u64) -> Self {
        Mode { inverse, default: inverse, competitive: false, empty_at: Time::ZERO, lost: false }
    }

    /// Returns 1/delta, in 1/65536 of a packet.
    pub fn inverse_delta(&self) -> u64 {
        self.inverse
    }

    /// Returns whether the mode is competitive.
    pub fn is_competitive(&self) -> bool {
        self.competitive
    }

    /// Starts to observe the queue at `now`, as if the queue were empty.
    pub fn restart(&mut self, now: Time) {
        self.empty_at = now;
    }

    /// Chooses the mode after an ACK.
    pub fn on_ack(&mut self, now: Time, nearly_empty: bool, srtt: Span, params: &Params) {
        if nearly_empty {
            self.empty_at = now;
        }
        self.competitive = params.compete && now.since(self.empty_at) > srtt.scale(params.empty_rtts, 1);
        if !self.competitive {
            self.inverse = self.default;
        }
    }

    /// Increases 1/delta after an RTT without a loss, as NewReno increases its window.
    pub fn on_rtt(&mut self) {
        if !std::mem::take(&mut self.lost) && self.competitive {
            self.inverse = (self.inverse + UNIT).min(LARGEST);
        }
    }

    /// Halves 1/delta, but at most once per RTT. 1/delta never falls below its default. With the default delta of 0.5,
    /// this is the paper's limit in competitive mode, delta <= 0.5.
    ///
    /// Every loss counts, not only the first loss of a recovery. A small buffer may overflow for the whole recovery,
    /// and 1/delta must not grow during this time.
    pub fn on_loss(&mut self) {
        if !std::mem::replace(&mut self.lost, true) {
            self.inverse = (self.inverse / 2).max(self.default);
        }
    }
}
