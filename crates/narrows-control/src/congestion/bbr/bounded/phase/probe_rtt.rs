//! ProbeRTT keeps little data in flight to measure the propagation time (BBR3-9).

use super::{Cruise, Phase, Rules, Startup};
use crate::congestion::bbr::bounded::params::{Gains, Params};
use crate::congestion::bbr::bounded::shared::Shared;
use crate::congestion::bbr::probe_rtt;
use crate::congestion::{Ack, Window};
use crate::units::Time;

/// Empties the queue.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct ProbeRtt(probe_rtt::ProbeRtt);

impl ProbeRtt {
    pub(super) fn enter(shared: &mut Shared, ack: &Ack, window: &Window) -> Phase {
        // With `true`, `save` keeps the larger of the saved window and the present window.
        shared.saved.save(window.cwnd, true);
        shared.cycle.interrupt();
        shared.model.start_round(ack.delivered);
        Phase::ProbeRtt(ProbeRtt::default())
    }

    /// Processes an ACK.
    pub(super) fn on_ack(&mut self, shared: &mut Shared, ack: &Ack, window: &mut Window) -> Option<Phase> {
        let (few, stay) = (shared.probe_rtt_cwnd(), shared.params.probe_rtt_stay);
        self.0.on_ack(ack, &mut shared.model, few, stay).then(|| leave(shared, ack.now, window))
    }

    /// Called when the sender restarts from idle. The queue was empty during the idle time.
    pub(in super::super) fn on_restart(
        &self,
        shared: &mut Shared,
        now: Time,
        window: &mut Window,
    ) -> Option<Phase> {
        self.0.is_over(now).then(|| leave(shared, now, window))
    }
}

fn leave(shared: &mut Shared, now: Time, window: &mut Window) -> Phase {
    shared.min_rtt.at = now;
    window.cwnd = window.cwnd.max(shared.saved.cwnd());
    shared.bounds.forget_shortterm();
    if !shared.has_been_full() {
        return Phase::Startup(Startup);
    }
    // This cycle begins without Down, because the data in flight is already below the bandwidth-delay product.
    shared.start_cycle(now);
    Phase::Cruise(Cruise)
}

impl Rules for ProbeRtt {
    fn numbers(&self) -> (u32, Option<u32>) {
        (3, None)
    }

    fn gains(&self, params: &Params) -> Gains {
        params.probe_rtt
    }

    fn longterm(&self, shared: &Shared) -> u32 {
        shared.with_headroom()
    }
}
