//! BBR version 2 as in Google's `tcp_bbr2.c` ("alpha"): the parameters of [`Bounded`].

use super::bounded::Bounded;
use super::bounded::params::{Gains, Params, UpExit};
use super::gain::Gain;
use super::{pacing, v3};

/// Returns BBR v2.
pub fn bbr2() -> Bounded {
    Bounded::new(params())
}

/// Returns the parameters of v2: the module's defaults where they differ from v3, and v3's parameters otherwise.
pub fn params() -> Params {
    let gains = |pacing, cwnd| Gains { pacing, cwnd };
    let two = Gain::ratio(2, 1);
    // 2/ln 2, as in v1 (`bbr_high_gain`, `bbr_startup_cwnd_gain`).
    let high = Gain::from_256ths(256 * 2885 / 1000 + 1);
    Params {
        name: "bbr2",
        startup: gains(high, high),
        drain: gains(Gain::ratio(1000, 2885), high),
        down: gains(Gain::ratio(3, 4), two),
        up: gains(Gain::ratio(5, 4), two),
        // `bbr_bw_probe_pif_gain`.
        up_exit: UpExit::Queue(Gain::ratio(5, 4)),
        drain_rounds: None,
        // `bbr_full_loss_cnt`.
        startup_losses: 8,
        startup_bound_delivered: false,
        undo_returns: false,
        ce_is_loss: false,
        equal_rtt_renews: true,
        pacing: pacing::Params::default(),
        ..v3::params()
    }
}
