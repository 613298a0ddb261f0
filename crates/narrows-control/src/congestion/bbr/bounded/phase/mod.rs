//! The phases. Each phase has a file with its gains, its limit of data in flight, and the events that end it.

mod cruise;
mod down;
mod drain;
mod probe_rtt;
mod refill;
mod startup;
mod up;

pub(super) use self::cruise::Cruise;
pub(super) use self::down::Down;
pub(super) use self::drain::Drain;
pub(super) use self::probe_rtt::ProbeRtt;
pub(super) use self::refill::Refill;
pub(super) use self::startup::{Startup, check_losses};
pub(super) use self::up::Up;
use super::params::{Gains, Params};
use super::shared::Shared;
use crate::congestion::{Ack, Window};
use crate::units::{Rate, Time};

/// The rules of a phase. The functions named `on_...` return the next phase if this phase ends.
trait Rules {
    /// Returns the numbers of the phase and of its step in ProbeBW, for traces. The steps are numbered as in the
    /// module's `bbr_pacing_gain_phase`.
    fn numbers(&self) -> (u32, Option<u32>);

    /// Returns the gains of the pacing rate and the window.
    fn gains(&self, params: &Params) -> Gains;

    /// Returns whether the phase probes for more bandwidth. In such a phase, losses do not lower the short-term
    /// bounds.
    fn is_probing(&self) -> bool {
        false
    }

    /// Returns the long-term limit of data in flight (the "volume cap" of the draft's table).
    fn longterm(&self, shared: &Shared) -> u32 {
        shared.bounds.longterm
    }

    /// If the phase is a probe, adds segments, so that the probe exceeds a small bandwidth-delay product.
    fn with_probe(&self, segments: u32, _: &Params) -> u32 {
        segments
    }

    /// Called when the model of the path was updated.
    fn on_model(&self, _: &mut Shared, _: &Ack, _: &mut Window) -> Option<Phase> {
        None
    }

    /// After Startup, called for each valid sample. The last argument is the delivery rate of the sample
    /// (`UpdateProbeBWCyclePhase`).
    fn on_sample(&self, shared: &mut Shared, ack: &Ack, _: &Window, _: Rate) -> Option<Phase> {
        shared.cycle.follow(shared.model.round_start);
        shared.raise_longterm(ack);
        None
    }

    /// Called when the losses of a probe crossed the threshold.
    fn on_too_high(&self, _: &mut Shared, _: Time) -> Option<Phase> {
        None
    }
}

/// The current phase. ProbeBW consists of Down, Cruise, Refill and Up.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    Startup(Startup),
    Drain(Drain),
    Down(Down),
    Cruise(Cruise),
    Refill(Refill),
    Up(Up),
    ProbeRtt(ProbeRtt),
}

macro_rules! rules {
    ($phase:expr, $rules:ident => $value:expr) => {
        match $phase {
            Phase::Startup($rules) => $value,
            Phase::Drain($rules) => $value,
            Phase::Down($rules) => $value,
            Phase::Cruise($rules) => $value,
            Phase::Refill($rules) => $value,
            Phase::Up($rules) => $value,
            Phase::ProbeRtt($rules) => $value,
        }
    };
}

impl Phase {
    /// Returns the numbers of the phase and of its step, for traces.
    pub(super) fn numbers(&self) -> (u32, Option<u32>) {
        rules!(self, rules => rules.numbers())
    }

    /// Returns the gains of the pacing rate and the window.
    #[inline]
    pub(super) fn gains(&self, params: &Params) -> Gains {
        rules!(self, rules => rules.gains(params))
    }

    /// Returns whether the phase probes for more bandwidth.
    #[inline]
    pub(super) fn is_probing(&self) -> bool {
        rules!(self, rules => rules.is_probing())
    }

    /// Returns the long-term limit of data in flight.
    #[inline]
    pub(super) fn longterm(&self, shared: &Shared) -> u32 {
        rules!(self, rules => rules.longterm(shared))
    }

    /// If the phase is a probe, adds segments to the target of the window.
    #[inline]
    pub(super) fn with_probe(&self, segments: u32, params: &Params) -> u32 {
        rules!(self, rules => rules.with_probe(segments, params))
    }

    /// Returns whether this is a step of ProbeBW.
    pub(super) fn is_probe_bw(&self) -> bool {
        matches!(self, Phase::Down(_) | Phase::Cruise(_) | Phase::Refill(_) | Phase::Up(_))
    }

    /// Changes the phase after an update of the model. One ACK may end Startup and Drain together.
    #[inline]
    pub(super) fn on_model(&mut self, shared: &mut Shared, ack: &Ack, window: &mut Window) {
        while let Some(next) = rules!(self, rules => rules.on_model(shared, ack, window)) {
            *self = next;
        }
    }

    /// Changes the phase after a valid sample with the delivery rate `bw`.
    #[inline]
    pub(super) fn on_sample(&mut self, shared: &mut Shared, ack: &Ack, window: &Window, bw: Rate) {
        if let Some(next) = rules!(self, rules => rules.on_sample(shared, ack, window, bw)) {
            *self = next;
        }
    }

    /// Changes the phase after excessive losses of a probe.
    pub(super) fn on_too_high(&mut self, shared: &mut Shared, now: Time) {
        if let Some(next) = rules!(self, rules => rules.on_too_high(shared, now)) {
            *self = next;
        }
    }

    /// Enters and leaves ProbeRTT (`CheckProbeRTT`). `expired` states whether the shorter window of the minimum RTT has
    /// expired.
    #[inline]
    pub(super) fn on_rtt(&mut self, shared: &mut Shared, ack: &Ack, window: &mut Window, expired: bool) {
        if expired && !shared.idle_restart && !matches!(self, Phase::ProbeRtt(_)) {
            *self = ProbeRtt::enter(shared, ack, window);
        }
        if let Phase::ProbeRtt(probe) = self
            && let Some(next) = probe.on_ack(shared, ack, window)
        {
            *self = next;
        }
    }
}
