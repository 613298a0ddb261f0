//! Reads the clock for all other modules. The clock is CLOCK_MONOTONIC. `bpf_ktime_get_ns` and, on Linux,
//! Python's `time.monotonic_ns` read the same clock.

use narrows_control::units::{Span, Time};
use nix::time::{ClockId, clock_gettime};

/// Returns the time of a clock in nanoseconds, or 0 if the kernel does not have this clock. Every Linux kernel has the
/// clocks that are used here.
fn read(id: ClockId) -> u64 {
    clock_gettime(id).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// Returns the time of CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Returns the offset from CLOCK_REALTIME (the clock of packet timestamps) to CLOCK_MONOTONIC.
pub(crate) fn realtime_to_monotonic() -> i64 {
    let before = monotonic();
    let real = read(ClockId::CLOCK_REALTIME);
    let after = monotonic();
    (before + (after - before) / 2) as i64 - real as i64
}

/// The clock of a run, which counts from the start of the run.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Clock {
    /// CLOCK_MONOTONIC at time zero.
    pub(crate) zero: u64,
}

impl Clock {
    /// Returns the time since the start of the run. The result is zero before the start.
    pub(crate) fn now(self) -> Time {
        self.at(monotonic())
    }

    /// Returns the time of the run for a value of CLOCK_MONOTONIC.
    pub(crate) fn at(self, nanos: u64) -> Time {
        Time::from_nanos(nanos.saturating_sub(self.zero))
    }

    /// Returns the value of CLOCK_MONOTONIC at a time of the run.
    pub(crate) fn monotonic(self, time: Time) -> u64 {
        self.zero.saturating_add(time.as_nanos())
    }

    /// Sleeps until this time, at most 50 ms, so that callers can check their cancel flag.
    pub(crate) fn nap(self, until: Time) {
        let left = until.since(self.now()).min(Span::from_millis(50));
        std::thread::sleep(std::time::Duration::from_nanos(left.as_nanos()));
    }
}
