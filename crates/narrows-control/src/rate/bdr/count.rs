//! Estimates the number of flows from the reports of designated packets. The state has a small, fixed size, because
//! there is no flow table.
//!
//! A flow's reports add up to its lifetime, because each report is the time since the flow's previous report. The three
//! estimators differ in the time over which they average. An estimate may be below 1.

use super::params::{Estimator, Params};
use crate::parameter::Reading;
use crate::units::{Span, Time};

/// Number of buckets of the sliding estimator. Each bucket is tau / 2 long (BDR-21).
const BUCKETS: usize = 10;

/// One of the three estimators. Times are in seconds; `tau` is [`Params::tau`].
#[derive(Clone, Debug)]
pub(super) enum Count {
    Lifetime(Lifetime),
    Exponential(Exponential),
    Sliding(Sliding),
}

impl Count {
    pub(super) fn new(params: &Params, now: Time) -> Self {
        match (params.mode, params.estimator) {
            (Reading::Literal, _) => Count::Lifetime(Lifetime { since: now, total: 0.0 }),
            (Reading::Resolved, Estimator::Exponential) => {
                Count::Exponential(Exponential { value: 0.0, at: now })
            }
            (Reading::Resolved, Estimator::Sliding) => {
                Count::Sliding(Sliding::new(now, params.tau(params.t_rep_initial.as_secs_f64())))
            }
        }
    }

    /// Counts a designated packet that reports the time `t_rep`.
    pub(super) fn report(&mut self, now: Time, t_rep: f64, tau: f64) {
        match self {
            Count::Lifetime(c) => c.total += t_rep,
            Count::Exponential(c) => {
                c.value = c.read(now, tau) + t_rep / tau;
                c.at = c.at.max(now);
            }
            Count::Sliding(c) => {
                c.advance(now, tau);
                c.sum += t_rep;
            }
        }
    }

    /// Returns the number of flows, not necessarily an integer; at least 0.
    pub(super) fn read(&self, now: Time, tau: f64) -> f64 {
        match self {
            Count::Lifetime(c) => c.read(now),
            Count::Exponential(c) => c.read(now, tau),
            Count::Sliding(c) => c.read(now, tau),
        }
    }
}

/// Equation (1): the mean number of flows since the router was started. This estimator cannot follow changes
/// (BDR-D1).
#[derive(Clone, Debug)]
pub(super) struct Lifetime {
    /// The start of the paper's `router_time`.
    since: Time,
    /// The paper's `total_time_flows`: the sum of all reports, seconds.
    total: f64,
}

impl Lifetime {
    fn read(&self, now: Time) -> f64 {
        let life = now.since(self.since).as_secs_f64();
        if life > 0.0 { self.total / life } else { 0.0 }
    }
}

/// BDR-21: Nhat = Nhat exp(-dt / tau) + t_rep / tau.
#[derive(Clone, Debug)]
pub(super) struct Exponential {
    value: f64,
    at: Time,
}

impl Exponential {
    fn read(&self, now: Time, tau: f64) -> f64 {
        self.value * libm::exp(-now.since(self.at).as_secs_f64() / tau)
    }
}

/// The alternative of BDR-21: the sum of the reports in the last ten buckets, divided by the total length of these
/// buckets. A complete bucket keeps its length when tau changes. Buckets that lie before the start of the estimator are
/// empty.
#[derive(Clone, Debug)]
pub(super) struct Sliding {
    /// The complete buckets, in a ring. Each entry is the sum of a bucket's reports and the length of the bucket.
    full: [(f64, f64); BUCKETS - 1],
    oldest: usize,
    /// The sum of the reports in the current bucket, and the start of this bucket.
    sum: f64,
    began: Time,
}

impl Sliding {
    fn new(now: Time, tau: f64) -> Self {
        Sliding { full: [(0.0, tau / 2.0); BUCKETS - 1], oldest: 0, sum: 0.0, began: now }
    }

    /// Completes the buckets whose time has passed.
    fn advance(&mut self, now: Time, tau: f64) {
        let length = tau / 2.0;
        // If all buckets have expired, start again. Without this check, the loop below could go round the ring several
        // times.
        if now.since(self.began).as_secs_f64() >= length * BUCKETS as f64 {
            *self = Sliding::new(now, tau);
        }
        let step = Span::from_secs_f64(length);
        while now.since(self.began) >= step {
            if let Some(bucket) = self.full.get_mut(self.oldest) {
                *bucket = (self.sum, length);
            }
            self.oldest = (self.oldest + 1) % self.full.len();
            self.sum = 0.0;
            self.began += step;
        }
    }

