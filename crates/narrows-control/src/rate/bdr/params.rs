//! The constants of BDR with their sources.

use serde::{Deserialize, Serialize};

pub use crate::rate::brf::Mode;
use crate::rate::kit::ranges;
use crate::rate::uniform::{self, Signal};
use crate::units::Span;

/// How resolved mode counts flows (BDR-21). Literal mode has only the paper's average over the
/// router's life.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimator {
    /// The weight of a report decays by e per tau.
    #[default]
    Exponential,
    /// A report has full weight for five tau, in ten buckets of tau / 2.
    Sliding,
}

/// Parameters of BDR at a port. Unspecified ones have defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Use the paper's gains in packets, or absolute rates. Literal mode uses only `t_rep_*` of the
    /// parameters below.
    pub mode: Mode,
    /// Share of the link to allocate (BDR-23).
    pub eta: f64,
    /// Minimum time constant tau of the flow count (BDR-21).
    pub tau_min: Span,
    /// Maximum tau (BDR-21).
    pub tau_max: Span,
    /// tau divided by the mean time between reports (BDR-21).
    pub tau_factor: f64,
    /// T_q, the time to drain a queue, divided by the mean time between reports (BDR-23).
    pub t_q_factor: f64,
    /// Distribute the bandwidth that flows limited elsewhere do not use (BDR-24).
    pub redistribution: bool,
    /// Growth of the share per mean time between reports while the link is not full (BDR-24).
    pub redistribution_step: f64,
    /// Share of eta below which the link is not full (BDR-24).
    pub u_threshold: f64,
    /// Share of the buffer above which a queue ends redistribution (BDR-24).
    pub queue_threshold: f64,
    /// Count flows that have sent a SYN but no data, if there are more such flows than usual
    /// (BDR-22).
    pub anticipation: bool,
    /// How flows are counted (BDR-21).
    pub estimator: Estimator,
    /// Mean time between reports that is assumed before the first report (ours).
    pub t_rep_initial: Span,
    /// Maximum of a report (ours). A larger report comes from an idle or a false sender. This
    /// maximum equals the largest tau, so that one report never counts as more than one flow.
    pub t_rep_max: Span,
    /// How rates reach senders: in headers, as published, or in ACKs with BRF's option (ours). An
    /// ACK carries a rate, not a gain, so ACKs require resolved mode.
    pub signal: Signal,
    /// Maximum number of flows that the port reports on, with `signal = "ack"` (ours).
    pub max_flows: usize,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            mode: Mode::Resolved,
            eta: 0.98,
            tau_min: Span::from_millis(200),
            tau_max: Span::from_secs(2),
            tau_factor: 5.0,
            t_q_factor: 2.0,
            redistribution: true,
            redistribution_step: 0.1,
            u_threshold: 0.9,
            queue_threshold: 0.01,
            anticipation: true,
            estimator: Estimator::Exponential,
            t_rep_initial: Span::from_millis(100),
            t_rep_max: Span::from_secs(2),
            signal: Signal::Header,
            max_flows: uniform::MAX_FLOWS,
        }
    }
}

impl Params {
    /// Checks the parameters. An error states the first invalid parameter, what was found and what
    /// was expected.
    pub fn check(&self) -> Result<(), String> {
        ranges::numbers(&[
            ("eta", self.eta, 0.01, 1.0),
            ("tau_factor", self.tau_factor, 0.1, 1000.0),
            ("t_q_factor", self.t_q_factor, 0.1, 1000.0),
            ("redistribution_step", self.redistribution_step, 0.0, 1.0),
            ("u_threshold", self.u_threshold, 0.0, 1.0),
            ("queue_threshold", self.queue_threshold, 0.0, 1.0),
        ])?;
        let (least, most) = (Span::from_millis(1), Span::from_secs(3600));
        ranges::spans(&[
            ("tau_max", self.tau_max, least, most),
            ("tau_min", self.tau_min, least, self.tau_max),
            ("t_rep_initial", self.t_rep_initial, least, most),
            ("t_rep_max", self.t_rep_max, least, most),
        ])?;
        if self.signal == Signal::Ack && self.mode == Mode::Literal {
            return Err("mode is literal, but must be resolved if signal is ack: an ACK carries a rate, and literal BDR gives \
                        gains"
                .into());
        }
        uniform::check_max_flows(self.max_flows)
    }

    /// The time constant of the flow count for reports `mean` seconds apart (BDR-21), seconds.
    /// Never zero.
    pub(super) fn tau(&self, mean: f64) -> f64 {
        (self.tau_factor * mean).min(self.tau_max.as_secs_f64()).max(self.tau_min.as_secs_f64()).max(1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::value::{Error, MapDeserializer};

    fn parse(pairs: &[(&str, &str)]) -> Result<Params, Error> {
        Params::deserialize(MapDeserializer::new(pairs.iter().copied()))
    }

    #[test]
    fn a_scenario_overrides_the_parameters_it_names() {
        assert_eq!(parse(&[]).unwrap(), Params::default());
        let literal = parse(&[("mode", "literal"), ("estimator", "sliding")]).unwrap();
        let (mode, estimator) = (Mode::Literal, Estimator::Sliding);
        assert_eq!(literal, Params { mode, estimator, ..Params::default() });
        assert!(parse(&[("etta", "1")]).unwrap_err().to_string().contains("etta"));
        assert!(parse(&[("mode", "printed")]).unwrap_err().to_string().contains("printed"));
    }

    #[test]
    fn an_error_names_the_parameter_and_its_range() {
        let said = |params: Params| params.check().unwrap_err();
        let d = Params::default;
        assert_eq!(d().check(), Ok(()));
        assert_eq!(said(Params { eta: 2.0, ..d() }), "eta is 2, but must be from 0.01 to 1");
        assert_eq!(said(Params { eta: f64::NAN, ..d() }), "eta is NaN, but must be from 0.01 to 1");
        let span = said(Params { t_rep_max: Span::ZERO, ..d() });
        assert_eq!(span, "t_rep_max is 0us, but must be from 1ms to 3600s");
        let order = said(Params { tau_min: Span::from_secs(3), ..d() });
        assert_eq!(order, "tau_min is 3s, but must be from 1ms to 2s");
    }
}
