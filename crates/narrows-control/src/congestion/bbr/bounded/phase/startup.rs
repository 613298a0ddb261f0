//! Startup doubles the rate every round until the pipe is full (BBR3-3).

use super::{Drain, Phase, Rules};
use crate::congestion::bbr::bounded::bounds::{UNBOUNDED, is_too_high};
use crate::congestion::bbr::bounded::params::{Gains, Params};
use crate::congestion::bbr::bounded::shared::Shared;
use crate::congestion::bbr::gain::Gain;
use crate::congestion::{Ack, State, Window};

/// Searches for the bandwidth.
#[derive(Clone, Debug)]
pub(in super::super) struct Startup;

impl Rules for Startup {
    fn numbers(&self) -> (u32, Option<u32>) {
        (0, None)
    }

    fn gains(&self, params: &Params) -> Gains {
        params.startup
    }

    fn is_probing(&self) -> bool {
        true
    }

    fn longterm(&self, _: &Shared) -> u32 {
        UNBOUNDED
    }

    fn on_model(&self, shared: &mut Shared, _: &Ack, window: &mut Window) -> Option<Phase> {
        shared.has_been_full().then(|| Drain::enter(shared, window))
    }
}

/// Ends Startup after a round of recovery with excessive losses in many places (`CheckStartupHighLoss`). To end
/// Startup, this function marks the pipe as full. If ProbeRTT interrupts Startup, losses in ProbeRTT count as well.
pub(in super::super) fn check_losses(shared: &mut Shared, ack: &Ack, window: &Window) {
    shared.startup_losses = shared.startup_losses.saturating_add(u32::from(ack.lost > 0));
    if !shared.bounds.loss_round_start {
        return;
    }
    let enough = core::mem::take(&mut shared.startup_losses) >= shared.params.startup_losses;
    let high = is_too_high(ack.rate.lost, ack.rate.tx_in_flight, shared.params.loss_threshold);
    if enough && high && ack.state == State::Recovery {
        let fits = shared.inflight(shared.model.max_bw(), Gain::ONE, window);
        shared.bounds.on_full_startup(fits, shared.params.startup_bound_delivered);
        shared.model.full_pipe.reach();
    }
}
