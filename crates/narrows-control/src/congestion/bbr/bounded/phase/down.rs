//! Down drains the queue of a probe and leaves headroom (BBR2-5, BBR3-6). A cycle of ProbeBW begins with Down, except
//! after ProbeRTT.

use super::{Cruise, Phase, Refill, Rules};
use crate::congestion::bbr::bounded::params::{Gains, Params};
use crate::congestion::bbr::bounded::shared::Shared;
use crate::congestion::bbr::gain::Gain;
use crate::congestion::{Ack, Window};
use crate::units::{Rate, Time};

/// Sends at less than the estimated bandwidth.
#[derive(Clone, Debug)]
pub(in super::super) struct Down;

impl Down {
    pub(in super::super) fn enter(shared: &mut Shared, now: Time) -> Phase {
        shared.start_cycle(now);
        Phase::Down(Down)
    }
}

impl Rules for Down {
    fn numbers(&self) -> (u32, Option<u32>) {
        (2, Some(1))
    }

    fn gains(&self, params: &Params) -> Gains {
        params.down
    }

    fn on_sample(&self, shared: &mut Shared, ack: &Ack, window: &Window, _: Rate) -> Option<Phase> {
        Refill::if_safe(shared, ack).or_else(|| {
            shared.raise_longterm(ack);
            Refill::if_due(shared, ack, window)
                .or_else(|| has_drained(shared, ack, window).then_some(Phase::Cruise(Cruise)))
        })
    }
}

/// Returns whether the queue is empty and there is headroom (`IsTimeToCruise`).
fn has_drained(shared: &Shared, ack: &Ack, window: &Window) -> bool {
    ack.in_flight <= shared.with_headroom()
        && ack.in_flight <= shared.inflight(shared.model.max_bw(), Gain::ONE, window)
}
