//! The only module that reads clocks.

use narrows_control::units::Time;
use nix::time::{ClockId, clock_gettime};

/// Returns the time of CLOCK_MONOTONIC. The eBPF programs use the same clock (`bpf_ktime_get_ns`), so their times can
/// be compared with the agent's times.
pub fn now() -> Time {
    // Linux has had this clock since 2.6, so the call cannot fail.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    now.map_or(Time::ZERO, |t| {
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
