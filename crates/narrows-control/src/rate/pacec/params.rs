//! The constants of PACEC with their sources. The paper gives no values for these constants (PAC-23).

use crate::parameter::{flag, number, time_from, whole, word};
use crate::rate::PortParameters;
use crate::units::{Bytes, Rate, Span};

crate::words! {
    /// The law that computes rates from reports.
    pub enum Mode {
        /// Equations 5 to 9 as printed: a path's residual capacity divided by the number of its flows. This law
        /// oscillates (PAC-18).
        Literal = "literal",
        /// Max-min fair shares of the capacity that other traffic leaves (PAC-18).
        Resolved = "resolved",
        /// An equal share of the same capacity for every flow on a link (PAC-18a). If a flow uses less than its share,
        /// the rest of the share stays idle.
        Equal = "equal",
        /// Max-min fair shares as in `resolved`, but the total rate of a link approaches the capacity in steps. This
        /// mode needs only counters of all traffic (PAC-19).
        Incremental = "incremental",
    }
}

crate::words! {
    /// How the ingress sends a rate to the source (PAC-3).
    pub enum Signal {
        /// In packets of the reverse direction, at most once per Tc or per 100 ms, whichever is shorter (PAC-3a).
        InBand = "in-band",
        /// In a separate message (PAC-3b).
        OutOfBand = "out-of-band",
    }
}

crate::parameters! {
    /// Parameters of PACEC. The controller uses `sample` and `samples` of its first port for the whole domain. The
    /// controller takes `mode` from the first port that is not `incremental`.
    pub struct Params {
        /// The law that computes rates.
        pub mode: Mode = Mode::Resolved, word(Mode::WORDS).from("PAC-18, PAC-18a, PAC-19");
        /// Ts: time between a port's reports.
        pub sample: Span = Span::from_millis(10), time_from(Span::from_micros(100), Span::from_secs(10)).from("PAC-2, PAC-23");
        /// m: samples per control period Tc = m * Ts. Tc should be at least the longest RTT plus the delays to and
        /// from the controller, so that an update sees the effect of the previous update.
        pub samples: u32 = 5, whole(1, 1000).from("PAC-11, PAC-23");
        /// Share of the link to allocate. Literal mode allocates the whole link.
        pub eta: f64 = 0.98, number(0.01, 1.0).from("PAC-18");
        /// w_q: weight of the queue in the utilisation. `none` means 1 in literal mode, and Ts / Tc in the other modes.
        pub queue_weight: Option<f64> = None, number(0.0, 10.0).or_none().from("PAC-15");
        /// w_q': share of the mean queue to drain in one Tc, in the modes `resolved` and `equal`.
        pub drain: f64 = 1.0, number(0.0, 10.0).from("PAC-18");
        /// Incremental mode: the total rate of a link grows per Tc by this share of its unused capacity.
        pub kappa: f64 = 0.5, number(0.01, 1.0).from("PAC-19");
        /// Minimum rate of an active flow in full packets per Tc. `none` means 0 in literal mode, and 2 in the other
        /// modes.
        pub floor_packets: Option<f64> = None, number(0.0, 1000.0).or_none().from("PAC-16");
        /// After this time without data, a flow is assumed to have ended.
        pub idle_after: Span = Span::from_secs(1), time_from(Span::from_millis(10), Span::from_secs(3600)).from("PAC-21");
        /// How sources receive their rates.
        pub signal: Signal = Signal::OutOfBand, word(Signal::WORDS).from("PAC-3");
        /// Whether flows may begin at this port's switch. If not, the port announces no flows and sends no rates.
        pub edge: bool = true, flag().from("ours");
        /// Maximum number of flows that a port keeps. The SDN controller keeps at most four times this number of flows.
        pub max_flows: usize = 262_144, whole(1, 268_435_456).from("ours");
    }
}

impl PortParameters for Params {}

/// Maximum time between two writes of a flow's rate in band (ours). A rate is valid until the next update (PAC-4). But
/// after 200 ms without a rate, senders of BRF assume that their switch has failed (BRF-92).
const REWRITTEN: Span = Span::from_millis(100);

impl Params {
    /// Returns Tc, the control period.
    pub fn period(&self) -> Span {
        self.sample.scale(u64::from(self.samples.max(1)), 1)
    }

    /// Returns the minimum time between two in-band writes of a flow's rate: Tc (PAC-3a), but at most `REWRITTEN`.
    pub fn rewritten(&self) -> Span {
        self.period().min(REWRITTEN)
    }

    /// Returns w_q, the weight of the queue in the utilisation.
    pub fn queue_weight(&self) -> f64 {
        let by_mode = if self.mode == Mode::Literal { 1.0 } else { 1.0 / f64::from(self.samples.max(1)) };
        self.queue_weight.unwrap_or(by_mode)
    }

    /// Returns the minimum rate of an active flow in full packets per Tc.
    fn floor_packets(&self) -> f64 {
        let by_mode = if self.mode == Mode::Literal { 0.0 } else { 2.0 };
        self.floor_packets.unwrap_or(by_mode)
    }

    /// Returns r_min (PAC-16) for full packets of `mtu` bytes.
    pub fn floor(&self, mtu: Bytes) -> Rate {
        Rate::of(mtu, self.period()).mul_f64(self.floor_packets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_determines_the_weight_of_the_queue_and_the_floor() {
        let (mtu, resolved) = (Bytes::new(1500), Params::default());
        assert_eq!(resolved.period(), Span::from_millis(50));
        assert_eq!(resolved.queue_weight(), 0.2);
        assert_eq!(resolved.floor(mtu), Rate::from_bytes_per_sec(60_000));
        let literal = Params { mode: Mode::Literal, ..Params::default() };
        assert_eq!((literal.queue_weight(), literal.floor(mtu)), (1.0, Rate::ZERO));
        assert_eq!(Params { queue_weight: Some(0.5), ..literal }.queue_weight(), 0.5);
    }

    #[test]
    fn absurd_values_are_rejected_with_name_and_range() {
        assert_eq!(Params::default().check(), Ok(()));
        let default = Params::default;
        for (bad, text) in [
            (Params { eta: 2.0, ..default() }, "eta: found 2, expected a number from 0.01 to 1"),
            (Params { kappa: f64::NAN, ..default() }, "kappa: found NaN, expected a number from 0.01 to 1"),
            (Params { samples: 0, ..default() }, "samples: found 0, expected a whole number from 1 to 1000"),
            (
                Params { sample: Span::ZERO, ..default() },
                "sample: found 0, expected a time from 100us to 10s",
            ),
        ] {
            assert_eq!(bad.check().unwrap_err().to_string(), text);
        }
    }
}
