//! Measures whether the machine itself stops, for example because the host of a virtual machine has other
//! work.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::priority::{Priority, run_first};

const TICK_NS: u64 = 1_000_000;
/// If a thread of the highest priority wakes later than planned by more than this time, the cause is not another thread
/// of this machine.
const LATE_NS: u64 = 4_000_000;
/// The machine counts as disturbed if the share of lost time is above this value.
const SERIOUS: f64 = 0.01;

/// Threads, one for each processor, that only sleep and read the clock.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
    stolen: u64,
    begun: u64,
}

/// The shares of time that the machine lost.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Disturbance {
    /// Share of the time in which the processors were stopped.
    pub(crate) stalled: f64,
    /// Share of the processors' time that the machine's host took (`steal` of proc_stat(5)).
    pub(crate) stolen: f64,
}

impl Disturbance {
    pub(crate) fn is_serious(self) -> bool {
        self.stalled > SERIOUS || self.stolen > SERIOUS
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        write!(f, "the machine stopped for {:.1} %", percent(self.stalled))?;
        write!(f, " and its host took {:.1} % of the time", percent(self.stolen))
    }
}

impl Watch {
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..processors())
            .map(|processor| {
                let stop = Arc::clone(&stop);
                thread::spawn(move || {
                    prefer(processor);
                    lost_ns(&stop)
                })
            })
            .collect();
        Watch { stop, threads, stolen: stolen_ticks(), begun: now_ns() }
    }

    pub(crate) fn end(self) -> Disturbance {
        self.stop.store(true, Ordering::Relaxed);
        let lost = self.threads.into_iter().map(|t| t.join().unwrap_or(0)).max().unwrap_or(0);
        let time = (now_ns() - self.begun).max(1) as f64;
        let stolen = (stolen_ticks() - self.stolen) as f64 * 1e9 / ticks_per_second() as f64;
        Disturbance { stalled: lost as f64 / time, stolen: stolen / time / processors() as f64 }
    }
}

/// Sleeps for one tick after the other until `stop` is set. Returns the sum of all delays that exceed [`LATE_NS`].
fn lost_ns(stop: &AtomicBool) -> u64 {
    let mut lost = 0;
    while !stop.load(Ordering::Relaxed) {
        let before = now_ns();
        thread::sleep(Duration::from_nanos(TICK_NS));
        let late = (now_ns() - before).saturating_sub(TICK_NS);
        lost += if late > LATE_NS { late } else { 0 };
    }
    lost
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Binds the calling thread to this processor, and gives it the highest priority. Without the permission for this
/// priority, the thread wakes late more often.
#[allow(unsafe_code, reason = "no wrapper of ours has it")]
fn prefer(processor: usize) {
    // SAFETY: this is a plain system call for the calling thread, and the set outlives the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
    run_first(Priority::Highest);
}

/// Returns `steal` in the first line of /proc/stat, or 0 if the line has no such field.
fn stolen_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpu = stat.lines().next().unwrap_or_default();
    cpu.split_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

#[allow(unsafe_code, reason = "sysconf(3)")]
fn ticks_per_second() -> i64 {
    // SAFETY: the call takes no pointers.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1)
}

/// Returns the time of CLOCK_MONOTONIC in nanoseconds.
fn now_ns() -> u64 {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)
        .map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undisturbed_moment_is_measured() {
        let watch = Watch::start();
        thread::sleep(Duration::from_millis(300));
        let found = watch.end();
        assert!((0.0..=1.0).contains(&found.stalled) && found.stolen >= 0.0, "{found}");
        assert!(Disturbance { stalled: 0.02, stolen: 0.0 }.is_serious());
        assert!(!Disturbance { stalled: 0.0, stolen: 0.001 }.is_serious());
    }
}