    fn read(&self, now: Time, tau: f64) -> f64 {
        let mut current = self.clone();
        current.advance(now, tau);
        let open = (current.sum, now.since(current.began).as_secs_f64());
        let (sum, length) = current.full.iter().fold(open, |all, one| (all.0 + one.0, all.1 + one.1));
        sum / length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn count(mode: Reading, estimator: Estimator) -> Count {
        Count::new(&Params { mode, estimator, ..Params::default() }, Time::ZERO)
    }

    fn exponential() -> Count {
        count(Reading::Resolved, Estimator::Exponential)
    }

    fn at(secs: f64) -> Time {
        Time::from_secs_f64(secs)
    }

    /// Reports for `flows` flows from the time `from` to the time `to`. Each flow reports every 0.1 s, and the reports
    /// are evenly spaced.
    fn steady(count: &mut Count, flows: u32, from: f64, to: f64) {
        let every = 0.1 / f64::from(flows);
        let reports = ((to - from) / every + 0.5) as u32;
        for i in 1..=reports {
            count.report(at(from + f64::from(i) * every), 0.1, 0.5);
        }
    }

    /// BDR-D1, TV-D2: ten seconds after a step from 100 to 400 flows, the paper's estimator still counts only 127
    /// flows.
    #[test]
    fn tv_d2_the_lifetime_average_cannot_follow_bdr_d1() {
        let mut literal = count(Reading::Literal, Estimator::Exponential);
        steady(&mut literal, 100, 0.0, 100.0);
        assert!((literal.read(at(100.0), 0.5) - 100.0).abs() < 1e-6);
        steady(&mut literal, 400, 100.0, 110.0);
        let read = literal.read(at(110.0), 0.5);
        assert!((read - 127.27).abs() < 0.005, "{read}");
    }

    /// TV-D2: one second after the step, the expected count is 400 - 300 exp(-2). The reports cause a ripple of 0.2
    /// flows.
    #[test]
    fn tv_d2_the_exponential_window_follows() {
        let mut count = exponential();
        steady(&mut count, 100, 0.0, 20.0);
        steady(&mut count, 400, 20.0, 21.0);
        let read = count.read(at(21.0), 0.5);
        assert!((read - 359.4).abs() < 0.2, "{read}");
    }

    #[test]
    fn tv_d9_one_step_of_the_filter() {
        let mut count = Count::Exponential(Exponential { value: 10.0, at: Time::ZERO });
        count.report(at(0.1), 0.1, 0.5);
        let read = count.read(at(0.1), 0.5);
        assert!((read - 8.3873).abs() < 5e-5, "{read}");
    }

    #[test]
    fn the_sliding_window_reads_the_true_number_and_forgets_in_five_tau() {
        let mut count = count(Reading::Resolved, Estimator::Sliding);
        steady(&mut count, 100, 0.0, 5.0);
        assert!((count.read(at(5.0), 0.5) - 100.0).abs() < 0.5);
        steady(&mut count, 400, 5.0, 6.0);
        // The window is 2.25 s to 2.5 s long. In its last second there are 400 flows, and before that 100.
        let read = count.read(at(6.0), 0.5);
        assert!((100.0 + 300.0 / 2.5..100.0 + 300.0 / 2.2).contains(&read), "{read}");
        steady(&mut count, 400, 6.0, 7.5);
        assert!((count.read(at(7.5), 0.5) - 400.0).abs() < 1.0);
        assert_eq!(count.read(at(10.1), 0.5), 0.0);
    }

    #[test]
    fn a_day_of_silence_needs_no_loop_and_a_day_of_reports_no_memory() {
        let day = Time::ZERO + Span::from_secs(86_400);
        for mut count in [
            exponential(),
            count(Reading::Resolved, Estimator::Sliding),
            count(Reading::Literal, Estimator::Sliding),
        ] {
            count.report(at(1.0), 0.1, 0.2);
            assert!((0.0..1e-5).contains(&count.read(day, 0.2)));
            assert!(count.read(Time::ZERO, 0.2).is_finite() && count.read(Time::NEVER, 0.2).is_finite());
        }
    }

    /// A designated packet reads the count just after its own report, when the count is highest. There is one flow, and
    /// tau is five times the time between reports. So the packet reads 0.2 / (1 - exp(-0.2)), although the mean over
    /// time is 1.
    #[test]
    fn a_lone_flow_reads_itself_as_a_tenth_more_than_one() {
        let mut count = exponential();
        steady(&mut count, 1, 0.0, 20.0);
        let (after, before) = (count.read(at(20.0), 0.5), count.read(at(20.099_999), 0.5));
        assert!((after - 1.1033).abs() < 1e-3 && (before - 0.9033).abs() < 1e-3, "{after} {before}");
    }
}
