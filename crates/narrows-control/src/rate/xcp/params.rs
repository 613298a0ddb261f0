//! The constants of XCP with their sources.

use crate::parameter::{Problem, number, time_from};
use crate::rate::PortParameters;
use crate::units::Span;

const SHORTEST: Span = Span::from_micros(100);
const LONGEST: Span = Span::from_secs(10);

crate::parameters! {
    /// Parameters of XCP; the defaults are those of the paper and the draft.
    pub struct Params {
        /// Gain on the spare capacity. The default is from the paper, section 3.5.
        pub alpha: f64 = 0.4, number(0.01, 2.0).from("XCP-2");
        /// Gain on the persistent queue. The default is alpha^2 * sqrt(2) (XCP-6).
        pub beta: f64 = 0.226, number(0.0, 2.0).from("XCP-2");
        /// Share of the traffic that is redistributed to make the rates of flows equal.
        pub shuffle: f64 = 0.1, number(0.0, 1.0).from("XCP-2");
        /// Maximum RTT, and so the longest control interval. The default is from the draft.
        pub rtt_max: Span = Span::from_secs(1), time_from(Span::from_millis(1), LONGEST).from("XCP-1");
        /// Shortest control interval.
        pub te_min: Span = Span::from_millis(1), time_from(SHORTEST, LONGEST).from("XCP-2");
        /// Length of the first control interval, and assumed average RTT before the first packet with an RTT.
        pub te_first: Span = Span::from_millis(50), time_from(SHORTEST, LONGEST).from("XCP-2; ours");
    }
}

impl PortParameters for Params {
    fn check_relations(&self) -> Result<(), Problem> {
        for (name, time) in [("te_min", self.te_min), ("te_first", self.te_first)] {
            if time > self.rtt_max {
                return Err(Problem::longer(name, time, "rtt_max", self.rtt_max));
            }
        }
        if self.te_first < self.te_min {
            return Err(Problem::shorter("te_first", self.te_first, "te_min", self.te_min));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_values_are_rejected_with_name_and_range() {
        assert_eq!(Params::default().check(), Ok(()));
        for (bad, text) in [
            (
                Params { shuffle: -0.1, ..Params::default() },
                "shuffle: found -0.1, expected a number from 0 to 1",
            ),
            (
                Params { te_min: Span::from_secs(2), ..Params::default() },
                "te_min: found 2s, expected a time up to rtt_max (1s)",
            ),
            (
                Params { te_first: Span::from_micros(500), ..Params::default() },
                "te_first: found 500us, expected a time from te_min (1ms) on",
            ),
        ] {
            assert_eq!(bad.check().unwrap_err().to_string(), text);
        }
        assert!(Params { beta: f64::NAN, ..Params::default() }.check().is_err());
    }
}
