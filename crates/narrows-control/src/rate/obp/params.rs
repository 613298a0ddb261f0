//! The parameters of OBP, with the sources of their defaults.

use crate::parameter::{number, time_from};
use crate::rate::PortParameters;
use crate::units::Span;

crate::parameters! {
    /// Parameters of OBP.
    pub struct Params {
        /// a: the share of the remaining bandwidth that a newcomer takes.
        pub a: f64 = 1.0, number(0.0, 1.0).from("OBP-1; ours");
        /// b: the share of the narrowest link's capacity that a newcomer takes in addition.
        pub b: f64 = 0.1, number(0.0, 1.0).from("OBP-1; ours");
        /// a': a flow that already has a rate gets this share of the sum of that rate and the bandwidth left. With a' =
        /// 1, a full link keeps unequal shares. The rates of N flows settle only if (N - 1) a' < 1. With the default,
        /// the rates of two flows settle.
        pub a_later: f64 = 0.9, number(0.01, 1.0).from("OBP-1; ours");
        /// Length of a port's measurements. The default equals the default T_max of RCP.
        pub interval: Span = Span::from_millis(10), time_from(Span::from_micros(100), Span::from_secs(2)).from("ours");
    }
}

impl PortParameters for Params {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_values_are_rejected_with_name_and_range() {
        assert_eq!(Params::default().check(), Ok(()));
        let said = |params: Params| params.check().unwrap_err().to_string();
        let nan = said(Params { b: f64::NAN, ..Params::default() });
        assert_eq!(nan, "b: found NaN, expected a number from 0 to 1");
        let none = said(Params { interval: Span::ZERO, ..Params::default() });
        assert_eq!(none, "interval: found 0, expected a time from 100us to 2s");
    }
}
