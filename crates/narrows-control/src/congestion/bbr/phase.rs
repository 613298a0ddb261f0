//! The phases of BBR and what they have in common; Startup and Drain, which hold no state (BBR section 2.2).

use super::model::Model;
use super::params::{Gain, Params};
use super::probe_bw::ProbeBw;
use super::probe_rtt::ProbeRtt;
use crate::congestion::Ack;
use crate::units::Rate;

/// Where BBR is. The discriminants are those of Linux's `enum bbr_mode` and appear in traces.
#[derive(Clone, Debug)]
pub enum Phase {
    /// Doubles the rate every round until the pipe is full.
    Startup,
    /// Empties the queue that Startup made.
    Drain,
    /// Cycles the gain around 1 to find more bandwidth and to yield.
    ProbeBw(ProbeBw),
    /// Keeps the pipe nearly empty for a moment to see the propagation time.
    ProbeRtt(ProbeRtt),
}

/// What a phase sees of one ACK.
pub struct View<'a> {
    /// The ACK.
    pub ack: &'a Ack,
    /// The path.
    pub model: &'a Model,
    /// The parameters.
    pub params: &'a Params,
    /// Segments in one send quantum at the current pacing rate.
    pub quantum: u32,
    /// The policer detector holds a rate: no probing.
    pub policed: bool,
}

impl View<'_> {
    /// Segments in flight for `gain` bandwidth-delay products of `bw`, with room for the end systems' bursts;
    /// `probing`: also with what makes the probe of a small BDP felt (BBR-13).
    pub fn inflight(&self, bw: Rate, gain: Gain, probing: bool) -> u32 {
        quantise(self.model.bdp(bw, gain), self.quantum, probing, self.params)
    }
}

/// BBR-13: three quanta for sender, offload and receiver, an even number against delayed ACKs.
pub fn quantise(segments: u32, quantum: u32, probing: bool, params: &Params) -> u32 {
    let roomy = segments.saturating_add(quantum.saturating_mul(3)).saturating_add(1) & !1;
    if probing { roomy.saturating_add(params.probe_segments) } else { roomy }
}

impl Phase {
    /// The number in traces.
    pub fn number(&self) -> u32 {
        match self {
            Phase::Startup => 0,
            Phase::Drain => 1,
            Phase::ProbeBw(_) => 2,
            Phase::ProbeRtt(_) => 3,
        }
    }

    /// The multiple of the bandwidth to pace at.
    pub fn pacing_gain(&self, params: &Params, policed: bool) -> Gain {
        match self {
            Phase::Startup => params.high_gain,
            Phase::Drain => params.drain_gain,
            Phase::ProbeBw(probe) => probe.pacing_gain(policed),
            Phase::ProbeRtt(_) => Gain::ONE,
        }
    }

    /// The multiple of the bandwidth-delay product to keep in flight.
    pub fn cwnd_gain(&self, params: &Params) -> Gain {
        match self {
            // Drain keeps the window, so that pacing alone does the draining.
            Phase::Startup | Phase::Drain => params.high_gain,
            Phase::ProbeBw(_) => params.cwnd_gain,
            Phase::ProbeRtt(_) => Gain::ONE,
        }
    }

    /// In the phase of ProbeBW that looks for more bandwidth.
    pub fn is_probing_up(&self) -> bool {
        matches!(self, Phase::ProbeBw(probe) if probe.index() == 0)
    }
}

/// Drain is over when what is in flight fits the pipe.
pub fn is_drained(view: &View<'_>) -> bool {
    view.ack.in_flight <= view.inflight(view.model.max_bw(), Gain::ONE, false)
}
