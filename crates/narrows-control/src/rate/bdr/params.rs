//! The constants of BDR with their sources.

use crate::feedback::report::LIVED_MAX;
use crate::parameter::{Problem, Reading, flag, number, time_from, word};
use crate::rate::PortParameters;
use crate::rate::uniform::Signal;
use crate::units::Span;

const SHORTEST: Span = Span::from_millis(1);
const LONGEST: Span = Span::from_secs(3600);

crate::words! {
    /// How resolved mode counts flows (BDR-21). In literal mode, the only estimator is the paper's average over the
    /// router's life.
    pub enum Estimator {
        /// The weight of a report decays by a factor of e per tau.
        Exponential = "exponential",
        /// A report has full weight for five tau, in ten buckets of tau / 2.
        Sliding = "sliding",
    }
}

crate::parameters! {
    /// Parameters of BDR at a port.
    pub struct Params {
        /// Use the paper's gains in packets (`literal`), or rates (`resolved`). Literal mode ignores the parameters
        /// below, except `t_rep_*`.
        pub mode: Reading = Reading::Resolved, word(Reading::WORDS).from("the BDR paper");
        /// Share of the link to allocate.
        pub eta: f64 = 0.98, number(0.01, 1.0).from("BDR-23");
        /// Minimum time constant tau of the flow count.
        pub tau_min: Span = Span::from_millis(200), time_from(SHORTEST, LONGEST).from("BDR-21");
        /// Maximum tau.
        pub tau_max: Span = Span::from_secs(2), time_from(SHORTEST, LONGEST).from("BDR-21");
        /// tau divided by the mean time between reports.
        pub tau_factor: f64 = 5.0, number(0.1, 1000.0).from("BDR-21");
        /// T_q, the time to drain a queue, divided by the mean time between reports.
        pub t_q_factor: f64 = 2.0, number(0.1, 1000.0).from("BDR-23");
        /// If flows are limited elsewhere, distribute the bandwidth that they leave unused.
        pub redistribution: bool = true, flag().from("BDR-24");
        /// Relative growth of the share per mean time between reports, while the link is not full.
        pub redistribution_step: f64 = 0.1, number(0.0, 1.0).from("BDR-24");
        /// The link is not full if its utilisation is below this share of `eta`.
        pub u_threshold: f64 = 0.9, number(0.0, 1.0).from("BDR-24");
        /// A queue above this share of the buffer ends redistribution.
        pub queue_threshold: f64 = 0.01, number(0.0, 1.0).from("BDR-24");
        /// If more flows than usual have sent a SYN but no data yet, count half of the excess.
        pub anticipation: bool = true, flag().from("BDR-22");
        /// How the number of flows is estimated.
        pub estimator: Estimator = Estimator::Exponential, word(Estimator::WORDS).from("BDR-21");
        /// Assumed mean time between reports, before the first report.
        pub t_rep_initial: Span = Span::from_millis(100), time_from(SHORTEST, LONGEST).from("ours");
        /// Maximum time counted for a report. If an idle sender or a false report states a longer time, the port uses
        /// this maximum. So a report adds at most t_rep_max / tau to the number of flows. If signal is ack, t_rep_max
        /// is at most 4.194303 s, because a report in a TCP option cannot contain a longer time.
        pub t_rep_max: Span = Span::from_secs(2), time_from(SHORTEST, LONGEST).from("ours");
        /// How rates reach senders: in headers as published (`header`), or in ACKs with BRF's option (`ack`). With
        /// `ack`, the senders must be `brf` with `designate`. An ACK carries a rate, not a gain, so ACKs require
        /// resolved mode.
        pub signal: Signal = Signal::Header, word(Signal::WORDS).from("ours");
    }
}

impl PortParameters for Params {
    fn check_relations(&self) -> Result<(), Problem> {
        if self.tau_min > self.tau_max {
            return Err(Problem::longer("tau_min", self.tau_min, "tau_max", self.tau_max));
        }
        if self.signal == Signal::Ack && self.mode == Reading::Literal {
            let expected = "resolved if signal is ack: an ACK carries a rate, and literal BDR gives gains";
            return Err(Problem::relation("mode", "\"literal\"", expected));
        }
        if self.signal == Signal::Ack && self.t_rep_max > LIVED_MAX {
            return Err(Problem::longer(
                "t_rep_max",
                self.t_rep_max,
                "the longest time in a report",
                LIVED_MAX,
            ));
        }
        Ok(())
    }
}

impl Params {
    /// Returns the time constant of the flow count for reports `mean` seconds apart (BDR-21), seconds. Never zero.
    pub(super) fn tau(&self, mean: f64) -> f64 {
        (self.tau_factor * mean).min(self.tau_max.as_secs_f64()).max(self.tau_min.as_secs_f64()).max(1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_parameter_and_its_range() {
        let said = |params: Params| params.check().unwrap_err().to_string();
        let d = Params::default;
        assert_eq!(d().check(), Ok(()));
        assert_eq!(said(Params { eta: 2.0, ..d() }), "eta: found 2, expected a number from 0.01 to 1");
        assert_eq!(said(Params { eta: f64::NAN, ..d() }), "eta: found NaN, expected a number from 0.01 to 1");
        let span = said(Params { t_rep_max: Span::ZERO, ..d() });
        assert_eq!(span, "t_rep_max: found 0, expected a time from 1ms to 3600s");
        let order = said(Params { tau_min: Span::from_secs(3), ..d() });
        assert_eq!(order, "tau_min: found 3s, expected a time up to tau_max (2s)");
        let long = Params { t_rep_max: Span::from_secs(5), ..d() };
        assert_eq!(long.check(), Ok(()), "headers have room for any time");
        let report = said(Params { signal: Signal::Ack, ..long });
        let expected = "expected a time up to the longest time in a report (4194303us)";
        assert_eq!(report, format!("t_rep_max: found 5s, {expected}"));
        assert_eq!(Params { signal: Signal::Ack, t_rep_max: LIVED_MAX, ..d() }.check(), Ok(()));
    }
}
