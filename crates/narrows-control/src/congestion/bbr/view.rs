//! What the phases of BBR see of an ACK, and what they ask of it.

use super::gain::Gain;
use super::model::Model;
use super::params::Params;
use crate::congestion::Ack;
use crate::units::Rate;

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

/// Drain is over when what is in flight fits the pipe.
pub fn is_drained(view: &View<'_>) -> bool {
    view.ack.in_flight <= view.inflight(view.model.max_bw(), Gain::ONE, false)
}
