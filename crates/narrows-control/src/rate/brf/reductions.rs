//! A port's reaction to congestion: its own detector, and the reductions so far (BRF-73 to BRF-82).

use std::collections::VecDeque;

use super::congestion::{Detector, Thresholds, Verdict};
use super::params::Params;
use crate::rate::Report;
use crate::units::{Bytes, Rate, Span, Time};

/// Maximum number of stored readings of the arrivals, even with short ticks.
const MARKS: usize = 64;

/// The detector and the reductions of one port.
pub(super) struct Reductions {
    thresholds: Thresholds,
    detector: Detector,
    /// The time of the controller's last poll. While the controller polls, its verdict replaces the verdict of the
    /// switch's detector.
    polled_at: Option<Time>,
    controller_timeout: Span,
    /// Total of bytes that had arrived for the rated class, at each tick of the last period.
    arrivals: VecDeque<(Time, Bytes)>,
    reduced_at: Option<Time>,
    /// The factors of the last two reductions. Flows may still follow them, because a reduction takes two T to take
    /// effect at the port.
    factors: [f64; 2],
}

impl Reductions {
    pub(super) fn new(params: &Params, mtu: Bytes) -> Self {
        Reductions {
            thresholds: Thresholds::of(params, mtu),
            detector: Detector::default(),
            polled_at: None,
            controller_timeout: params.controller_timeout,
            arrivals: VecDeque::new(),
            reduced_at: None,
            factors: [1.0; 2],
        }
    }

    /// Called when the controller has polled the port.
    pub(super) fn polled(&mut self, now: Time) {
        self.polled_at = Some(now);
    }

    /// Returns the verdict of the switch's own detector; `None` while the controller polls (BRF-73, BRF-105).
    pub(super) fn detect(&mut self, now: Time, report: impl FnOnce() -> Report) -> Option<Verdict> {
        if self.polled_at.is_some_and(|at| now.since(at) <= self.controller_timeout) {
            return None;
        }
        Some(self.detector.observe(&report(), &self.thresholds))
    }

    /// Stores the total of bytes that have arrived for the rated class.
    pub(super) fn record_arrivals(&mut self, now: Time, arrived: Bytes, period: Span) {
        self.arrivals.push_back((now, arrived));
        while self.arrivals.len() > MARKS
            || self.arrivals.get(1).is_some_and(|(at, _)| now.since(*at) >= period)
        {
            self.arrivals.pop_front();
        }
    }

    /// Returns the rate at which bytes for the rated class have arrived in the last period.
    pub(super) fn arrival_rate(&self, now: Time, arrived: Bytes) -> Rate {
        self.arrivals.front().map_or(Rate::ZERO, |(at, bytes)| Rate::of(arrived - *bytes, now.since(*at)))
    }

    /// Returns the time of the last reduction.
    pub(super) fn reduced_at(&self) -> Option<Time> {
        self.reduced_at
    }

    /// Returns whether there was a reduction within the last `span`. Such a reduction may not have taken effect yet.
    pub(super) fn reduced_within(&self, now: Time, span: Span) -> bool {
        self.reduced_at.is_some_and(|at| now.since(at) < span)
    }

    /// Records a reduction.
    pub(super) fn record(&mut self, now: Time) {
        self.reduced_at = Some(now);
    }

    /// Called when a new factor replaces the factor of the last reduction. Returns the largest factor that flows may
    /// still have followed.
    pub(super) fn end(&mut self, factor: f64) -> f64 {
        let [last, before] = self.factors;
        self.factors = [factor, last];
        factor.max(last).max(before)
    }

    /// Called when the congestion is over.
    pub(super) fn forget(&mut self) {
        self.factors = [1.0; 2];
    }
}
