//! Reads CLOCK_MONOTONIC for all other modules. `bpf_ktime_get_ns` and, on Linux, Python's `time.monotonic_ns` read the
//! same clock.

use narrows_control::units::{Span, Time};
use nix::time::{ClockId, clock_gettime};

/// Returns the time of a clock in nanoseconds, or 0 if the kernel does not have this clock. Every Linux kernel has the
/// two clocks that this module reads.
fn read(id: ClockId) -> u64 {
    clock_gettime(id).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// Returns the time of CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Returns the number of nanoseconds to add to a time of CLOCK_REALTIME to get a time of CLOCK_MONOTONIC. The kernel
/// stamps packets with CLOCK_REALTIME.
pub(crate) fn realtime_to_monotonic() -> i64 {
    let before = monotonic();
    let real = read(ClockId::CLOCK_REALTIME);
    let after = monotonic();
    (before + (after - before) / 2) as i64 - real as i64
}

/// A clock that shows the time since the start of a run.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Clock {
    /// Value of CLOCK_MONOTONIC at the start of the run, in nanoseconds.
    pub(crate) zero: u64,
}

impl Clock {
    /// Returns the time since the start of the run. Before the start, the result is zero.
    pub(crate) fn now(self) -> Time {
        self.at(monotonic())
    }

    /// Converts a value of CLOCK_MONOTONIC to the time since the start of the run.
    pub(crate) fn at(self, nanos: u64) -> Time {
        Time::from_nanos(nanos.saturating_sub(self.zero))
    }

    /// Converts a time since the start of the run to a value of CLOCK_MONOTONIC.
    pub(crate) fn monotonic(self, time: Time) -> u64 {
        self.zero.saturating_add(time.as_nanos())
    }

    /// Sleeps until the given time, but for at most 50 ms. Callers can check their cancel flag after each call.
    pub(crate) fn nap(self, until: Time) {
        let left = until.since(self.now()).min(Span::from_millis(50));
        std::thread::sleep(std::time::Duration::from_nanos(left.as_nanos()));
    }
}
