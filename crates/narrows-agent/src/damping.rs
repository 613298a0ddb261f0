//! Delays the use of interfaces and namespaces that repeatedly vanish and return. Without this delay, each change would
//! cause requests to the kernel and lines in the log.

use narrows_control::units::{Span, Time};

/// An interface or a namespace flaps if it has vanished this many times within [`WINDOW`].
const FLAPS: usize = 4;
const WINDOW: Span = Span::from_secs(10);
/// The agent uses a flapping interface or namespace again only when it has existed without a break for this time.
const SETTLED: Span = Span::from_secs(1);

/// The interface or namespace flaps, so the agent does not use it yet.
#[derive(Debug, thiserror::Error)]
#[error("lost {FLAPS} times within {} s; the agent uses it again once it has existed for {} s", WINDOW.as_secs_f64(), SETTLED.as_secs_f64())]
pub struct Flaps;

/// The recent changes of an interface or a namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Damping {
    /// The last times at which it vanished while it was in use, oldest first.
    lost: [Option<Time>; FLAPS],
    /// The ifindex or cookie of the existing interface or namespace, and when it was first seen.
    seen: Option<(u64, Time)>,
}

impl Damping {
    /// Records that the interface or namespace has vanished while it was in use.
    pub(crate) fn lost(&mut self, now: Time) {
        self.seen = None;
        self.lost.rotate_left(1);
        if let Some(last) = self.lost.last_mut() {
            *last = Some(now);
        }
    }

    /// Records that the interface or namespace does not exist.
    pub(crate) fn missing(&mut self) {
        self.seen = None;
    }

    /// Checks whether the agent may use an existing interface or namespace. `number` is its ifindex or cookie. Returns
    /// an error if it flaps and has not existed for [`SETTLED`] yet.
    pub(crate) fn admit(&mut self, now: Time, number: u64) -> Result<(), Flaps> {
        let since = match self.seen {
            Some((seen, since)) if seen == number => since,
            _ => now,
        };
        self.seen = Some((number, since));
        if self.flaps(now) && now.since(since) < SETTLED { Err(Flaps) } else { Ok(()) }
    }

    /// Returns whether the interface or namespace has vanished [`FLAPS`] times within [`WINDOW`].
    pub(crate) fn flaps(&self, now: Time) -> bool {
        self.lost.iter().all(|lost| lost.is_some_and(|at| now.since(at) < WINDOW))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn an_interface_is_taken_at_once_until_it_flaps() {
        let mut damping = Damping::default();
        for change in 0..4 {
            assert!(damping.admit(at(50 * change), 7).is_ok());
            damping.lost(at(50 * change));
        }
        assert!(damping.admit(at(200), 7).is_err());
        assert!(damping.admit(at(1199), 7).is_err());
        assert!(damping.admit(at(1200), 8).is_err(), "it is another one");
        assert!(damping.admit(at(2200), 8).is_ok(), "it has existed for a second");
        damping.lost(at(2300));
        assert!(damping.admit(at(2400), 9).is_err());
        damping.missing();
        assert!(damping.admit(at(3500), 9).is_err(), "it was missing in between");
        assert!(damping.admit(at(10_200), 10).is_ok(), "the first losses were long ago");
    }
}
