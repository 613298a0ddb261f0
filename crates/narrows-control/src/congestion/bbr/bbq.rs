//! BBQ: BBR v1 with short probes while a queue persists. Without short probes, a flow on a long path injects more data
//! per probe than a flow on a short path.
//!
//! Source: Ma et al., "Fairness of Congestion-Based Congestion Control: Experimental Evaluation and Analysis"
//! (arXiv:1706.09115); BBQ-1 to BBQ-3. The paper's criterion for a queue was not available, so this file uses its own
//! criterion. A loss does not end a short probe early.

use super::gain::Gain;
use super::model::Model;
use super::round_rtt::RoundRtt;
use super::v1::probe_bw::{ConstantGains, GainCycle, PROBE, ProbeEnd};
use crate::congestion::Ack;
use crate::parameter::{time_from, whole};
use crate::units::Span;

crate::parameters! {
    /// Parameters of BBQ.
    pub struct Params {
        /// Maximum length of a probe while a queue persists.
        pub longest_probe: Span = Span::from_millis(3), time_from(Span::ZERO, Span::from_secs(10)).from("alpha of the paper");
        /// A round has a queue if its mean RTT exceeds the propagation time by more than this time. The excess must
        /// also be more than 1/`bbq_queue_share` of the propagation time.
        pub queue: Span = Span::from_millis(1), time_from(Span::ZERO, Span::from_secs(10)).from("ours");
        /// A round has a queue only if its mean RTT exceeds the propagation time by more than 1/n of that time.
        pub queue_share: u64 = 20, whole(1, 1000).from("ours: 5 %");
        /// A queue persists if this number of consecutive rounds had a queue.
        pub rounds: u32 = 2, whole(1, 1000).unit("rounds").from("ours");
    }
}

/// The cycle of BBQ.
#[derive(Clone, Debug, Default)]
pub struct Bbq {
    params: Params,
    gains: ConstantGains,
    rtt: RoundRtt,
    /// Number of consecutive rounds with a queue.
    queued_rounds: u32,
    /// Whether the present probe is short. This is decided when the probe begins.
    short: bool,
}

impl Bbq {
    /// Returns a cycle with these parameters and these gains of BBR.
    pub fn new(params: Params, gains: ConstantGains) -> Self {
        Bbq { params, gains, ..Bbq::default() }
    }

    fn has_standing_queue(&self) -> bool {
        self.queued_rounds >= self.params.rounds
    }
}

impl GainCycle for Bbq {
    fn name(&self) -> &'static str {
        "bbq"
    }

    fn gain(&mut self, index: usize) -> Gain {
        self.short = index == PROBE && self.has_standing_queue();
        self.gains.gain(index)
    }

    fn length(&self, _index: usize, min_rtt: Span) -> Span {
        if self.short { min_rtt.min(self.params.longest_probe) } else { min_rtt }
    }

    fn probe_end(&self) -> ProbeEnd {
        if self.short { ProbeEnd::Time } else { ProbeEnd::Both }
    }

    fn on_ack(&mut self, ack: &Ack, model: &Model) {
        if !self.rtt.on_ack(ack, model.round_start) || model.min_rtt == Span::MAX {
            return;
        }
        let share = Span::from_nanos(model.min_rtt.as_nanos() / self.params.queue_share.max(1));
        let quiet = model.min_rtt + self.params.queue.max(share);
        let queued = self.rtt.last().is_some_and(|rtt| rtt > quiet);
        self.queued_rounds = if queued { self.queued_rounds.saturating_add(1) } else { 0 };
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("queue_stands", f64::from(u8::from(self.has_standing_queue())));
    }
}

#[cfg(test)]
#[path = "bbq_tests.rs"]
mod tests;
