//! Estimates the capacity of a link without a configured capacity (BRF-101, `measured`), for example a
//! radio link.
//!
//! While packets wait, the rate at which they leave (the drain rate) is the link's rate. The estimated capacity is the
//! maximum drain rate over the last two periods. If no packet waits, the link may be faster than the estimate. So after
//! two periods without a queue, a probe raises the estimate. The higher estimate is kept if the flows filled it
//! (`FILLED`) and there was still no queue.
//!
//! BRF-101 specifies only probes of constant size. But a radio's capacity can grow tenfold within a second. With probes
//! of 5 % that take four periods each, the estimate would need ten seconds for this growth. So after a filled probe, a
//! probe of twice the size follows at once, up to `probe_max`. The series ends when there is a queue, or when the flows
//! do not fill a probe. A `probe_growth` of 1 disables the growth.

use std::collections::VecDeque;

use super::params::Params;
use crate::units::{Bytes, Rate, Span, Time};

/// Minimum number of packets in a rate sample. With this number, one packet more or less changes the rate by at most
/// 5 %.
const SAMPLE_PACKETS: u64 = 20;
/// On a slow link, a sample ends after this time even if it has fewer than `SAMPLE_PACKETS` packets. If half a period T
/// is longer than this time, the sample ends after half a period.
const SAMPLE_MAX: Span = Span::from_millis(200);
/// The flows filled a probe if arrivals reached this share of the allocations.
const FILLED: f64 = 0.9;
/// A queue of at most this many packets is ignored, because a radio link's scheduler and bursts of senders also make a
/// few packets wait.
const NO_QUEUE: u64 = 2;
/// Time constant with which the maximum of the estimates decays.
const MEMORY: Span = Span::from_secs(5);
/// If the estimate is below this share of the maximum, a series of probes begins with the largest probe, because a
/// radio can return to a recent rate.
const FALLEN: f64 = 0.5;

/// The host's counters of the port.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Reading {
    pub(super) arrived: Bytes,
    pub(super) departed: Bytes,
    pub(super) queued: Bytes,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Probe {
    /// The estimate is not raised. Since `empty_since`, there was neither a lasting queue nor a probe.
    Idle { empty_since: Time },
    /// The estimate is raised. Arrivals are counted from the time at which packets at the raised rates can arrive.
    Raised { since: Time, counted: Option<(Time, Bytes)> },
}

/// Estimates the capacity of one port.
#[derive(Debug)]
pub(super) struct Estimator {
    estimate: Rate,
    /// Drain rates of the recent samples, newest last.
    drained: VecDeque<(Time, Rate)>,
    /// Start of the current sample.
    sample: Option<(Time, Reading)>,
    probe: Probe,
    /// The last time at which the queue had at most [`NO_QUEUE`] packets. A radio sends only at times that its
    /// scheduler grants, and packets wait in between. So waiting data counts as a queue only if it does not drain
    /// within a period.
    empty_at: Time,
    /// Decaying maximum of the estimate.
    best: f64,
    seen_at: Time,
    /// Share of the estimate that a probe adds.
    step: f64,
    first: f64,
    growth: f64,
    most: f64,
    eta: f64,
    mtu: Bytes,
}

impl Estimator {
    pub(super) fn new(now: Time, params: &Params, mtu: Bytes) -> Self {
        let first = params.probe_gain - 1.0;
        Estimator {
            estimate: params.capacity_initial,
            drained: VecDeque::new(),
            sample: None,
            probe: Probe::Idle { empty_since: now },
            empty_at: now,
            best: 0.0,
            seen_at: now,
            step: first,
            first,
            growth: params.probe_growth,
            most: (params.probe_max - 1.0).max(first),
            eta: params.eta,
            mtu,
        }
    }

    /// Returns the capacity to allocate now. During a probe, this is the raised estimate.
    pub(super) fn capacity(&self) -> Rate {
        match self.probe {
            Probe::Raised { .. } => self.estimate.mul_f64(1.0 + self.step),
            Probe::Idle { .. } => self.estimate,
        }
    }

