//! A link in the controller's view: the samples from the port's reports, and the available capacity computed from them
//! once per Tc.

use super::params::{Mode, Params};
use super::utilisation::{Sample, Samples, residual};
use crate::rate::Report;
use crate::units::{Bytes, Rate, Time};

/// The last samples stay valid for this many periods, or for this many intervals between reports if the intervals are
/// longer (PAC-24). A sample that covers more than this time is discarded.
const STALE: u32 = 3;

/// The counters of the last report.
#[derive(Copy, Clone, Debug)]
struct Base {
    at: Time,
    departed: Bytes,
    rated: Bytes,
}

/// A link in the controller's view.
#[derive(Clone, Debug)]
pub(super) struct Link {
    params: Params,
    capacity: Rate,
    base: Option<Base>,
    /// Samples of the current period.
    coming: Samples,
    /// Samples of the last period in which samples arrived.
    samples: Samples,
    /// Number of periods without samples since the last period with samples.
    silent: u32,
    /// Periods between two reports, at least one.
    every: u32,
}

impl Link {
    pub(super) fn new(params: Params) -> Self {
        Link {
            params,
            capacity: Rate::ZERO,
            base: None,
            coming: Samples::default(),
            samples: Samples::default(),
            silent: 0,
            every: 1,
        }
    }

    /// Returns whether the link has had a report. A link without a report gets no allocation.
    pub(super) fn is_known(&self) -> bool {
        self.base.is_some()
    }

    /// Processes a report. A report that is not later than the last report is ignored. But after a long silence of the
    /// port, the report is accepted, because the port's clock may have restarted. If counters have decreased, or if the
    /// last report is too old ([`STALE`]), the new report only restarts the measurement and gives no sample.
    pub(super) fn on_report(&mut self, report: &Report) {
        if self.base.is_some_and(|base| report.at <= base.at) && self.silent <= self.patience() {
            return;
        }
        let next = Base { at: report.at, departed: report.departed, rated: report.rated_departed };
        let base = self.base.replace(next);
        self.capacity = report.capacity;
        let Some(base) = base else { return };
        let span = report.at.since(base.at);
        let forward = report.departed >= base.departed && report.rated_departed >= base.rated;
        let period = self.params.period();
        self.every = report.period.as_nanos().div_ceil(period.as_nanos().max(1)).clamp(1, 100) as u32;
        if !forward || span > period.scale(u64::from(self.patience()), 1) {
            return;
        }
        let passed = report.departed - base.departed;
        let background = passed - (report.rated_departed - base.rated);
        self.coming.add(Sample { passed, background, queued: report.queued, span });
    }

    /// Ends the period. Returns the utilisation I_i(s).
    pub(super) fn end_period(&mut self) -> f64 {
        if self.coming.is_empty() {
            self.silent = self.silent.saturating_add(1);
        } else {
            self.samples = core::mem::take(&mut self.coming);
            self.silent = 0;
        }
        self.samples.utilisation(self.capacity, self.params.queue_weight(), self.params.sample)
    }

    /// Returns whether recent samples are missing. In that case the link's flows share eta * C (PAC-24).
    pub(super) fn is_blind(&self) -> bool {
        self.silent > self.patience() || self.samples.is_empty()
    }

    fn patience(&self) -> u32 {
        STALE * self.every
    }

    /// Returns whether flows may begin at the switch of this link's port.
    pub(super) fn is_edge(&self) -> bool {
        self.params.edge
    }

    /// Returns the law that computes the capacity of this link.
    pub(super) fn mode(&self) -> Mode {
        self.params.mode
    }

    /// Returns eta * C, the capacity to allocate.
    pub(super) fn target(&self) -> Rate {
        self.capacity.mul_f64(self.params.eta)
    }

