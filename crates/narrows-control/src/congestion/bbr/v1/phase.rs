//! The phases of BBR (BBR-14 to BBR-17). Startup and Drain have no state of their own.

use super::params::Params;
use super::probe_bw::ProbeBw;
use crate::congestion::bbr::gain::Gain;
use crate::congestion::bbr::probe_rtt::ProbeRtt;

/// The current phase. The discriminants are the same as in Linux's `enum bbr_mode`. They appear in
/// traces.
#[derive(Clone, Debug)]
pub enum Phase {
    /// Doubles the rate every round until the pipe is full.
    Startup,
    /// Drains the queue that Startup built.
    Drain,
    /// Cycles the gain around 1 to find more bandwidth and to yield to other flows.
    ProbeBw(ProbeBw),
    /// Keeps the pipe almost empty for a short time to measure the propagation time.
    ProbeRtt(ProbeRtt),
}

impl Phase {
    /// Returns the number of the phase in traces.
    pub fn number(&self) -> u32 {
        match self {
            Phase::Startup => 0,
            Phase::Drain => 1,
            Phase::ProbeBw(_) => 2,
            Phase::ProbeRtt(_) => 3,
        }
    }

    /// Returns the pacing rate as a multiple of the bandwidth.
    pub fn pacing_gain(&self, params: &Params, policed: bool) -> Gain {
        match self {
            Phase::Startup => params.high_gain,
            Phase::Drain => params.drain_gain,
            Phase::ProbeBw(probe) => probe.pacing_gain(policed),
            Phase::ProbeRtt(_) => Gain::ONE,
        }
    }

    /// Returns the target amount of data in flight, as a multiple of the bandwidth-delay product.
    pub fn cwnd_gain(&self, params: &Params) -> Gain {
        match self {
            // Drain keeps the window, so only pacing drains the queue.
            Phase::Startup | Phase::Drain => params.high_gain,
            Phase::ProbeBw(_) => params.cwnd_gain,
            Phase::ProbeRtt(_) => Gain::ONE,
        }
    }

    /// Returns whether ProbeBW is in its probing phase.
    pub fn is_probing_up(&self) -> bool {
        matches!(self, Phase::ProbeBw(probe) if probe.index() == 0)
    }
}
