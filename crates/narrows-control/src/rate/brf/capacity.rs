//! The capacity of a link that nobody tells (BRF-101, `measured`): a radio's.
//!
//! While packets wait, what leaves is what the link can do; the greatest such rate of the last two periods is the
//! capacity. When nothing waits the link may be able to do more, so after two periods the estimate is raised by a
//! probe, and the raise is kept if the flows filled it and still nothing waited.
//!
//! That much is the specification's. A radio's capacity grows tenfold within a second, and probes of 5 % that take
//! five periods each need two minutes for it. So (ours; `probe_growth` = 1 is the plain form) a probe that was filled
//! is followed by one twice as large, up to `probe_max`, without another wait; a queue ends the series.

use std::collections::VecDeque;

use super::params::Params;
use crate::units::{Bytes, Rate, Span, Time};

/// Packets that a rate sample spans at least, so that one more or less is 5 % at most.
const SAMPLE_PACKETS: u64 = 20;
/// No longer than this for one sample, on the slowest link.
const SAMPLE_MAX: Span = Span::from_millis(200);
/// A probe was filled if arrivals reached this part of what was handed out.
const FILLED: f64 = 0.9;
/// A queue of this many packets is none: a scheduler's grants and the bursts of the senders make that many.
const NO_QUEUE: u64 = 2;
/// How long the greatest estimate is remembered: by then it has faded to a third.
const MEMORY: Span = Span::from_secs(5);
/// Below this part of it the series of probes begins with the largest: what a radio did a moment ago it can do again.
const FALLEN: f64 = 0.5;

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
    /// The estimate is raised; arrivals count from the moment when the first can be of the raise.
    Raised { since: Time, counted: Option<(Time, Bytes)> },
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
    /// When nothing waited last. A radio serves in grants, between which any traffic has to wait: only what does not
    /// drain within a period is a queue.
    empty_at: Time,
    /// Greatest estimate of late, which fades.
    best: f64,
    seen_at: Time,
    /// Part of the estimate that a probe adds.
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

    /// The capacity to hand out now, a running probe included.
    pub(super) fn capacity(&self) -> Rate {
        match self.probe {
            Probe::Raised { .. } => self.estimate.mul_f64(1.0 + self.step),
            Probe::Idle { .. } => self.estimate,
        }
    }

    /// Reads the port; to be called a few times per `period` T.
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
        // Less than a packet waiting may be the one in transmission.
        if reading.queued <= self.mtu || start.queued <= self.mtu {
            // It drained on the way, and could have sent more: enough to raise the estimate, not to lower it.
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
        // A stalled radio drains nothing; what it did last is a better guess than zero.
        if let Some(best) = self.drained.iter().map(|(_, rate)| *rate).max().filter(|r| *r > Rate::ZERO) {
            self.estimate = best;
        }
    }

    /// The size of the next probe, after one of `last` that was filled or, without, for the first of a series.
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
            self.probe = Probe::Idle { empty_since: now };
            return;
        }
        match self.probe {
            Probe::Idle { empty_since } if now.since(empty_since) >= period.scale(2, 1) => {
                self.step = self.next_step(None);
                self.probe = Probe::Raised { since: now, counted: None };
            }
            // Senders hear of the raise within an RTT, and it takes another until the port sees them all.
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
