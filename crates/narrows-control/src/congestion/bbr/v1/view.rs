//! The input that the phases of BBR get for one ACK.

use super::params::Params;
use crate::congestion::Ack;
use crate::congestion::bbr::gain::Gain;
use crate::congestion::bbr::model::Model;
use crate::units::Rate;

/// One ACK, and the state that the phases need to process the ACK.
pub struct View<'a> {
    /// The ACK.
    pub ack: &'a Ack,
    /// The path.
    pub model: &'a Model,
    /// The parameters.
    pub params: &'a Params,
    /// Segments in one send quantum at the current pacing rate.
    pub quantum: u32,
    /// Whether the policer detector has found a policed rate. While this is true, BBR does not probe.
    pub policed: bool,
}

impl View<'_> {
    /// Returns the number of segments in flight for `gain` bandwidth-delay products of `bw`, plus room for the bursts
    /// of the end systems. If `probing` is true, adds segments so that the probe exceeds a small BDP (BBR-13).
    pub fn inflight(&self, bw: Rate, gain: Gain, probing: bool) -> u32 {
        quantise(self.model.bdp(bw, gain), self.quantum, probing, self.params)
    }
}

/// Adds three quanta, one each for sender, segmentation offload and receiver (BBR-13). The sum is rounded up to an even
/// number, because receivers delay ACKs.
pub fn quantise(segments: u32, quantum: u32, probing: bool, params: &Params) -> u32 {
    let roomy = segments.saturating_add(quantum.saturating_mul(3)).saturating_add(1) & !1;
    if probing { roomy.saturating_add(params.probe_segments) } else { roomy }
}

/// Returns whether the data in flight is at most the capacity of the pipe. This ends Drain.
pub fn is_drained(view: &View<'_>) -> bool {
    view.ack.in_flight <= view.inflight(view.model.max_bw(), Gain::ONE, false)
}
