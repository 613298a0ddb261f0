//! The phases of BBR and what they have in common; Startup and Drain, which hold no state (BBR-14 to BBR-17).

use super::gain::Gain;
use super::params::Params;
use super::probe_bw::ProbeBw;
use super::probe_rtt::ProbeRtt;

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
