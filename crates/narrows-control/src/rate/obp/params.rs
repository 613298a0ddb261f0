//! The constants of OBP with their sources.

use serde::{Deserialize, Serialize};

use crate::rate::kit::ranges;
use crate::units::Span;

/// Parameters of OBP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// a: share of the bandwidth left that a newcomer takes (OBP-1). The default is ours.
    pub a: f64,
    /// b: share of the narrowest link's capacity that a newcomer takes in addition (OBP-1). The
    /// default is ours.
    pub b: f64,
    /// a': share of its own rate plus the bandwidth left that a flow takes later (OBP-1). With a' = 1, a full
    /// link keeps unequal shares. N flows settle only if (N - 1) a' < 1. The default of 0.9 is ours; with it,
    /// two flows settle.
    pub a_later: f64,
    /// Length of a port's measurements. The default of 10 ms is ours, as in RCP.
    pub interval: Span,
}

impl Default for Params {
    fn default() -> Self {
        Params { a: 1.0, b: 0.1, a_later: 0.9, interval: Span::from_millis(10) }
    }
}

impl Params {
    /// Checks the parameters. An error states the first invalid parameter, what was found and what
    /// was expected.
    pub fn check(&self) -> Result<(), String> {
        ranges::numbers(&[
            ("a", self.a, 0.0, 1.0),
            ("b", self.b, 0.0, 1.0),
            ("a_later", self.a_later, 0.01, 1.0),
        ])?;
        ranges::spans(&[("interval", self.interval, Span::from_micros(100), Span::from_secs(2))])
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
    fn unnamed_parameters_have_defaults_and_absurd_ones_are_rejected() {
        assert_eq!(parse(&[]).unwrap(), Params::default());
        assert!(parse(&[("c", 0.4)]).unwrap_err().to_string().contains("unknown field `c`"));
        assert_eq!(Params::default().check(), Ok(()));
        let said = |params: Params| params.check().unwrap_err();
        assert_eq!(said(Params { b: f64::NAN, ..Params::default() }), "b is NaN, but must be from 0 to 1");
        let none = Params { interval: Span::ZERO, ..Params::default() };
        assert_eq!(said(none), "interval is 0us, but must be from 0.1ms to 2s");
    }
}
