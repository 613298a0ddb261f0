//! The sender's one timer, as a value.

use narrows_control::units::Time;

/// What the timer is set for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Off,
    Retransmit(Time),
    /// Tail loss probe.
    Probe(Time),
    /// RACK: a segment becomes overdue.
    Reordering(Time),
}

impl Timer {
    pub(super) fn at(self) -> Time {
        match self {
            Timer::Off => Time::NEVER,
            Timer::Retransmit(t) | Timer::Probe(t) | Timer::Reordering(t) => t,
        }
    }

    /// RACK wants to be asked again; its timer takes the place of the others until then.
    pub(super) fn reordering(&mut self, at: Option<Time>) {
        if let Some(at) = at {
            *self = Timer::Reordering(at);
        } else if let Timer::Reordering(_) = *self {
            *self = Timer::Off;
        }
    }
}
