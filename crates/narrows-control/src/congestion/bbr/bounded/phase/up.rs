//! Up probes for more bandwidth (BBR2-4, BBR3-6).

use super::{Down, Phase, Refill, Rules};
use crate::congestion::bbr::bounded::params::{Gains, Params, UpExit};
use crate::congestion::bbr::bounded::shared::Shared;
use crate::congestion::{Ack, Window};
use crate::units::{Rate, Time};

/// Sends at more than the estimated bandwidth.
#[derive(Clone, Debug)]
pub(in super::super) struct Up {
    since: Time,
}

impl Up {
    /// Begins a probe that looks for a rate above `bw`.
    pub(in super::super) fn enter(shared: &mut Shared, now: Time, window: &Window, bw: Rate) -> Phase {
        shared.cycle.start_up(window.cwnd);
        shared.model.start_round(shared.delivered);
        shared.restart_search(bw);
        Phase::Up(Up { since: now })
    }

    /// Returns whether the probe is over without excessive loss (`IsTimeToGoDown`).
    fn is_over(&self, shared: &mut Shared, ack: &Ack, window: &Window, bw: Rate) -> bool {
        if shared.cycle.detect_risk(ack.in_flight, &shared.bounds) {
            return true;
        }
        match shared.params.up_exit {
            UpExit::Queue(gain) => {
                // The amount in flight includes the segment that is about to leave, as in v1.
                let in_flight = ack.prior_in_flight.saturating_add(1);
                ack.now.since(self.since) > shared.model.min_rtt
                    && in_flight
                        >= self
                            .with_probe(shared.inflight(shared.model.max_bw(), gain, window), &shared.params)
            }
            UpExit::Plateau => {
                if ack.cwnd_limited && window.cwnd >= shared.bounds.longterm {
                    // The long-term bound limits the bandwidth, so a lack of growth is not a plateau.
                    shared.model.full_pipe.restart(bw);
                    return false;
                }
                shared.model.full_pipe.is_full_now()
            }
        }
    }
}

impl Rules for Up {
    fn numbers(&self) -> (u32, Option<u32>) {
        (2, Some(0))
    }

    fn gains(&self, params: &Params) -> Gains {
        params.up
    }

    fn is_probing(&self) -> bool {
        true
    }

    fn with_probe(&self, segments: u32, params: &Params) -> u32 {
        segments.saturating_add(params.up_segments)
    }

    fn on_sample(&self, shared: &mut Shared, ack: &Ack, window: &Window, bw: Rate) -> Option<Phase> {
        if let Some(refill) = Refill::if_safe(shared, ack) {
            return Some(refill);
        }
        if shared.raise_longterm(ack) {
            shared.cycle.grow(ack, shared.model.round_start, window.cwnd, &mut shared.bounds);
        }
        self.is_over(shared, ack, window, bw).then(|| {
            // The probe has had no excessive loss.
            shared.cycle.too_high = false;
            Down::enter(shared, ack.now)
        })
    }

    fn on_too_high(&self, shared: &mut Shared, now: Time) -> Option<Phase> {
        Some(Down::enter(shared, now))
    }
}
