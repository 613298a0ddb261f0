//! BBR-A, BBR-B and BBR-C: BBR v1 with two ProbeBW gains that depend on the RTT (GAIN-3 to GAIN-6).
//!
//! Source: Yang et al. (see [`super::gain_model`]), section 4. Only the gains differ from BBR v1. On a policed path the
//! gain is 1, as in v1. Omega is the RTT divided by the largest RTT. The paper does not say when omega is measured or
//! when the phases end. [`Params`] holds our choices, and options that follow the paper literally.

use super::gain::Gain;
use super::gain_model::{self, OMEGA_ONE, Variant};
use super::model::Model;
use super::round_rtt::RoundRtt;
use super::v1::probe_bw::{DRAIN, GainCycle, PROBE, ProbeEnd};
use crate::congestion::Ack;
use crate::congestion::filter::WindowedMax;
use crate::parameter::{Parameters, Reading, Values, time_from, word};
use crate::units::{Span, Time};

crate::parameters! {
    /// The choices that the paper leaves open, with their names in scenarios.
    pub struct Choices {
        /// How the phases end. With `literal`, as in the paper, a probe ends at 1.25 BDP for any gain, and the cycle
        /// drains only after a loss in the probe.
        pub reading: Reading = Reading::Resolved, word(Reading::WORDS).from("section 4 of the paper");
        /// Time after which the largest RTT expires. With `none`, it never expires, as in the paper. In this case, one
        /// spike of the RTT keeps omega low forever, so P_up stays high and P_down stays near 1.
        pub tmax_window: Option<Span> = None, time_from(Span::from_millis(10), Span::from_secs(10_000))
            .or_none()
            .from("GAIN-1");
    }
}

/// The choices that the paper leaves open.
#[derive(Clone, Debug, Default)]
pub struct Params {
    /// Whether a probe ends at a loss or at 1.25 BDP in flight, for every gain. The probe also ends after two
    /// propagation times, because a gain near 1 never reaches 1.25 BDP in flight. By default, the probe ends as in
    /// BBR-16, but with the cycle's own gain.
    pub exit_125: bool,
    /// Whether the cycle drains only after a loss in the probe and otherwise cruises. The paper's condition is
    /// "inflight is greater than 1.25 BDP and packet loss occurs". By default the cycle always drains, because
    /// nothing else drains the queue of a deep buffer.
    pub down_needs_loss: bool,
    /// Time after which the largest RTT expires. With `None`, it never expires.
    pub tmax_window: Option<Span>,
}

impl Params {
    /// Returns the choices that the given parameters of the catalogue select.
    pub fn from_values(values: &Values) -> Self {
        Choices::default().with("", values).into()
    }
}

impl From<Choices> for Params {
    fn from(choices: Choices) -> Self {
        let is_literal = choices.reading == Reading::Literal;
        Params { exit_125: is_literal, down_needs_loss: is_literal, tmax_window: choices.tmax_window }
    }
}

/// A cycle whose gains depend on the RTT.
#[derive(Clone, Debug)]
pub struct GainModel {
    name: &'static str,
    variant: Variant,
    params: Params,
    /// T_i, the mean RTT of the last completed round.
    rtt: RoundRtt,
    /// T_max, the largest RTT. It includes samples from Startup.
    max_rtt: WindowedMax<Span>,
    /// Omega, computed when an entry of the cycle that uses omega begins. An update on each ACK would cause positive
    /// feedback (GAIN-4).
    omega: u32,
    entry: usize,
    lost_while_probing: bool,
}

impl GainModel {
    /// Returns the cycle of the controller `name`.
    pub fn new(name: &'static str, variant: Variant, params: Params) -> Self {
        GainModel {
            name,
            variant,
            params,
            rtt: RoundRtt::default(),
            max_rtt: WindowedMax::new(0, Span::ZERO),
            omega: OMEGA_ONE,
            entry: 0,
            lost_while_probing: false,
        }
    }

    /// Computes omega (GAIN-1, GAIN-5). Before the first completed round, omega is 1, which gives the smallest gains.
    fn measure(&mut self) -> u32 {
        let micros = |span: Span| span.as_nanos() / 1000;
        let t_max = micros(self.max_rtt.get());
        self.omega = self.rtt.last().map_or(OMEGA_ONE, |t_i| gain_model::omega(micros(t_i), t_max));
        self.omega
    }
}

impl GainCycle for GainModel {
    fn name(&self) -> &'static str {
        self.name
    }

    fn gain(&mut self, index: usize) -> Gain {
        self.entry = index;
        match index {
            PROBE => {
                self.lost_while_probing = false;
                gain_model::up(self.variant, self.measure())
            }
            DRAIN if self.params.down_needs_loss && !self.lost_while_probing => Gain::ONE,
            DRAIN => gain_model::down(self.variant, self.measure()),
            _ => Gain::ONE,
        }
    }

    fn length(&self, index: usize, min_rtt: Span) -> Span {
        if self.params.exit_125 && index == PROBE {
            Span::from_nanos(min_rtt.as_nanos().saturating_mul(2))
        } else {
            min_rtt
        }
    }

    fn probe_end(&self) -> ProbeEnd {
        if self.params.exit_125 { ProbeEnd::Either(Gain::ratio(5, 4)) } else { ProbeEnd::Both }
    }

    fn on_ack(&mut self, ack: &Ack, model: &Model) {
        self.rtt.on_ack(ack, model.round_start);
        if let Some(rtt) = ack.rtt {
            let window = self.params.tmax_window.map_or(u64::MAX, Span::as_nanos);
            self.max_rtt.update(window, ack.now.since(Time::ZERO).as_nanos(), rtt);
        }
        self.lost_while_probing |= self.entry == PROBE && ack.lost > 0;
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("omega", f64::from(self.omega) / f64::from(OMEGA_ONE));
    }
}

#[cfg(test)]
#[path = "gain_cycle_tests.rs"]
mod tests;
