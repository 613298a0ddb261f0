//! The constants of XCP with their sources.

use serde::{Deserialize, Serialize};

use crate::rate::kit::ranges;
use crate::units::Span;

/// Parameters of XCP; the defaults are those of the paper and the draft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Gain on the spare capacity (XCP-2). The default is from the paper, section 3.5.
    pub alpha: f64,
    /// Gain on the persistent queue (XCP-2). The default is alpha^2 * sqrt(2) (XCP-6).
    pub beta: f64,
    /// Share of the traffic that is redistributed to make flows equal (XCP-2).
    pub shuffle: f64,
    /// Maximum RTT (XCP-1), and so the longest control interval. The default is from the draft.
    pub rtt_max: Span,
    /// Shortest control interval (XCP-2).
    pub te_min: Span,
    /// The first control interval, and the average RTT before the first packet with an RTT (XCP-2).
    /// The default is ours.
    pub te_first: Span,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            alpha: 0.4,
            beta: 0.226,
            shuffle: 0.1,
            rtt_max: Span::from_secs(1),
            te_min: Span::from_millis(1),
            te_first: Span::from_millis(50),
        }
    }
}

impl Params {
    /// Checks the parameters. An error states the first invalid parameter, what was found and what
    /// was expected.
    pub fn check(&self) -> Result<(), String> {
        ranges::numbers(&[
            ("alpha", self.alpha, 0.01, 2.0),
            ("beta", self.beta, 0.0, 2.0),
            ("shuffle", self.shuffle, 0.0, 1.0),
        ])?;
        ranges::spans(&[
            ("rtt_max", self.rtt_max, Span::from_millis(1), Span::from_secs(10)),
            ("te_min", self.te_min, Span::from_micros(100), self.rtt_max),
            ("te_first", self.te_first, self.te_min, self.rtt_max),
        ])
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
        assert_eq!(parse(&[("shuffle", 0.2)]).unwrap(), Params { shuffle: 0.2, ..Params::default() });
        assert!(parse(&[("gamma", 0.2)]).unwrap_err().to_string().contains("unknown field `gamma`"));
    }

    #[test]
    fn absurd_values_are_rejected_with_name_and_range() {
        assert_eq!(Params::default().check(), Ok(()));
        for (bad, text) in [
            (Params { shuffle: -0.1, ..Params::default() }, "shuffle is -0.1, but must be from 0 to 1"),
            (
                Params { te_min: Span::from_secs(2), ..Params::default() },
                "te_min is 2s, but must be from 0.1ms to 1s",
            ),
        ] {
            assert_eq!(bad.check(), Err(text.into()));
        }
        assert!(Params { beta: f64::NAN, ..Params::default() }.check().is_err());
        assert!(Params { te_first: Span::ZERO, ..Params::default() }.check().is_err());
    }
}
