//! The constants of RCP with their sources.

use crate::parameter::{number, time_from, whole, word};
use crate::rate::PortParameters;
use crate::rate::kit::parameters::ENTRIES;
use crate::rate::kit::rtt::{RTT_MAX, RTT_MIN};
use crate::rate::uniform::{MAX_FLOWS, Signal};
use crate::units::Span;

crate::parameters! {
    /// Parameters of RCP. The defaults have a phase margin of 12.6 degrees (RCP-6); the values of [`Params::published`]
    /// have no phase margin.
    pub struct Params {
        /// Gain on the spare capacity. The default is the published value.
        pub alpha: f64 = 0.4, number(0.01, 2.0).from("RCP-1");
        /// Gain on the queue. The default is alpha^2 * sqrt(2), as in XCP (XCP-6). The published 0.4 is outside the
        /// linear region (RCP-6).
        pub beta: f64 = 0.226, number(0.0, 2.0).from("RCP-1");
        /// Share of the capacity to use. The default is ns-2's.
        pub eta: f64 = 1.0, number(0.01, 1.0).from("RCP-3");
        /// T_max: maximum time between two updates. The default is ns-2's.
        pub interval_max: Span = Span::from_millis(10), time_from(RTT_MIN, RTT_MAX).from("RCP-1");
        /// The first rate as a share of the capacity. The default is ns-2's.
        pub first_share: f64 = 0.05, number(0.0001, 1.0).from("RCP-3");
        /// Assumed average RTT d before the first packet with an RTT.
        pub rtt: Span = Span::from_millis(100), time_from(RTT_MIN, RTT_MAX).from("ours");
        /// How rates reach senders: in headers as published (`header`), or in ACKs with BRF's option (`ack`).
        pub signal: Signal = Signal::Header, word(Signal::WORDS).from("ours");
        /// Maximum number of flows whose RTTs the port measures, with `signal = "ack"`.
        pub max_flows: usize = MAX_FLOWS, whole(1, ENTRIES).from("ours");
    }
}

impl PortParameters for Params {}

impl Params {
    /// Returns the constants as published and in ns-2: alpha = beta = 0.4 (RCP-5).
    pub fn published() -> Self {
        Params { beta: 0.4, ..Params::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_values_are_rejected_with_name_and_range() {
        assert_eq!((Params::default().check(), Params::published().check()), (Ok(()), Ok(())));
        for (bad, text) in [
            (
                Params { alpha: f64::NAN, ..Params::default() },
                "alpha: found NaN, expected a number from 0.01 to 2",
            ),
            (Params { eta: 1.5, ..Params::default() }, "eta: found 1.5, expected a number from 0.01 to 1"),
            (
                Params { interval_max: Span::ZERO, ..Params::default() },
                "interval_max: found 0, expected a time from 100us to 2s",
            ),
        ] {
            assert_eq!(bad.check().unwrap_err().to_string(), text);
        }
    }
}
