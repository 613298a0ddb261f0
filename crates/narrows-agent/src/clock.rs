//! The only module that reads clocks.

use narrows_control::units::{Span, Time};
use nix::time::{ClockId, clock_gettime};

/// Returns the time of CLOCK_MONOTONIC. The eBPF programs use the same clock (`bpf_ktime_get_ns`).
pub fn now() -> Time {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Returns the time of day (UTC, from CLOCK_REALTIME) at which the clock of [`now`] was zero.
pub fn time_of_day_at_zero() -> Span {
    const DAY: u64 = narrows_control::rate::kit::features::DAY.as_nanos();
    let today = read(ClockId::CLOCK_REALTIME).since(Time::ZERO).as_nanos() % DAY;
    let since_zero = now().since(Time::ZERO).as_nanos() % DAY;
    Span::from_nanos((today + DAY - since_zero) % DAY)
}

fn read(clock: ClockId) -> Time {
    // Every supported Linux has both clocks, so the call cannot fail.
    clock_gettime(clock).map_or(Time::ZERO, |t| {
        let (secs, nanos) = (t.tv_sec() as u64, t.tv_nsec() as u64);
        Time::from_nanos(secs.saturating_mul(1_000_000_000).saturating_add(nanos))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_clock_does_not_go_back() {
        let first = super::now();
        assert!(first > narrows_control::units::Time::ZERO && super::now() >= first);
    }
}
