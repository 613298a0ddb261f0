//! The constants of BRF with their sources.

use serde::{Deserialize, Deserializer, Serialize};

use crate::rate::kit::subscriber::Share;
use crate::units::{Rate, Span};

/// The paper's printed rules, or the repaired ones.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The printed rules wherever they can be computed, contradictions included.
    Literal,
    /// The contradictions resolved.
    #[default]
    Resolved,
}

/// A present value. This replaces the deserializer of `Option`, which accepts null and hides the type in
/// errors.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Declares [`Params`], both presets, and the form in which a scenario overrides single values.
macro_rules! params {
    ($($(#[$doc:meta])* $name:ident: $unit:ty = $literal:expr, $resolved:expr;)*) => {
        /// Parameters of BRF. In a scenario `mode` selects the preset, and other keys override it.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(from = "Overrides")]
        pub struct Params {
            /// Form of the newcomer, allocation and congestion rules, and preset of all other
            /// parameters.
            pub mode: Mode,
            $($(#[$doc])* pub $name: $unit,)*
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Overrides {
            #[serde(default)]
            mode: Mode,
            $(#[serde(default, deserialize_with = "given")] $name: Option<$unit>,)*
        }

        impl From<Overrides> for Params {
            fn from(o: Overrides) -> Self {
                let preset = match o.mode {
                    Mode::Literal => Params::literal(),
                    Mode::Resolved => Params::resolved(),
                };
                Params { mode: o.mode, $($name: o.$name.unwrap_or(preset.$name),)* }
            }
        }

        impl Params {
            /// The paper's values, or the middle of its ranges.
            pub fn literal() -> Self {
                Params { mode: Mode::Literal, $($name: $literal,)* }
            }
            /// The recommended values.
            pub fn resolved() -> Self {
                Params { mode: Mode::Resolved, $($name: $resolved,)* }
            }
        }
    };
}

params! {
    /// Share of the link to allocate. Literal mode allocates all, because the paper's rates add up
    /// to the NIC's rate (BRF-21, BRF-41).
    eta: f64 = 1.0, 0.98;
    /// A_CLS: a flow that uses less than this share of its allocation is limited (BRF-38; paper
    /// 0.95 to 1.0).
    a_cls: f64 = 0.95, 0.95;
    /// B_HEAD: a limited flow gets this multiple of its use (BRF-38; paper 1.05 to 1.10, but see
    /// [`Params::check`]).
    b_head: f64 = 1.10, 1.10;
    /// U_TH: utilisation above which the detector reports congestion (paper 0.98).
    u_th: f64 = 0.98, 0.98;
    /// Q_TH: share of the queue limit above which the detector reports congestion (paper 0.1).
    q_th: f64 = 0.1, 0.1;
    /// Queueing delay at link rate that counts as congestion; zero disables it (BRF-74).
    q_delay_max: Span = Span::ZERO, Span::from_millis(5);
    /// Fewer packets than this are not a standing queue, whatever their delay (ours). On a slow
    /// link two bursts exceed `q_delay_max`.
    q_packets_min: u32 = 0, 8;
    /// Arrivals above this multiple of C_BRF are a burst (BRF-72).
    burst_threshold: f64 = 1.02, 1.02;
    /// A_MAX: the share of C_BRF to which a burst is reduced (BRF-81; paper 0.95 to 1.0).
    a_max: f64 = 0.95, 0.98;
    /// G: time to drain a standing queue, in periods T (BRF-80; paper "one or two max RTT").
    g_periods: f64 = 1.0, 2.0;
    /// Minimum that a reduction leaves, as a share of C_BRF (BRF-80).
    f_floor: f64 = 0.0, 0.05;
    /// Minimum allocation in full packets per period T (BRF-47).
    floor_packets: f64 = 0.0, 2.0;
    /// Minimum allocation as a share of C_BRF (BRF-47).
    floor_share: f64 = 0.0, 0.001;
    /// Minimum period T (BRF-30). The paper has no minimum; in literal mode, a millisecond keeps
    /// the timer from firing all the time.
    period_min: Span = Span::from_millis(1), Span::from_millis(10);
    /// Maximum period T (BRF-30).
    period_max: Span = Span::from_secs(3600), Span::from_secs(1);
    /// Skip one period T after an allocation before measuring (BRF-36).
    settle: bool = false, true;
    /// Maximum time between runs of the detector; T if that is shorter (BRF-73).
    poll: Span = Span::from_millis(100), Span::from_millis(100);
    /// Time without a poll after which the controller counts as failed and the switch uses its own
    /// detector (BRF-105).
    controller_timeout: Span = Span::from_millis(500), Span::from_millis(500);
    /// Distribute the capacity that limited flows do not use (BRF-42).
    spread_residual: bool = false, true;
    /// Serve mice before elephants (BRF-50). The paper announces the layers but does not use them.
    layers: bool = false, true;
    /// A mouse that sends more than this multiple of its allocation plus two packets becomes an elephant
    /// (BRF-51).
    mouse_headroom: f64 = 1.25, 1.25;
    /// Let a decrease of more than 10 % pass the gate once (BRF-64).
    urgent_decrease: bool = false, false;
    /// Believe a sender that says its application does not limit it, and count gaps in the sequence
    /// numbers as sent (BRF-100). If such a flow still sends less than its rate, another switch
    /// limits it (BRF-102).
    believe_senders: bool = false, true;
    /// The unit that gets a share: each flow, or all flows of a subscriber, by address, prefix,
    /// VLAN or mark (BRF-106).
    share: Share = Share::Flow, Share::Flow;
    /// UDP's share of the link while any UDP traffic is active (BRF-21). If UDP may borrow, only the part that
    /// it needs is reserved.
    udp_share: f64 = 0.05, 0.05;
    /// Share of the link up to which UDP may borrow capacity that TCP does not use (BRF-23). 0: UDP does not borrow.
    /// It has no effect if the capacity is measured.
    udp_ceiling: f64 = 0.0, 0.0;
    /// Weight of a new sample in the predictor (BRF-31).
    predictor_weight: f64 = 0.25, 0.25;
    /// Samples that a level of the predictor needs (BRF-31).
    predictor_samples: u32 = 3, 3;
    /// Maximum number of keys in the predictor.
    predictor_entries: usize = 65_536, 65_536;
    /// RTT of a flow whose handshake was not seen (ours).
    rtt_default: Span = Span::from_millis(100), Span::from_millis(100);
    /// A flow without data for this long, and two periods, is idle (BRF-16).
    idle_after: Span = Span::from_millis(200), Span::from_millis(200);
    /// A handshake without an answer is removed after this (BRF-15).
    handshake_timeout: Span = Span::from_secs(3), Span::from_secs(3);
    /// T_gc: a flow without packets is removed after this (BRF-15).
    forget_after: Span = Span::from_secs(60), Span::from_secs(60);
    /// Minimum wait for the first ACK before a flow is advertised to other switches (BRF-63).
    ack_timer_min: Span = Span::from_secs(1), Span::from_secs(1);
    /// Maximum number of flows in the table; half a kilobyte each (ours).
    max_flows: usize = 262_144, 262_144;
    /// Maximum number of half-open handshakes; a full table discards the oldest (BRF-104).
    max_half_open: usize = 4_096, 4_096;
    /// Initial capacity if it must be measured (BRF-101). The default is ours.
    capacity_initial: Rate = Rate::from_bits_per_sec(10_000_000), Rate::from_bits_per_sec(10_000_000);
    /// Size of a first probe, as a multiple of the measured capacity (BRF-101).
    probe_gain: f64 = 1.05, 1.05;
    /// Factor by which a probe is larger than the successful one before it. With 1, all probes have the same
    /// size and are two periods apart (BRF-101, ours).
    probe_growth: f64 = 1.0, 2.0;
    /// Maximum size of a probe, as a multiple of the measured capacity (ours: a sender can at most
    /// double per RTT, BRF-104).
    probe_max: f64 = 1.05, 2.0;
}

impl Default for Params {
    fn default() -> Self {
        Params::resolved()
    }
}

/// An error in a set of parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// `name` is outside the range given as text.
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The value found.
        found: f64,
        /// The expected range.
        range: &'static str,
    },
    /// A_CLS * B_HEAD <= 1: limited flows would count as unlimited in every other cycle (BRF-39).
    Flips {
        /// The product.
        product: f64,
    },
    /// A ceiling of UDP below its share.
    LowCeiling {
        /// The value of `udp_ceiling`.
        found: f64,
        /// The value of `udp_share`.
        share: f64,
    },
    /// The paper's rules divide the capacity among flows only.
    LiteralShare {
        /// The value of `share`.
        found: Share,
    },
}

impl core::fmt::Display for Trouble {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Trouble::OutOfRange { name, found, range } => write!(f, "{name} is {found}, but must be {range}"),
            Trouble::LowCeiling { found, share } => {
                write!(f, "udp_ceiling is {found}, but must be from udp_share ({share}) to 1, or 0")
            }
            Trouble::LiteralShare { found } => {
                write!(f, "share is \"{found}\", but must be \"flow\" if mode is \"literal\"")
            }
            Trouble::Flips { product } => write!(
                f,
                "a_cls * b_head is {product:.4}, but must exceed 1: with less, a limited flow is given the full \
                 share in every other cycle (BRF-39); a_cls = 0.95 needs b_head above 1.0527"
            ),
        }
    }
}

impl std::error::Error for Trouble {}

impl Params {
    /// Checks the parameters. `Ok` may hold a warning: literal mode permits the unstable corner of
    /// BRF-39, which lies within the paper's ranges.
    pub fn check(&self) -> Result<Option<Trouble>, Trouble> {
        // (name, value, minimum (exclusive where zero is absurd), maximum, range as text)
        let ranges: [(&'static str, f64, f64, f64, &'static str); 16] = [
            ("eta", self.eta, 0.01, 1.0, "from 0.01 to 1"),
            ("a_cls", self.a_cls, 0.01, 1.0, "from 0.01 to 1"),
            ("b_head", self.b_head, 1.0, 10.0, "from 1 to 10"),
            ("u_th", self.u_th, 0.01, 10.0, "from 0.01 to 10"),
            ("q_th", self.q_th, 0.0, 1.0, "from 0 to 1"),
            ("burst_threshold", self.burst_threshold, 0.1, 10.0, "from 0.1 to 10"),
            ("a_max", self.a_max, 0.01, 1.0, "from 0.01 to 1"),
            ("g_periods", self.g_periods, 0.01, 1000.0, "from 0.01 to 1000"),
            ("f_floor", self.f_floor, 0.0, 1.0, "from 0 to 1"),
            ("floor_packets", self.floor_packets, 0.0, 1000.0, "from 0 to 1000"),
            ("floor_share", self.floor_share, 0.0, 1.0, "from 0 to 1"),
            ("udp_share", self.udp_share, 0.0, 0.9, "from 0 to 0.9"),
            ("predictor_weight", self.predictor_weight, 0.001, 1.0, "from 0.001 to 1"),
            ("probe_gain", self.probe_gain, 1.0, 2.0, "from 1 to 2"),
            ("probe_growth", self.probe_growth, 1.0, 4.0, "from 1 to 4"),
            ("probe_max", self.probe_max, 1.0, 4.0, "from 1 to 4"),
        ];
        for (name, found, least, most, range) in ranges {
            if !(least..=most).contains(&found) {
                return Err(Trouble::OutOfRange { name, found, range });
            }
        }
        for (name, span) in
            [("period_min", self.period_min), ("poll", self.poll), ("rtt_default", self.rtt_default)]
        {
            if span < Span::from_micros(10) {
                let range = "10 microseconds or more";
                return Err(Trouble::OutOfRange { name, found: span.as_nanos() as f64, range });
            }
        }
        for (name, count) in [("max_flows", self.max_flows), ("max_half_open", self.max_half_open)] {
            if count == 0 || count > u32::MAX as usize / 2 {
                return Err(Trouble::OutOfRange { name, found: count as f64, range: "from 1 to 2^31" });
            }
        }
        let ceilings = self.udp_share..=1.0;
        if self.udp_ceiling != 0.0 && !ceilings.contains(&self.udp_ceiling) {
            return Err(Trouble::LowCeiling { found: self.udp_ceiling, share: self.udp_share });
        }
        if self.mode == Mode::Literal && self.share != Share::Flow {
            return Err(Trouble::LiteralShare { found: self.share });
        }
        let product = self.a_cls * self.b_head;
        match (product > 1.0, self.mode) {
            (true, _) => Ok(None),
            (false, Mode::Literal) => Ok(Some(Trouble::Flips { product })),
            (false, Mode::Resolved) => Err(Trouble::Flips { product }),
        }
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
    fn mode_selects_the_preset() {
        assert_eq!(parse(&[]).unwrap(), Params::resolved());
        assert_eq!(parse(&[("mode", "literal")]).unwrap(), Params::literal());
        assert!(parse(&[("etta", "1")]).unwrap_err().to_string().contains("etta"));
    }

    #[test]
    fn single_values_override_the_preset() {
        let pairs = [("eta", 0.9), ("b_head", 1.2)];
        let params: Result<Params, Error> = Params::deserialize(MapDeserializer::new(pairs.into_iter()));
        assert_eq!(params.unwrap(), Params { eta: 0.9, b_head: 1.2, ..Params::resolved() });
    }

    #[test]
    fn the_papers_unstable_corner_is_rejected_or_warned_of() {
        let corner = Params { b_head: 1.05, ..Params::resolved() };
        assert!(matches!(corner.check(), Err(Trouble::Flips { .. })));
        let corner = Params { b_head: 1.05, ..Params::literal() };
        assert!(matches!(corner.check(), Ok(Some(Trouble::Flips { .. }))));
        assert_eq!(Params::resolved().check(), Ok(None));
        assert_eq!(Params::literal().check(), Ok(None));
    }

    #[test]
    fn only_the_resolved_rules_know_subscribers() {
        let share: Share = "receiver-address".parse().unwrap();
        assert_eq!(Params { share, ..Params::resolved() }.check(), Ok(None));
        let trouble = Params { share, ..Params::literal() }.check().unwrap_err();
        let text = "share is \"receiver-address\", but must be \"flow\" if mode is \"literal\"";
        assert_eq!(trouble.to_string(), text);
    }

    #[test]
    fn the_ceiling_of_udp_is_0_or_at_least_its_share() {
        let with = |udp_ceiling| Params { udp_share: 0.2, udp_ceiling, ..Params::resolved() }.check();
        assert!([0.0, 0.2, 0.95, 1.0].into_iter().all(|ceiling| with(ceiling) == Ok(None)));
        assert!([-0.5, 0.1, 1.01, f64::NAN].into_iter().all(|ceiling| with(ceiling).is_err()));
        let text = "udp_ceiling is 0.1, but must be from udp_share (0.2) to 1, or 0";
        assert_eq!(with(0.1).unwrap_err().to_string(), text);
    }

    #[test]
    fn absurd_values_are_rejected_with_name_and_range() {
        for bad in [
            Params { eta: f64::NAN, ..Params::resolved() },
            Params { eta: 2.0, ..Params::resolved() },
            Params { max_flows: 0, ..Params::resolved() },
            Params { period_min: Span::ZERO, ..Params::resolved() },
        ] {
            assert!(matches!(bad.check(), Err(Trouble::OutOfRange { .. })));
        }
        let text = Params { eta: 2.0, ..Params::resolved() }.check().unwrap_err().to_string();
        assert_eq!(text, "eta is 2, but must be from 0.01 to 1");
    }
}