    /// Reads the counters. Called several times per `period` T.
    pub(super) fn observe(&mut self, now: Time, reading: Reading, period: Span) {
        self.sample_drain(now, reading, period);
        let age = now.since(self.seen_at).as_secs_f64() / MEMORY.as_secs_f64();
        self.best = (self.best * (1.0 - age).max(0.0)).max(self.estimate.as_f64());
        self.seen_at = now;
        self.step_probe(now, reading, period);
    }

    fn sample_drain(&mut self, now: Time, reading: Reading, period: Span) {
        let Some((from, start)) = self.sample else {
            self.sample = Some((now, reading));
            return;
        };
        let span = now.since(from);
        let left = reading.departed - start.departed;
        let rate = Rate::of(left, span);
        let enough = left.get() >= self.mtu.get() * SAMPLE_PACKETS;
        // A queue of at most one packet may be the packet in transmission.
        if reading.queued <= self.mtu || start.queued <= self.mtu {
            // The queue was empty at the start or at the end of the sample, so the link could have sent more. The
            // sample may raise the estimate, but not lower it.
            if enough && start.queued > self.mtu && rate > self.estimate {
                self.estimate = rate;
            }
            self.sample = Some((now, reading));
            return;
        }
        let least = period.scale(1, 2);
        if span < least || !(enough || span >= SAMPLE_MAX.max(least)) {
            return;
        }
        self.drained.push_back((now, rate));
        self.sample = Some((now, reading));
        let horizon = period.max(span).scale(2, 1);
        while self.drained.front().is_some_and(|(at, _)| now.since(*at) > horizon) {
            self.drained.pop_front();
        }
        // A stalled radio link drains no packets. The highest recent drain rate is a better estimate than zero.
        if let Some(best) = self.drained.iter().map(|(_, rate)| *rate).max().filter(|r| *r > Rate::ZERO) {
            self.estimate = best;
        }
    }

    /// Returns the size of the next probe. `last` is the size of the previous probe, which the flows have filled, or
    /// `None` at the start of a series.
    fn next_step(&self, last: Option<f64>) -> f64 {
        if self.growth > 1.0 && self.estimate.as_f64() < FALLEN * self.best {
            return self.most;
        }
        last.map_or(self.first, |last| (last * self.growth).min(self.most))
    }

