//! Every constant of PACEC in one place, with where it comes from. The paper gives none of them (PAC-23).

use serde::{Deserialize, Deserializer, Serialize};

use crate::rate::ranges;
use crate::units::{Bytes, Rate, Span};

/// Which law turns reports into rates.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Equations 5 to 9 as printed: what is left over, divided by the flows of the path. It oscillates (PAC-18).
    Literal,
    /// Max-min fair shares of what other traffic leaves (PAC-18).
    #[default]
    Resolved,
    /// The same shares of a capacity that is approached in steps, from counters of all traffic alone (PAC-19).
    Incremental,
}

/// How a rate gets from the ingress to the source (PAC-3).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// Written into a packet of the opposite direction, at most once per Tc (PAC-3a).
    InBand,
    /// By a message of its own (PAC-3b).
    #[default]
    OutOfBand,
}

/// A value that is there. `Option`'s own rule would take a null for nothing and hide the type in errors.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(deserializer).map(Some)
}

/// Parameters of PACEC. Sample and samples hold for the domain, and so does the mode if it is literal: its
/// controller takes those of its first port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Which law.
    pub mode: Mode,
    /// Ts: how often a port reports (PAC-2, PAC-23). 10 ms.
    pub sample: Span,
    /// m: samples to a control period Tc = m * Ts (PAC-11, PAC-23). 5. Tc should not be below the greatest RTT and both
    /// ways to the controller, so that an update sees the effect of the one before.
    pub samples: u32,
    /// Part of the link that is handed out (PAC-18). 0.98. The literal mode hands out all.
    pub eta: f64,
    /// w_q: weight of the queue in the utilisation (PAC-15). Ts / Tc, in literal mode 1.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub queue_weight: Option<f64>,
    /// w_q': part of the mean queue to be drained in one Tc, in resolved mode (PAC-18). 1.
    pub drain: f64,
    /// Step of the incremental mode (PAC-19). 0.5.
    pub kappa: f64,
    /// Least rate of an active flow in full packets per Tc (PAC-16). 2, in literal mode 0.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub floor_packets: Option<f64>,
    /// A flow without data for this long has ended (PAC-21). 1 s.
    pub idle_after: Span,
    /// How sources hear of their rates.
    pub signal: Signal,
    /// Flows may begin at this port's switch. Where that is known not to be so the port announces and tells nothing.
    pub edge: bool,
    /// Most flows that a port keeps (ours). The domain keeps four times as many.
    pub max_flows: usize,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            mode: Mode::Resolved,
            sample: Span::from_millis(10),
            samples: 5,
            eta: 0.98,
            queue_weight: None,
            drain: 1.0,
            kappa: 0.5,
            floor_packets: None,
            idle_after: Span::from_secs(1),
            signal: Signal::OutOfBand,
            edge: true,
            max_flows: 262_144,
        }
    }
}

impl Params {
    /// Checks the parameters; an error names the first that will not do, what was found and what would do.
    pub fn check(&self) -> Result<(), String> {
        ranges::numbers(&[
            ("eta", self.eta, 0.01, 1.0),
            ("queue_weight", self.queue_weight(), 0.0, 10.0),
            ("drain", self.drain, 0.0, 10.0),
            ("kappa", self.kappa, 0.01, 1.0),
            ("samples", f64::from(self.samples), 1.0, 1000.0),
            ("max_flows", self.max_flows as f64, 1.0, 268_435_456.0),
            ("floor_packets", self.floor_packets(), 0.0, 1000.0),
        ])?;
        ranges::spans(&[
            ("sample", self.sample, Span::from_micros(100), Span::from_secs(10)),
            ("idle_after", self.idle_after, Span::from_millis(10), Span::from_secs(3600)),
        ])
    }

    /// Tc.
    pub fn period(&self) -> Span {
        self.sample.scale(u64::from(self.samples.max(1)), 1)
    }

    /// w_q.
    pub fn queue_weight(&self) -> f64 {
        let by_mode = if self.mode == Mode::Literal { 1.0 } else { 1.0 / f64::from(self.samples.max(1)) };
        self.queue_weight.unwrap_or(by_mode)
    }

    /// Least rate of an active flow in full packets per Tc.
    fn floor_packets(&self) -> f64 {
        let by_mode = if self.mode == Mode::Literal { 0.0 } else { 2.0 };
        self.floor_packets.unwrap_or(by_mode)
    }

    /// r_min (PAC-16) where full packets are `mtu` long.
    pub fn floor(&self, mtu: Bytes) -> Rate {
        Rate::of(mtu, self.period()).mul_f64(self.floor_packets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, MapDeserializer};

    fn parse<T: Copy + IntoDeserializer<'static, Error>>(
        pairs: &[(&'static str, T)],
    ) -> Result<Params, Error> {
        Params::deserialize(MapDeserializer::new(pairs.iter().copied()))
    }

    #[test]
    fn what_is_not_named_is_the_default() {
        assert_eq!(parse::<f64>(&[]).unwrap(), Params::default());
        assert_eq!(parse(&[("queue_weight", 0.5)]).unwrap().queue_weight(), 0.5);
        let literal = parse(&[("mode", "literal"), ("signal", "in-band")]).unwrap();
        assert_eq!((literal.mode, literal.signal), (Mode::Literal, Signal::InBand));
        assert!(parse(&[("etta", 0.4)]).unwrap_err().to_string().contains("unknown field `etta`"));
    }

    #[test]
    fn mode_decides_the_weight_of_the_queue_and_the_floor() {
        let (mtu, resolved) = (Bytes::new(1500), Params::default());
        assert_eq!(resolved.period(), Span::from_millis(50));
        assert_eq!(resolved.queue_weight(), 0.2);
        assert_eq!(resolved.floor(mtu), Rate::from_bytes_per_sec(60_000));
        let literal = Params { mode: Mode::Literal, ..Params::default() };
        assert_eq!((literal.queue_weight(), literal.floor(mtu)), (1.0, Rate::ZERO));
    }

    #[test]
    fn absurd_values_are_refused_with_name_and_range() {
        assert_eq!(Params::default().check(), Ok(()));
        for (bad, text) in [
            (Params { eta: 2.0, ..Params::default() }, "eta is 2, but must be from 0.01 to 1"),
            (Params { kappa: f64::NAN, ..Params::default() }, "kappa is NaN, but must be from 0.01 to 1"),
            (Params { samples: 0, ..Params::default() }, "samples is 0, but must be from 1 to 1000"),
            (
                Params { sample: Span::ZERO, ..Params::default() },
                "sample is 0us, but must be from 0.1ms to 10s",
            ),
        ] {
            assert_eq!(bad.check(), Err(text.into()));
        }
    }
}