    /// Returns the total rate that is available to the flows of this link. `granted` is the sum of their
    /// current rates.
    pub(super) fn available(&self, utilisation: f64, granted: u64) -> u64 {
        let available = match self.params.mode {
            _ if !self.is_known() => Rate::MAX,
            _ if self.is_blind() => self.target(),
            Mode::Literal => residual(self.capacity, utilisation),
            Mode::Resolved | Mode::Equal => {
                let Params { eta, drain, .. } = self.params;
                self.samples.available(self.capacity, eta, drain, self.params.period())
            }
            // PAC-19 for one link. The result is at most eta * C. Without this limit, it would grow in each period if
            // the flows do not use their rates.
            Mode::Incremental => {
                let step = self.params.kappa * self.capacity.as_f64() * (self.params.eta - utilisation);
                Rate::from_f64(granted as f64 + step).min(self.target())
            }
        };
        available.as_bytes_per_sec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    fn report(at: u64, departed: u64, rated: u64, queued: u64) -> Report {
        Report {
            at: Time::ZERO + Span::from_millis(at),
            departed: Bytes::new(departed),
            rated_departed: Bytes::new(rated),
            queued: Bytes::new(queued),
            ..super::super::harness::report(1, Rate::from_bytes_per_sec(1_000_000))
        }
    }

    fn available(link: &mut Link) -> u64 {
        let utilisation = link.end_period();
        link.available(utilisation, 0)
    }

    #[test]
    fn background_and_queue_are_subtracted() {
        let mut link = Link::new(Params::default());
        assert!(!link.is_known());
        for i in 0..=5 {
            link.on_report(&report(i * 10, i * 8_000, i * 6_000, 1_000));
        }
        // The available rate is 980,000 - 200,000 byte/s, minus 1000 byte per 50 ms to drain the queue.
        assert_eq!(available(&mut link), 760_000);
    }

    #[test]
    fn pac_24_lost_reports_are_replaced_for_three_periods() {
        let mut link = Link::new(Params::default());
        link.on_report(&report(0, 0, 0, 0));
        link.on_report(&report(10, 5_000, 0, 0));
        assert_eq!([0; 5].map(|_| available(&mut link)), [480_000, 480_000, 480_000, 480_000, 980_000]);
        link.on_report(&report(300, 905_000, 0, 0));
        assert_eq!(available(&mut link), 980_000, "the last report is too old for a sample");
        link.on_report(&report(310, 907_000, 0, 0));
        assert_eq!(available(&mut link), 780_000);
    }

    #[test]
    fn a_lost_report_leaves_no_hole() {
        let mut link = Link::new(Params::default());
        for at in [0, 10, 30, 40, 50] {
            link.on_report(&report(at, at * 300, 0, 0));
        }
        assert_eq!(available(&mut link), 680_000);
    }

    #[test]
    fn late_repeated_and_absurd_reports_are_bounded() {
        let mut link = Link::new(Params::default());
        for (at, departed) in [(0, 0), (20, 4_000), (10, 9_000), (20, 9_000), (30, 6_000), (40, 8_000)] {
            link.on_report(&report(at, departed, 0, 0));
        }
        assert_eq!(available(&mut link), 780_000);
        // A faulty clock gives this report a time in the future. For some periods, later valid reports are ignored.
        link.on_report(&Report { at: Time::NEVER, ..report(0, 8_000, 0, 0) });
        for i in 1..=8 {
            for j in 0..5 {
                let at = i * 50 + j * 10;
                link.on_report(&report(at, at * 100, 0, 0));
            }
            link.end_period();
        }
        assert_eq!(link.available(0.0, 0), 880_000);
    }

    /// The port reports every 20 ms, and the period of the domain is 5 ms.
    #[test]
    fn reports_rarer_than_periods_are_samples_too() {
        let mut link = Link::new(Params { sample: Span::from_millis(5), samples: 1, ..Params::default() });
        for at in (0..=200).step_by(20) {
            let period = Span::from_millis(20);
            link.on_report(&Report { period, ..report(at, at * 400, 0, 0) });
            for _ in 0..4 {
                link.end_period();
            }
        }
        assert_eq!(link.available(0.0, 0), 580_000);
    }

    #[test]
    fn a_restarted_port_restarts_the_measurement() {
        let mut link = Link::new(Params::default());
        link.on_report(&report(0, 1_000_000, 0, 0));
        link.on_report(&report(10, 1_003_000, 0, 0));
        link.on_report(&report(20, 0, 0, 0));
        link.on_report(&report(30, 3_000, 0, 0));
        assert_eq!(available(&mut link), 680_000);
    }

    #[test]
    fn unused_rates_do_not_raise_the_available_rate_above_the_target() {
        let mut link = Link::new(Params { mode: Mode::Incremental, ..Params::default() });
        link.on_report(&report(0, 0, 0, 0));
        link.on_report(&report(10, 1_000, 1_000, 0));
        let utilisation = link.end_period();
        assert_eq!(link.available(utilisation, 100_000), 540_000);
        assert_eq!(link.available(utilisation, 900_000), 980_000);
    }
}
