//! The constants of PACEC with their sources. The paper gives no values for them (PAC-23).

use serde::{Deserialize, Deserializer, Serialize};

use crate::rate::kit::ranges;
use crate::units::{Bytes, Rate, Span};

/// The law that computes rates from reports.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Equations 5 to 9 as printed: the residual capacity over the number of flows of the path. It
    /// oscillates (PAC-18).
    Literal,
    /// Max-min fair shares of the capacity that other traffic leaves (PAC-18).
    #[default]
    Resolved,
    /// The same shares, but of a capacity that is approached in steps. This needs only counters of
    /// all traffic (PAC-19).
    Incremental,
}

/// How the ingress sends a rate to the source (PAC-3).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// In a packet of the reverse direction, at most once per Tc (PAC-3a).
    InBand,
    /// In a message of its own (PAC-3b).
    #[default]
    OutOfBand,
}

/// A present value. `Option`'s own deserializer accepts null and hides the type in errors.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(deserializer).map(Some)
}

/// Parameters of PACEC. `sample`, `samples` and literal mode apply to the whole domain: the controller uses
/// the values of its first port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// The law that computes rates.
    pub mode: Mode,
    /// Ts: time between a port's reports (PAC-2, PAC-23).
    pub sample: Span,
    /// m: samples per control period Tc = m * Ts (PAC-11, PAC-23). Tc should be at least the
    /// longest RTT plus both ways to the controller, so that an update sees the effect of the
    /// previous one.
    pub samples: u32,
    /// Share of the link to allocate (PAC-18). Literal mode allocates all.
    pub eta: f64,
    /// w_q: weight of the queue in the utilisation (PAC-15). The default is Ts / Tc, and 1 in literal mode.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub queue_weight: Option<f64>,
    /// w_q': share of the mean queue to drain in one Tc, in resolved mode (PAC-18).
    pub drain: f64,
    /// Step of the incremental mode (PAC-19).
    pub kappa: f64,
    /// Minimum rate of an active flow in full packets per Tc (PAC-16). The default is 2, and 0 in
    /// literal mode.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub floor_packets: Option<f64>,
    /// A flow without data for this long has ended (PAC-21).
    pub idle_after: Span,
    /// How sources receive their rates.
    pub signal: Signal,
    /// Whether flows may begin at this port's switch. If not, the port announces no flows and sends
    /// no rates.
    pub edge: bool,
    /// Maximum number of flows that a port keeps (ours). The domain keeps four times as many.
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
    /// Checks the parameters. An error states the first invalid parameter, what was found and what
    /// was expected.
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

    /// Minimum rate of an active flow in full packets per Tc.
    fn floor_packets(&self) -> f64 {
        let by_mode = if self.mode == Mode::Literal { 0.0 } else { 2.0 };
        self.floor_packets.unwrap_or(by_mode)
    }

    /// r_min (PAC-16) for full packets of `mtu` bytes.
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
    fn unnamed_parameters_have_defaults() {
        assert_eq!(parse::<f64>(&[]).unwrap(), Params::default());
        assert_eq!(parse(&[("queue_weight", 0.5)]).unwrap().queue_weight(), 0.5);
        let literal = parse(&[("mode", "literal"), ("signal", "in-band")]).unwrap();
        assert_eq!((literal.mode, literal.signal), (Mode::Literal, Signal::InBand));
        assert!(parse(&[("etta", 0.4)]).unwrap_err().to_string().contains("unknown field `etta`"));
    }

    #[test]
    fn mode_determines_the_weight_of_the_queue_and_the_floor() {
        let (mtu, resolved) = (Bytes::new(1500), Params::default());
        assert_eq!(resolved.period(), Span::from_millis(50));
        assert_eq!(resolved.queue_weight(), 0.2);
        assert_eq!(resolved.floor(mtu), Rate::from_bytes_per_sec(60_000));
        let literal = Params { mode: Mode::Literal, ..Params::default() };
        assert_eq!((literal.queue_weight(), literal.floor(mtu)), (1.0, Rate::ZERO));
    }

    #[test]
    fn absurd_values_are_rejected_with_name_and_range() {
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
