//! The constants of RCP with their sources.

use serde::{Deserialize, Serialize};

use crate::rate::kit::ranges;
use crate::rate::kit::rtt::{RTT_MAX, RTT_MIN};
use crate::rate::uniform::{self, Signal};
use crate::units::Span;

/// Parameters of RCP. The defaults have a phase margin of 12.6 degrees (RCP-6); [`Params::published`] has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Gain on the spare capacity (RCP-1). The default is the published value.
    pub alpha: f64,
    /// Gain on the queue (RCP-1). The default is alpha^2 * sqrt(2), as in XCP (XCP-6). The
    /// published 0.4 is outside the linear region (RCP-6).
    pub beta: f64,
    /// Share of the capacity to use (RCP-3). The default is ns-2's.
    pub eta: f64,
    /// T_max: maximum time between two updates (RCP-1). The default is ns-2's.
    pub interval_max: Span,
    /// The first rate as a share of the capacity (RCP-3). The default is ns-2's.
    pub first_share: f64,
    /// d before the first packet with an RTT. The default is ours.
    pub rtt: Span,
    /// How rates reach senders: in headers, as published, or in ACKs with BRF's option (ours).
    pub signal: Signal,
    /// Maximum number of flows whose RTTs the port measures, with `signal = "ack"` (ours).
    pub max_flows: usize,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            alpha: 0.4,
            beta: 0.226,
            eta: 1.0,
            interval_max: Span::from_millis(10),
            first_share: 0.05,
            rtt: Span::from_millis(100),
            signal: Signal::Header,
            max_flows: uniform::MAX_FLOWS,
        }
    }
}

impl Params {
    /// The constants as published and in ns-2: alpha = beta = 0.4 (RCP-5).
    pub fn published() -> Self {
        Params { beta: 0.4, ..Params::default() }
    }

    /// Checks the parameters. An error states the first invalid parameter, what was found and what
    /// was expected.
    pub fn check(&self) -> Result<(), String> {
        ranges::numbers(&[
            ("alpha", self.alpha, 0.01, 2.0),
            ("beta", self.beta, 0.0, 2.0),
            ("eta", self.eta, 0.01, 1.0),
            ("first_share", self.first_share, 0.0001, 1.0),
        ])?;
        ranges::spans(&[
            ("interval_max", self.interval_max, RTT_MIN, RTT_MAX),
            ("rtt", self.rtt, RTT_MIN, RTT_MAX),
        ])?;
        uniform::check_max_flows(self.max_flows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::value::{Error, MapDeserializer};

    fn parse(pairs: &[(&'static str, f64)]) -> Result<Params, Error> {
        Params::deserialize(MapDeserializer::new(pairs.iter().copied()))
    }

    #[test]
    fn unnamed_parameters_have_defaults() {
        assert_eq!(parse(&[]).unwrap(), Params::default());
        assert_eq!(parse(&[("beta", 0.4)]).unwrap(), Params::published());
        assert!(parse(&[("betta", 0.4)]).unwrap_err().to_string().contains("unknown field `betta`"));
    }

    #[test]
    fn absurd_values_are_rejected_with_name_and_range() {
        assert_eq!(Params::default().check(), Ok(()));
        assert_eq!(Params::published().check(), Ok(()));
        for (bad, text) in [
            (Params { alpha: f64::NAN, ..Params::default() }, "alpha is NaN, but must be from 0.01 to 2"),
            (Params { eta: 1.5, ..Params::default() }, "eta is 1.5, but must be from 0.01 to 1"),
            (
                Params { interval_max: Span::ZERO, ..Params::default() },
                "interval_max is 0us, but must be from 0.1ms to 2s",
            ),
        ] {
            assert_eq!(bad.check(), Err(text.into()));
        }
    }
}
