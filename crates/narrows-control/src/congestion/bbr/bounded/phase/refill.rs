//! Refill fills the pipe for one round before a probe. Because the pipe is full at the start of the probe, losses in
//! the probe are due to the volume of the probe itself.

use super::{Phase, Rules, Up};
use crate::congestion::bbr::bounded::cycle::Feedback;
use crate::congestion::bbr::bounded::params::{Gains, Params};
use crate::congestion::bbr::bounded::shared::Shared;
use crate::congestion::{Ack, Window};
use crate::units::Rate;

/// Sends at the estimated bandwidth, without the short-term bounds.
#[derive(Clone, Debug)]
pub(in super::super) struct Refill;

impl Refill {
    pub(in super::super) fn enter(shared: &mut Shared) -> Phase {
        shared.bounds.forget_shortterm();
        shared.cycle.start_refill();
        shared.model.start_round(shared.delivered);
        Phase::Refill(Refill)
    }

    /// Begins a new probe when the last data of the previous probe has been acknowledged (first half of
    /// `AdaptLongTermModel`). This happens only if the previous probe was stopped as a precaution and had no excessive
    /// loss.
    #[inline]
    pub(super) fn if_safe(shared: &mut Shared, ack: &Ack) -> Option<Phase> {
        let feedback = shared.cycle.follow(shared.model.round_start);
        if feedback != Feedback::None && !shared.model.is_app_limited(ack) {
            shared.model.advance_bw();
        }
        (feedback == Feedback::Safe).then(|| Refill::enter(shared))
    }

    /// Begins a probe if a probe is due.
    #[inline]
    pub(super) fn if_due(shared: &mut Shared, ack: &Ack, window: &Window) -> Option<Phase> {
        let is_due = shared.cycle.is_due(ack.now, || shared.target(window), &shared.params);
        is_due.then(|| Refill::enter(shared))
    }
}

impl Rules for Refill {
    fn numbers(&self) -> (u32, Option<u32>) {
        (2, Some(3))
    }

    fn gains(&self, params: &Params) -> Gains {
        params.refill
    }

    fn is_probing(&self) -> bool {
        true
    }

    fn on_sample(&self, shared: &mut Shared, ack: &Ack, window: &Window, bw: Rate) -> Option<Phase> {
        Refill::if_safe(shared, ack).or_else(|| {
            shared.raise_longterm(ack);
            shared.model.round_start.then(|| Up::enter(shared, ack.now, window, bw))
        })
    }
}
