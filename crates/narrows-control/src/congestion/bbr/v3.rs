//! BBR version 3 (draft-ietf-ccwg-bbr-06, July 2026): the parameters of [`Bounded`].

use super::bounded::Bounded;
use super::bounded::params::{Gains, Params, Percent, UpExit};
use super::gain::Gain;
use super::{aggregation, pacing};
use crate::units::{Rate, Span};

/// Returns BBR v3.
pub fn bbr3() -> Bounded {
    Bounded::new(params())
}

/// Returns the draft's constants. Values that the draft gives with only two digits are rounded as in Google's module.
pub fn params() -> Params {
    let gains = |pacing, cwnd| Gains { pacing, cwnd };
    let two = Gain::ratio(2, 1);
    let aggregation = aggregation::Params::default();
    Params {
        name: "bbr3",
        // With a window gain of 2, the pacing gain 4 ln 2 = 2.7726 doubles the rate every round.
        startup: gains(Gain::from_256ths(256 * 277 / 100 + 1), two),
        drain: gains(Gain::ratio(1, 2), two),
        down: gains(Gain::ratio(9, 10), two),
        cruise: gains(Gain::ONE, two),
        refill: gains(Gain::ONE, two),
        up: gains(Gain::ratio(5, 4), Gain::ratio(9, 4)),
        probe_rtt: gains(Gain::ONE, Gain::ratio(1, 2)),
        full_bw_growth: Gain::ratio(5, 4),
        full_bw_rounds: 3,
        up_exit: UpExit::Plateau,
        drain_rounds: Some(3),
        loss_threshold: Percent(2),
        beta: Percent(70),
        headroom: Percent(15),
        startup_losses: 6,
        startup_bound_delivered: true,
        undo_returns: true,
        ce_is_loss: true,
        probe_wait: Span::from_secs(2),
        probe_wait_random: Span::from_secs(1),
        probe_rounds: 63,
        probe_rounds_random: 2,
        min_rtt_window: Span::from_secs(10),
        probe_rtt_interval: Span::from_secs(5),
        equal_rtt_renews: false,
        probe_rtt_stay: Span::from_millis(200),
        min_cwnd: 4,
        initial_cwnd: 10,
        offload_quanta: 3,
        up_segments: 2,
        startup_aggregation: aggregation::Params { rounds: 1, ..aggregation.clone() },
        aggregation,
        // The send quantum is 1 ms of the pacing rate, at least two segments, and at most 64 KB (`SetSendQuantum`).
        pacing: pacing::Params {
            quantum: Span::from_millis(1),
            min_quantum_rate: Rate::ZERO,
            ..pacing::Params::default()
        },
    }
}
