//! The constants of BRF with their sources.

use super::predictor::{LENGTH_MAX, Prediction};
use crate::parameter::{
    Problem, Reading, Value, Values, contents, flag, number, rate_from, text, time_from, whole, word,
};
use crate::rate::PortParameters;
use crate::rate::kit::classes::UDP_SHARE;
use crate::rate::kit::features::DAY;
use crate::rate::kit::parameters::ENTRIES;
use crate::rate::kit::subscriber::{FORMS, Share};
use crate::units::{Rate, Span};

const SHORTEST: Span = Span::from_micros(10);
/// Longest time that scenarios and configurations can state.
const LONGEST: Span = Span::from_secs(1_000_000);
/// Largest count.
const COUNT: u64 = u32::MAX as u64;
const FASTEST: Rate = Rate::from_bits_per_sec(1_000_000_000_000_000);

/// Declares [`Params`] with the values of both modes.
macro_rules! params {
    ($($(#[doc = $doc:literal])+ $name:ident: $unit:ty = $literal:expr, $resolved:expr, $shape:expr;)*) => {
        crate::parameters! {
            /// Parameters of BRF. In a scenario, `mode` selects the defaults of all other parameters.
            pub struct Params without default {
                /// The rules of BRF. `literal` selects the rules as printed in the paper, with their contradictions,
                /// as far as they can be computed. `resolved` selects the repaired rules.
                pub mode: Reading, word(Reading::WORDS).from("the BRF paper");
                $($(#[doc = $doc])+ pub $name: $unit, $shape;)*
            }
        }

        impl Params {
            /// Returns the paper's values, or the middle of its ranges.
            pub fn literal() -> Self {
                Params { mode: Reading::Literal, $($name: $literal,)* }
            }
            /// Returns the recommended values.
            pub fn resolved() -> Self {
                Params { mode: Reading::Resolved, $($name: $resolved,)* }
            }
        }
    };
}

params! {
    /// Share of the link to allocate. Literal mode allocates the whole link, because the paper's rates add up to the
    /// NIC's rate.
    eta: f64 = 1.0, 0.98, number(0.01, 1.0).from("BRF-21, BRF-41");
    /// A_CLS: a flow that uses less than this share of its allocation is limited.
    a_cls: f64 = 0.95, 0.95, number(0.01, 1.0).from("BRF-38; paper 0.95 to 1.0");
    /// B_HEAD: a limited flow gets this multiple of its use.
    b_head: f64 = 1.10, 1.10, number(1.0, 10.0).from("BRF-38; paper 1.05 to 1.10, where a_cls * b_head may be below 1");
    /// U_TH: utilisation above which the detector reports congestion.
    u_th: f64 = 0.98, 0.98, number(0.01, 10.0).from("paper 0.98");
    /// Q_TH: share of the queue limit above which the detector reports congestion.
    q_th: f64 = 0.1, 0.1, number(0.0, 1.0).from("paper 0.1");
    /// Queueing delay (queue divided by link rate) above which the detector reports congestion; zero disables this
    /// limit.
    q_delay_max: Span = Span::ZERO, Span::from_millis(5), time_from(Span::ZERO, LONGEST).from("BRF-74");
    /// If a queue has fewer packets than this, the detector ignores its delay. On a slow link, two bursts already cause
    /// a delay above `q_delay_max`.
    q_packets_min: u32 = 0, 8, whole(0, COUNT).from("ours");
    /// Arrivals above this multiple of C_BRF are a burst.
    burst_threshold: f64 = 1.02, 1.02, number(0.1, 10.0).from("BRF-72");
    /// A_MAX: the share of C_BRF to which a burst is reduced.
    a_max: f64 = 0.95, 0.98, number(0.01, 1.0).from("BRF-81; paper 0.95 to 1.0");
    /// G: time in which a standing queue should drain, in periods T.
    g_periods: f64 = 1.0, 2.0, number(0.01, 1000.0).from("BRF-80; paper: one or two max RTT");
    /// Minimum rate that a reduction leaves, as a share of C_BRF.
    f_floor: f64 = 0.0, 0.05, number(0.0, 1.0).from("BRF-80");
    /// Minimum allocation of a flow, in full packets per period T.
    floor_packets: f64 = 0.0, 2.0, number(0.0, 1000.0).from("BRF-47");
    /// Minimum allocation of a flow, as a share of C_BRF.
    floor_share: f64 = 0.0, 0.001, number(0.0, 1.0).from("BRF-47");
    /// Minimum period T. The paper has no minimum. Literal mode has 1 ms, which keeps the timer from firing constantly.
    period_min: Span = Span::from_millis(1), Span::from_millis(10), time_from(SHORTEST, LONGEST).from("BRF-30");
    /// Maximum period T.
    period_max: Span = Span::from_secs(3600), Span::from_secs(1), time_from(SHORTEST, LONGEST).from("BRF-30");
    /// After an allocation, wait for one period T before measuring.
    settle: bool = false, true, flag().from("BRF-36");
    /// Maximum time between runs of the detector. If the period T is shorter, the maximum is T.
    poll: Span = Span::from_millis(100), Span::from_millis(100), time_from(SHORTEST, LONGEST).from("BRF-73");
    /// After this time without a poll, the switch assumes that the controller has failed, and uses its own detector.
    controller_timeout: Span = Span::from_millis(500), Span::from_millis(500), time_from(Span::ZERO, LONGEST).from("BRF-105");
    /// Distribute the capacity that limited flows do not use.
    spread_residual: bool = false, true, flag().from("BRF-42");
    /// Serve mice before elephants. The paper announces the layers but does not use them.
    layers: bool = false, true, flag().from("BRF-50");
    /// A mouse that sends more than this multiple of its allocation plus two packets becomes an elephant.
    mouse_headroom: f64 = 1.25, 1.25, number(0.0, 1000.0).from("BRF-51");
    /// Let a decrease of more than 10 % pass the feedback gate at once.
    urgent_decrease: bool = false, true, flag().from("BRF-64");
    /// Use the senders' reports that their applications do not limit them. If such a flow still sends less than its
    /// rate, another switch limits it (BRF-102). Data that is missing according to the sequence numbers counts as sent
    /// data.
    believe_senders: bool = false, true, flag().from("BRF-100");
    /// The unit that gets a share: each flow, or all flows of a subscriber. A subscriber is an address, a prefix, a
    /// VLAN or a mark.
    share: Share = Share::Flow, Share::Flow, text(FORMS).from("BRF-106");
    /// UDP's share of the link while any UDP traffic is active. If UDP may borrow, only the part that UDP needs is
    /// reserved.
    udp_share: f64 = UDP_SHARE, UDP_SHARE, number(0.0, 0.9).from("BRF-21");
    /// UDP may borrow capacity that TCP does not use, up to this share of the link. With 0, UDP does not borrow. The
    /// parameter has no effect if the capacity is measured.
    udp_ceiling: f64 = 0.0, 0.0, number(0.0, 1.0).from("BRF-23");
    /// The model that predicts the use of a new flow: none (`off`), averages by prefix and service (`average`), or a
    /// model file that `narrows train` has written.
    predictor: Prediction = Prediction::Average, Prediction::Average, contents(Prediction::WORDS, "a bandwidth model", LENGTH_MAX).from("BRF-31");
    /// Time of day (UTC) at the beginning of the run, for trained models. If this parameter is not given, the agent
    /// uses the system's clock.
    time_of_day: Span = Span::ZERO, Span::ZERO, time_from(Span::ZERO, DAY).from("BRF-31; ours");
    /// Weight of a new sample in the predictor's averages.
    predictor_weight: f64 = 0.25, 0.25, number(0.001, 1.0).from("BRF-31");
    /// An average predicts a rate only if it has at least this many samples.
    predictor_samples: u32 = 3, 3, whole(0, COUNT).from("BRF-31");
    /// Maximum number of averages.
    predictor_entries: usize = 65_536, 65_536, whole(0, ENTRIES).from("ours");
    /// Assumed RTT of a flow whose handshake was not seen.
    rtt_default: Span = Span::from_millis(100), Span::from_millis(100), time_from(SHORTEST, LONGEST).from("ours");
    /// A flow is idle if it sends no data for the longest of these times: this value, two periods T, and twice the time
    /// between two packets at the equal share.
    idle_after: Span = Span::from_millis(200), Span::from_millis(200), time_from(Span::ZERO, LONGEST).from("BRF-16");
    /// A handshake without an answer is removed after this time.
    handshake_timeout: Span = Span::from_secs(3), Span::from_secs(3), time_from(Span::ZERO, LONGEST).from("BRF-15");
    /// T_gc: a flow without packets is removed after this time.
    forget_after: Span = Span::from_secs(60), Span::from_secs(60), time_from(Span::ZERO, LONGEST).from("BRF-15");
    /// A flow is advertised to other switches if none of its ACKs passes this switch within this time, or within three
    /// RTTs if these are longer.
    ack_timer_min: Span = Span::from_secs(1), Span::from_secs(1), time_from(Span::ZERO, LONGEST).from("BRF-63");
    /// Maximum number of flows in the table. Each flow takes half a kilobyte.
    max_flows: usize = 262_144, 262_144, whole(1, ENTRIES).from("ours");
    /// Maximum number of half-open handshakes; a full table discards the oldest.
    max_half_open: usize = 4_096, 4_096, whole(1, ENTRIES).from("BRF-104");
    /// Capacity that is assumed at first if the capacity must be measured.
    capacity_initial: Rate = Rate::from_bits_per_sec(10_000_000), Rate::from_bits_per_sec(10_000_000), rate_from(Rate::ZERO, FASTEST).from("BRF-101; ours");
    /// Size of the first probe of a series, as a multiple of the measured capacity.
    probe_gain: f64 = 1.05, 1.05, number(1.0, 2.0).from("BRF-101");
    /// After a successful probe, the next probe adds this many times as much to the estimated capacity. With 1, all
    /// probes have the same size and are two periods apart.
    probe_growth: f64 = 1.0, 2.0, number(1.0, 4.0).from("BRF-101; ours");
    /// Maximum size of a probe, as a multiple of the measured capacity. A sender can at most double its rate per RTT
    /// (BRF-104).
    probe_max: f64 = 1.05, 2.0, number(1.0, 4.0).from("BRF-101; ours");
}

impl Default for Params {
    fn default() -> Self {
        Params::resolved()
    }
}

impl PortParameters for Params {
    fn defaults(given: &Values) -> Self {
        let is_literal = given.get("mode") == Some(&Value::Word("literal".into()));
        if is_literal { Params::literal() } else { Params::resolved() }
    }

    fn check_contents(given: &Values) -> Result<(), Problem> {
        match given.get("predictor") {
            Some(Value::Word(text)) => Prediction::parse(text).map(drop),
            _ => Ok(()),
        }
    }

    fn check_relations(&self) -> Result<(), Problem> {
        if self.udp_ceiling != 0.0 && self.udp_ceiling < self.udp_share {
            let expected = format!("0, or a number from udp_share ({}) to 1", self.udp_share);
            return Err(Problem::relation("udp_ceiling", self.udp_ceiling, expected));
        }
        // The paper's rules divide the capacity among flows only.
        if self.mode == Reading::Literal && self.share != Share::Flow {
            return Err(Problem::relation("share", format!("\"{}\"", self.share), "flow if mode is literal"));
        }
        // With a product of at most 1, a limited flow counts as unlimited in every other cycle (BRF-39). The paper's
        // ranges include such products, so literal mode permits them.
        if self.mode == Reading::Resolved && self.a_cls * self.b_head <= 1.0 {
            // The minimum in the message is rounded up, so that it is itself valid.
            let (least, a_cls) = ((1e4 / self.a_cls).ceil() / 1e4, self.a_cls);
            let expected =
                format!("at least {least:.4}, so that a_cls * b_head exceeds 1 (a_cls is {a_cls})");
            return Err(Problem::relation("b_head", self.b_head, expected));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, Value)]) -> Result<Params, String> {
        let values = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Params::read("brf", &values).map_err(|problem| problem.to_string())
    }

    #[test]
    fn mode_selects_the_defaults() {
        assert_eq!(read(&[]), Ok(Params::resolved()));
        assert_eq!(read(&[("mode", Value::Word("literal".into()))]), Ok(Params::literal()));
        assert!(
            read(&[("etta", Value::Number(1.0))])
                .unwrap_err()
                .starts_with("found \"etta\", expected a parameter")
        );
    }

    #[test]
    fn given_values_replace_the_defaults() {
        let params = read(&[("eta", Value::Number(0.9)), ("b_head", Value::Number(1.2))]);
        assert_eq!(params, Ok(Params { eta: 0.9, b_head: 1.2, ..Params::resolved() }));
    }

    #[test]
    fn the_papers_unstable_corner_is_for_literal_mode_only() {
        let said = Params { b_head: 1.05, ..Params::resolved() }.check().unwrap_err().to_string();
        let expected = "at least 1.0527, so that a_cls * b_head exceeds 1 (a_cls is 0.95)";
        assert_eq!(said, format!("b_head: found 1.05, expected {expected}"));
        assert_eq!(Params { b_head: 1.05, ..Params::literal() }.check(), Ok(()));
        assert_eq!((Params::resolved().check(), Params::literal().check()), (Ok(()), Ok(())));
    }

    #[test]
    fn only_the_resolved_rules_know_subscribers() {
        let share: Share = "receiver-address".parse().unwrap();
        assert_eq!(Params { share, ..Params::resolved() }.check(), Ok(()));
        let problem = Params { share, ..Params::literal() }.check().unwrap_err();
        assert_eq!(
            problem.to_string(),
            "share: found \"receiver-address\", expected flow if mode is literal"
        );
    }

    #[test]
    fn the_ceiling_of_udp_is_0_or_at_least_its_share() {
        let with = |udp_ceiling| Params { udp_share: 0.2, udp_ceiling, ..Params::resolved() }.check();
        assert!([0.0, 0.2, 0.95, 1.0].into_iter().all(|ceiling| with(ceiling) == Ok(())));
        assert!([-0.5, 0.1, 1.01, f64::NAN].into_iter().all(|ceiling| with(ceiling).is_err()));
        let text = "udp_ceiling: found 0.1, expected 0, or a number from udp_share (0.2) to 1";
        assert_eq!(with(0.1).unwrap_err().to_string(), text);
    }

    #[test]
    fn absurd_values_are_rejected_with_name_and_range() {
        for (bad, text) in [
            (
                Params { eta: f64::NAN, ..Params::resolved() },
                "eta: found NaN, expected a number from 0.01 to 1",
            ),
            (Params { eta: 2.0, ..Params::resolved() }, "eta: found 2, expected a number from 0.01 to 1"),
            (
                Params { max_flows: 0, ..Params::resolved() },
                "max_flows: found 0, expected a whole number from 1 to 2147483647",
            ),
            (
                Params { period_min: Span::ZERO, ..Params::resolved() },
                "period_min: found 0, expected a time from 10us to 1000000s",
            ),
        ] {
            assert_eq!(bad.check().unwrap_err().to_string(), text);
        }
    }
}
