//! The velocity: how fast the window follows a target that is far away (section 2.1, step 4).
//!
//! With velocity 1 the window changes by 1/delta packets per RTT. In the steady state, the window reverses its
//! direction every 2.5 RTTs, and the velocity stays 1. If the window moves in one direction for more than `steady_rtts`
//! RTTs, the velocity doubles in each further RTT.

use core::cmp::Ordering;

use crate::congestion::Ack;

/// The velocity and the direction of the window.
#[derive(Clone, Debug)]
pub struct Velocity {
    velocity: u64,
    direction: Ordering,
    /// Number of consecutive RTTs, after the first, in which the window moved in this direction.
    repeated: u32,
    /// The window at the start of the RTT. The ACK of a segment sent after this start ends the RTT.
    start: u64,
    start_delivered: u64,
}

impl Default for Velocity {
    fn default() -> Self {
        Velocity::new(0, 0)
    }
}

impl Velocity {
    /// Starts with velocity 1, in an RTT that begins with this window.
    pub fn new(delivered: u64, cwnd: u64) -> Self {
        Velocity {
            velocity: 1,
            direction: Ordering::Equal,
            repeated: 0,
            start: cwnd,
            start_delivered: delivered,
        }
    }

    /// Returns the velocity.
    pub fn get(&self) -> u64 {
        self.velocity
    }

    /// Returns whether an RTT has ended since the earlier state `then`.
    #[cfg(test)]
    pub(super) fn has_ended(&self, then: &Velocity) -> bool {
        self.start_delivered != then.start_delivered
    }

    /// Called with the direction in which the window moves from now on. If the velocity is above 1, a reversal resets
    /// the velocity to 1 at once and begins a new RTT.
    ///
    /// Deviation: the paper compares windows only once per RTT. Until the next comparison, the window could overshoot
    /// its target by up to its own size, and again on its way back. Meta's `Copa.cpp` resets the velocity in the same
    /// way (`changeDirection`).
    pub fn turn(&mut self, direction: Ordering, delivered: u64, cwnd: u64) {
        if self.velocity > 1 && direction == self.direction.reverse() {
            *self = Velocity { direction, ..Velocity::new(delivered, cwnd) };
        }
    }

    /// Processes an ACK. Returns whether this ACK ended an RTT.
    pub fn on_ack(&mut self, ack: &Ack, cwnd: u64, fastest: u64, steady_rtts: u32) -> bool {
        if ack.rate.prior_delivered < self.start_delivered || ack.rate.delivered == 0 {
            return false;
        }
        // The acknowledged segment was the first of this RTT, so `start` is the window at the time when it was sent.
        let direction = cwnd.cmp(&self.start);
        if direction == self.direction && direction != Ordering::Equal {
            self.repeated += 1;
            if self.repeated >= steady_rtts {
                self.velocity = self.velocity.saturating_mul(2);
            }
        } else {
            self.velocity = 1;
            self.repeated = 0;
        }
        self.velocity = self.velocity.min(fastest).max(1);
        self.direction = direction;
        (self.start, self.start_delivered) = (cwnd, ack.delivered);
        true
    }
}
