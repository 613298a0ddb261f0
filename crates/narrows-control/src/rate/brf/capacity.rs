//! The capacity of a link that nobody tells (BRF-101, `measured`): a radio's.
//!
//! While packets wait, what leaves is what the link can do; the greatest such rate of the last two periods is the
//! capacity. When nothing waits the link may be able to do more, so the estimate is raised by a probe now and then,
//! and the raise is kept if the flows filled it and still nothing waited.

use std::collections::VecDeque;

use crate::units::{Bytes, Rate, Span, Time};

/// Packets that a rate sample spans at least, so that one more or less is 5 % at most.
const SAMPLE_PACKETS: u64 = 20;
/// No longer than this for one sample, on the slowest link.
const SAMPLE_MAX: Span = Span::from_secs(1);
/// A probe was filled if arrivals reached this part of what was handed out.
const FILLED: f64 = 0.9;

/// What the host reads from the port.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Reading {
    pub(super) arrived: Bytes,
    pub(super) departed: Bytes,
    pub(super) queued: Bytes,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Probe {
    /// Nothing has waited since.
    Idle { empty_since: Time },
    /// The estimate is raised, from and until.
    Raised { from: Time, until: Time },
    /// The raise is over, but its effect at the port lags by a period.
    Judging { arrived: Bytes, from: Time, until: Time },
}

/// Estimates the capacity of one port.
#[derive(Debug)]
pub(super) struct Estimator {
    estimate: Rate,
    /// Drain rates while backlogged, newest last.
    drained: VecDeque<(Time, Rate)>,
    /// Start of the running sample.
    sample: Option<(Time, Reading)>,
    probe: Probe,
    gain: f64,
    eta: f64,
    mtu: Bytes,
}

impl Estimator {
    pub(super) fn new(now: Time, initial: Rate, gain: f64, eta: f64, mtu: Bytes) -> Self {
        let probe = Probe::Idle { empty_since: now };
        Estimator { estimate: initial, drained: VecDeque::new(), sample: None, probe, gain, eta, mtu }
    }

    /// The capacity to hand out now, a running probe included.
    pub(super) fn capacity(&self) -> Rate {
        match self.probe {
            Probe::Raised { .. } => self.estimate.mul_f64(self.gain),
            _ => self.estimate,
        }
    }

    /// Reads the port; to be called a few times per `period` T.
    pub(super) fn observe(&mut self, now: Time, reading: Reading, period: Span) {
        self.sample_drain(now, reading, period);
        self.step_probe(now, reading, period);
    }

    fn sample_drain(&mut self, now: Time, reading: Reading, period: Span) {
        let least = self.estimate.time_for(Bytes::new(self.mtu.get() * SAMPLE_PACKETS)).min(SAMPLE_MAX);
        let Some((from, start)) = self.sample else {
            self.sample = Some((now, reading));
            return;
        };
        // Less than a packet waiting may be the one in transmission. A queue that empties in between and fills again
        // goes unseen and gives a sample that is too low, which the maximum forgives.
        if reading.queued <= self.mtu || start.queued <= self.mtu {
            self.sample = Some((now, reading));
            return;
        }
        if now.since(from) < least.max(period.scale(1, 2)) {
            return;
        }
        self.drained.push_back((now, Rate::of(reading.departed - start.departed, now.since(from))));
        self.sample = Some((now, reading));
        let horizon = period.scale(2, 1).max(least.scale(2, 1));
        while self.drained.front().is_some_and(|(at, _)| now.since(*at) > horizon) {
            self.drained.pop_front();
        }
        // A stalled radio drains nothing; what it did last is a better guess than zero.
        if let Some(best) = self.drained.iter().map(|(_, rate)| *rate).max().filter(|r| *r > Rate::ZERO) {
            self.estimate = best;
        }
    }

    fn step_probe(&mut self, now: Time, reading: Reading, period: Span) {
        if reading.queued > self.mtu + self.mtu {
            self.probe = Probe::Idle { empty_since: now };
            return;
        }
        match self.probe {
            Probe::Idle { empty_since } if now.since(empty_since) >= period.scale(2, 1) => {
                self.probe = Probe::Raised { from: now, until: now + period };
            }
            Probe::Raised { from, until } if now >= until => {
                // Senders hear of the raise within an RTT and fill it an RTT later at the latest.
                let until = until + now.since(from);
                self.probe = Probe::Judging { arrived: reading.arrived, from: now, until };
            }
            Probe::Judging { arrived, from, until } if now >= until => {
                let rate = Rate::of(reading.arrived - arrived, now.since(from));
                if rate >= self.estimate.mul_f64(self.eta * FILLED) {
                    self.estimate = self.estimate.mul_f64(self.gain);
                }
                self.probe = Probe::Idle { empty_since: now };
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Span = Span::from_millis(20);

    /// A link of rate `link(t in ms)` with senders that fill `demand` of what they are told; returns the estimate
    /// at every ms.
    fn run(initial: u64, ms: u64, link: impl Fn(u64) -> u64, demand: f64) -> Vec<u64> {
        let (initial, mtu) = (Rate::from_bytes_per_sec(initial), Bytes::new(1500));
        let mut estimator = Estimator::new(Time::ZERO, initial, 1.05, 0.98, mtu);
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
    fn climbs_to_a_faster_link_by_probing() {
        let estimates = run(1_250_000, 8_000, |_| 5_000_000, 1.0);
        assert!(estimates.last().unwrap() > &4_700_000);
        assert!(estimates.iter().all(|e| *e <= 5_600_000), "and not past it by more than a probe");
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
