//! Parameters of BBR v1.

use super::gain::Gain;
use super::{aggregation, pacing};
use crate::units::{Rate, Span};

/// All parameters of BBR v1. Names in parentheses are Linux's.
#[derive(Clone, Debug)]
pub struct Params {
    // Gains.
    /// Startup's pacing and window gain. With 2/ln 2 the delivery rate doubles every round (`bbr_high_gain`).
    pub high_gain: Gain,
    /// Drain's pacing gain: the inverse of Startup's gain. Within a round, it drains the queue that
    /// Startup built (`bbr_drain_gain`).
    pub drain_gain: Gain,
    /// ProbeBW's window gain: room for delayed and aggregated ACKs (`bbr_cwnd_gain`).
    pub cwnd_gain: Gain,

    // Model.
    /// Window of the bandwidth filter, rounds (`bbr_bw_rtts`).
    pub bw_rounds: u64,
    /// Lifetime of the RTT estimate (`bbr_min_rtt_win_sec`).
    pub min_rtt_window: Span,
    /// Growth of the bandwidth per round below which the pipe may be full (`bbr_full_bw_thresh`).
    pub full_bw_growth: Gain,
    /// Consecutive rounds below that growth that mean a full pipe (`bbr_full_bw_cnt`).
    pub full_bw_rounds: u32,
    /// The aggregation filter.
    pub aggregation: aggregation::Params,

    // Window and bursts.
    /// Minimum window, segments; also ProbeRTT's window (`bbr_cwnd_min_target`).
    pub min_cwnd: u32,
    /// Window before the first RTT sample, segments (`TCP_INIT_CWND`).
    pub initial_cwnd: u32,
    /// Pacing and send quanta.
    pub pacing: pacing::Params,
    /// Segments added to the window in the probing phase, so that a probe exceeds a small BDP
    /// (`bbr_quantization_budget`).
    pub probe_segments: u32,

    // ProbeRTT.
    /// Minimum time at the smallest window (`bbr_probe_rtt_mode_ms`).
    pub probe_rtt: Span,

    /// The policer detector.
    pub policer: PolicerParams,
}

/// Parameters of the long-term bandwidth sampling (BBR-22).
#[derive(Clone, Debug)]
pub struct PolicerParams {
    /// Minimum rounds of an interval; the maximum is four times this (`bbr_lt_intvl_min_rtts`).
    pub min_rounds: u32,
    /// In a policed interval, lost / delivered is at least this (`bbr_lt_loss_thresh`).
    pub loss_threshold: Gain,
    /// Two intervals agree if they differ by at most this share (`bbr_lt_bw_ratio`) ...
    pub ratio: Gain,
    /// ... or by at most this (`bbr_lt_bw_diff`).
    pub difference: Rate,
    /// Rounds for which the policed rate is used (`bbr_lt_bw_max_rtts`).
    pub max_rounds: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            high_gain: Gain::from_256ths(256 * 2885 / 1000 + 1),
            drain_gain: Gain::ratio(1000, 2885),
            cwnd_gain: Gain::ratio(2, 1),
            bw_rounds: 10,
            min_rtt_window: Span::from_secs(10),
            full_bw_growth: Gain::ratio(5, 4),
            full_bw_rounds: 3,
            aggregation: aggregation::Params::default(),
            min_cwnd: 4,
            initial_cwnd: 10,
            pacing: pacing::Params::default(),
            probe_segments: 2,
            probe_rtt: Span::from_millis(200),
            policer: PolicerParams::default(),
        }
    }
}

impl Default for PolicerParams {
    fn default() -> Self {
        PolicerParams {
            min_rounds: 4,
            loss_threshold: Gain::from_256ths(50),
            ratio: Gain::ratio(1, 8),
            difference: Rate::from_bits_per_sec(4000),
            max_rounds: 48,
        }
    }
}
