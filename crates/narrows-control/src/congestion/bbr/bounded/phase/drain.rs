//! Drain empties the queue that Startup built (BBR3-4).

use super::{Down, Phase, Rules};
use crate::congestion::bbr::bounded::params::{Gains, Params};
use crate::congestion::bbr::bounded::shared::Shared;
use crate::congestion::bbr::gain::Gain;
use crate::congestion::{Ack, Window};

/// Sends at less than the estimated bandwidth.
#[derive(Clone, Debug)]
pub(in super::super) struct Drain {
    /// The round in which Drain began.
    pub(in super::super) since: u64,
}

impl Drain {
    pub(super) fn enter(shared: &mut Shared, window: &mut Window) -> Phase {
        shared.bounds.forget_round();
        // The transport decides whether the window limits the sender. The low threshold keeps the transport from using
        // its slow-start rule for this decision.
        window.ssthresh = shared.params.min_cwnd;
        Phase::Drain(Drain { since: shared.model.round })
    }
}

impl Rules for Drain {
    fn numbers(&self) -> (u32, Option<u32>) {
        (1, None)
    }

    fn gains(&self, params: &Params) -> Gains {
        params.drain
    }

    fn on_model(&self, shared: &mut Shared, ack: &Ack, window: &mut Window) -> Option<Phase> {
        let long = shared.params.drain_rounds.is_some_and(|most| shared.model.round > self.since + most);
        let is_over = long || ack.in_flight <= shared.inflight(shared.bw(), Gain::ONE, window);
        is_over.then(|| Down::enter(shared, ack.now))
    }
}