    fn step_probe(&mut self, now: Time, reading: Reading, period: Span) {
        if reading.queued.get() <= NO_QUEUE * self.mtu.get() {
            self.empty_at = now;
        } else if now.since(self.empty_at) >= period {
            if matches!(self.probe, Probe::Raised { .. }) {
                // The probe failed, because it caused a queue.
                self.best = self.estimate.as_f64();
            }
            self.probe = Probe::Idle { empty_since: now };
            return;
        }
        match self.probe {
            Probe::Idle { empty_since } if now.since(empty_since) >= period.scale(2, 1) => {
                self.step = self.next_step(None);
                self.probe = Probe::Raised { since: now, counted: None };
            }
            // Senders learn the raised rates within an RTT. After another RTT, their packets at the new rates have
            // arrived at the port.
            Probe::Raised { since, counted: None } if now.since(since) >= period => {
                self.probe = Probe::Raised { since, counted: Some((now, reading.arrived)) };
            }
            Probe::Raised { counted: Some((from, arrived)), .. } if now.since(from) >= period => {
                let rate = Rate::of(reading.arrived - arrived, now.since(from));
                let raised = self.capacity();
                if rate < raised.mul_f64(self.eta * FILLED) {
                    self.probe = Probe::Idle { empty_since: now };
                    return;
                }
                self.estimate = raised;
                self.probe = if self.growth > 1.0 {
                    self.step = self.next_step(Some(self.step));
                    Probe::Raised { since: now, counted: None }
                } else {
                    Probe::Idle { empty_since: now }
                };
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Span = Span::from_millis(20);

    /// Simulates a link with the rate `link(ms)`. Its senders send at the fraction `demand` of their rates. Returns the
    /// estimate at every ms.
    fn run(initial: u64, ms: u64, link: impl Fn(u64) -> u64, demand: f64) -> Vec<u64> {
        run_with(Params::resolved(), initial, ms, link, demand)
    }

    fn run_with(params: Params, initial: u64, ms: u64, link: impl Fn(u64) -> u64, demand: f64) -> Vec<u64> {
        let params = Params { capacity_initial: Rate::from_bytes_per_sec(initial), ..params };
        let mut estimator = Estimator::new(Time::ZERO, &params, Bytes::new(1500));
        let (mut arrived, mut departed) = (0.0, 0.0f64);
        (0..ms)
            .map(|t| {
                arrived += estimator.capacity().as_f64() * 0.98 * demand / 1000.0;
                departed = (departed + link(t) as f64 / 1000.0).min(arrived);
                let [a, d, q] = [arrived, departed, arrived - departed].map(|v| Bytes::new(v as u64));
                let now = Time::ZERO + Span::from_millis(t);
                estimator.observe(now, Reading { arrived: a, departed: d, queued: q }, T);
                estimator.capacity().as_bytes_per_sec()
            })
            .collect()
    }

    #[test]
    fn finds_a_slower_link_from_its_backlog() {
        let estimates = run(12_500_000, 400, |_| 5_000_000, 1.0);
        assert!(estimates[150..].iter().all(|e| (4_900_000..=5_300_000).contains(e)));
    }

    #[test]
    fn plain_probes_climb_to_a_faster_link_by_a_twentieth_at_a_time() {
        let plain = Params { probe_growth: 1.0, probe_max: 1.05, ..Params::resolved() };
        let estimates = run_with(plain, 1_250_000, 8_000, |_| 5_000_000, 1.0);
        assert!(estimates[1_000] < 2_500_000, "{}", estimates[1_000]);
        assert!(estimates.last().unwrap() > &4_700_000);
        assert!(
            estimates.iter().all(|e| *e <= 5_600_000),
            "no estimate exceeds the rate by more than a probe"
        );
    }

    /// The link's rate is ten times the first estimate. Probes of 5, 10, 20, 40, 80 and 100 % follow, each for two
    /// periods.
    #[test]
    fn growing_probes_find_ten_times_the_rate_in_twenty_periods() {
        let estimates = run(500_000, 2_000, |_| 5_000_000, 1.0);
        assert!(estimates[40 + 20 * 20] > 4_500_000, "{}", estimates[440]);
        assert!(estimates[1_000..].iter().all(|e| (4_500_000..=5_600_000).contains(e)));
    }

    /// A radio link almost stops for two seconds. When it is fast again, the drain rate of the backlog shows the link's
    /// rate.
    #[test]
    fn an_outage_does_not_leave_a_tiny_estimate() {
        let link = |t| if (1_000..3_000).contains(&t) { 20_000 } else { 5_000_000 };
        let estimates = run(5_000_000, 4_000, link, 1.0);
        assert!(estimates[2_900] < 100_000, "{}", estimates[2_900]);
        assert!(estimates[3_200..].iter().all(|e| *e > 4_500_000), "{:?}", &estimates[3_150..3_250]);
    }

    #[test]
    fn follows_a_link_that_halves_within_a_few_periods() {
        let estimates = run(5_000_000, 1_400, |t| if t < 1000 { 5_000_000 } else { 2_500_000 }, 1.0);
        assert!(estimates[1_120..].iter().all(|e| *e < 2_800_000), "{:?}", &estimates[1_000..1_200]);
    }

    #[test]
    fn flows_that_do_not_fill_a_probe_do_not_raise_the_estimate() {
        let estimates = run(1_250_000, 4_000, |_| 5_000_000, 0.5);
        assert!(estimates.iter().all(|e| *e <= 1_312_500));
    }
}
