//! Measures the load of the processors, because a run on an overloaded machine does not show the behaviour of the
//! network.

use std::fs;

use serde::Serialize;

use crate::clock::monotonic;

/// The load of the processors over a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ProcessorReport {
    /// Number of processors that are online.
    pub(crate) processors: usize,
    /// Share of the processors' time that all programs together use: the mean over the run, and the mean over the
    /// busiest second.
    pub(crate) busy_mean: f64,
    pub(crate) busy_max: f64,
    /// Mean share of the processors' time that a hypervisor took.
    pub(crate) steal_mean: f64,
    /// Number of packets that the kernel dropped because a processor's backlog was full. `softnet_squeezed` is the
    /// number of times that a processor used up its budget for packets. Both are from /proc/net/softnet_stat.
    pub(crate) softnet_drops: u64,
    pub(crate) softnet_squeezed: u64,
}

/// Samples the processors each second.
pub(crate) struct Processors {
    first: Ticks,
    last: Ticks,
    softnet: (u64, u64),
    busy_max: f64,
}

/// Unit of the times in /proc/stat. The kernel's USER_HZ is 100.
const NANOS_PER_TICK: u64 = 10_000_000;

/// Clock ticks of all processors together.
///
/// The kernel measures busy time by a sample at each timer tick of a processor. These samples miss work that runs only
/// between two ticks. In a guest with virtual time, they also miss other work. The kernel measures idle time exactly
/// (NO_HZ). This module therefore computes busy time as the elapsed time minus the idle time.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Ticks {
    /// Time of CLOCK_MONOTONIC, multiplied by the number of processors.
    passed: u64,
    idle: u64,
    steal: u64,
}

impl Ticks {
    /// Returns the share of busy time since `earlier`.
    fn busy_since(self, earlier: Ticks) -> f64 {
        let passed = self.passed.saturating_sub(earlier.passed);
        let idle = self.idle.saturating_sub(earlier.idle);
        if passed == 0 { f64::NAN } else { (1.0 - idle as f64 / passed as f64).max(0.0) }
    }
}

impl Processors {
    pub(crate) fn new() -> Self {
        let now = ticks();
        Processors { first: now, last: now, softnet: softnet(), busy_max: 0.0 }
    }

    /// Takes a sample. Call this function once a second.
    pub(crate) fn sample(&mut self) {
        let now = ticks();
        // `max` ignores the NaN of an empty interval.
        self.busy_max = self.busy_max.max(now.busy_since(self.last));
        self.last = now;
    }

    pub(crate) fn report(&mut self) -> ProcessorReport {
        let (now, softnet_now) = (ticks(), softnet());
        let busy_mean = now.busy_since(self.first);
        let passed = now.passed.saturating_sub(self.first.passed).max(1);
        ProcessorReport {
            processors: std::thread::available_parallelism().map_or(0, |n| n.get()),
            busy_mean,
            busy_max: if self.busy_max > 0.0 { self.busy_max } else { busy_mean },
            steal_mean: now.steal.saturating_sub(self.first.steal) as f64 / passed as f64,
            softnet_drops: softnet_now.0.saturating_sub(self.softnet.0),
            softnet_squeezed: softnet_now.1.saturating_sub(self.softnet.1),
        }
    }
}

fn ticks() -> Ticks {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    parse_stat(&text, monotonic())
}

/// Parses the first line of /proc/stat, which is for all processors together. Its fields are user, nice, system, idle,
/// iowait, irq, softirq and steal (proc(5)). A `cpu` line for each processor follows, so these lines are counted.
fn parse_stat(text: &str, nanos: u64) -> Ticks {
    let line = text.lines().next().unwrap_or("");
    let fields: Vec<u64> = line.split_whitespace().skip(1).take(8).map_while(|f| f.parse().ok()).collect();
    let field = |i: usize| fields.get(i).copied().unwrap_or(0);
    let processors = text.lines().skip(1).take_while(|line| line.starts_with("cpu")).count();
    let passed = nanos / NANOS_PER_TICK * processors as u64;
    Ticks { passed, idle: field(3) + field(4), steal: field(7) }
}

fn softnet() -> (u64, u64) {
    fs::read_to_string("/proc/net/softnet_stat").map(|text| parse_softnet(&text)).unwrap_or_default()
}

/// Returns the sum of the drops of all processors, and the sum of their squeezes. The file has a line for each
/// processor with hexadecimal numbers: processed, dropped, squeezed, ...
fn parse_softnet(text: &str) -> (u64, u64) {
    text.lines().fold((0, 0), |(dropped, squeezed), line| {
        let mut fields = line.split_whitespace().skip(1).map(|f| u64::from_str_radix(f, 16).unwrap_or(0));
        (dropped + fields.next().unwrap_or(0), squeezed + fields.next().unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_the_time_that_is_not_idle() {
        let ms = |n: u64| n * 1_000_000;
        let a = parse_stat("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 9\n", ms(1000));
        // Two processors together have 100 ticks in half a second, and 50 of these ticks are idle. The busy ticks in
        // the file have no effect.
        let b = parse_stat("cpu  101 0 50 840 60 0 0 0 0 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 9\n", ms(1500));
        assert_eq!(a, Ticks { passed: 200, idle: 850, steal: 0 });
        assert_eq!(b.busy_since(a), 0.5);
        assert!(a.busy_since(a).is_nan());
        assert_eq!(parse_stat("", ms(0)), Ticks::default());
    }

    #[test]
    fn softnet_counts_all_processors() {
        assert_eq!(parse_softnet("0000ff 00000002 0000000a 0\n0 1 1\n"), (3, 11));
    }
}
