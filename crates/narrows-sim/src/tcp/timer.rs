//! The state of the sender's timer. `recovery` sets the timer, and `transmit` handles its expiry.

use narrows_control::units::Time;

/// The purpose of the timer, and the time at which it expires.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Off,
    Retransmit(Time),
    /// The timer of a tail loss probe.
    Probe(Time),
    /// RACK's reordering timer. It expires when segments are overdue.
    Reordering(Time),
}

impl Timer {
    pub(super) fn at(self) -> Time {
        match self {
            Timer::Off => Time::NEVER,
            Timer::Retransmit(t) | Timer::Probe(t) | Timer::Reordering(t) => t,
        }
    }

    /// Sets RACK's timer, which replaces any other timer. If `at` is `None`, turns RACK's timer off, but no other
    /// timer.
    pub(super) fn set_reordering(&mut self, at: Option<Time>) {
        if let Some(at) = at {
            *self = Timer::Reordering(at);
        } else if let Timer::Reordering(_) = *self {
            *self = Timer::Off;
        }
    }
}
