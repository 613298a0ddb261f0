//! The state of the sender's timer. `recovery` sets the timer, and `transmit` handles its expiry.

use narrows_control::units::Time;

/// Purpose and expiry of the timer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Off,
    Retransmit(Time),
    /// Tail loss probe.
    Probe(Time),
    /// RACK's reordering timer: expires when a segment is overdue.
    Reordering(Time),
}

impl Timer {
    pub(super) fn at(self) -> Time {
        match self {
            Timer::Off => Time::NEVER,
            Timer::Retransmit(t) | Timer::Probe(t) | Timer::Reordering(t) => t,
        }
    }

    /// Sets RACK's timer, which replaces any other timer. If `at` is `None`, clears the timer if it is RACK's.
    pub(super) fn set_reordering(&mut self, at: Option<Time>) {
        if let Some(at) = at {
            *self = Timer::Reordering(at);
        } else if let Timer::Reordering(_) = *self {
            *self = Timer::Off;
        }
    }
}
