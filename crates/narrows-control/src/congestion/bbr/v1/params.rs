//! Parameters of BBR v1.

use crate::congestion::bbr::gain::Gain;
use crate::congestion::bbr::{aggregation, pacing};
use crate::parameter::{gain, rate_from, time_from, whole};
use crate::units::{Rate, Span};

crate::parameters! {
    /// All parameters of BBR v1. The sources are the names of Linux's constants.
    pub struct Params {
        /// Startup's pacing and window gain. With 2/ln 2 the delivery rate doubles every round.
        pub high_gain: Gain = Gain::from_256ths(256 * 2885 / 1000 + 1), gain(1.0, 10.0).from("bbr_high_gain; 2/ln 2");
        /// Drain's pacing gain, the inverse of Startup's gain. Within one round, this gain drains the queue that
        /// Startup built.
        pub drain_gain: Gain = Gain::ratio(1000, 2885), gain(0.1, 1.0).from("bbr_drain_gain; ln 2/2");
        /// ProbeBW's window gain. This gain leaves room for delayed and aggregated ACKs.
        pub cwnd_gain: Gain = Gain::ratio(2, 1), gain(1.0, 10.0).from("bbr_cwnd_gain");
        /// Length of the window of the bandwidth filter.
        pub bw_rounds: u64 = 10, whole(1, 1000).unit("rounds").from("bbr_bw_rtts");
        /// Lifetime of the estimate of the propagation time. When the lifetime ends, ProbeRTT begins.
        pub min_rtt_window: Span = Span::from_secs(10), time_from(Span::from_millis(10), Span::from_secs(10000)).from("bbr_min_rtt_win_sec");
        /// If the bandwidth grows by less than this factor in a round, the pipe may be full.
        pub full_bw_growth: Gain = Gain::ratio(5, 4), gain(1.0, 4.0).from("bbr_full_bw_thresh");
        /// The pipe is full after this number of consecutive rounds in which the bandwidth grew by less than
        /// `full_bw_growth`.
        pub full_bw_rounds: u32 = 3, whole(1, 1000).unit("rounds").from("bbr_full_bw_cnt");
        /// Minimum window, which is also the window of ProbeRTT.
        pub min_cwnd: u32 = 4, whole(1, 10_000).unit("segments").from("bbr_cwnd_min_target");
        /// Window before the first RTT sample.
        pub initial_cwnd: u32 = 10, whole(1, 10_000).unit("segments").from("TCP_INIT_CWND");
        /// Segments added to the window in the probing phase, so that a probe exceeds a small BDP.
        pub probe_segments: u32 = 2, whole(0, 10_000).unit("segments").from("bbr_quantization_budget");
        /// Minimum time for which ProbeRTT keeps the minimum window.
        pub probe_rtt: Span = Span::from_millis(200), time_from(Span::ZERO, Span::from_secs(100)).from("bbr_probe_rtt_mode_ms").named("probe_rtt_duration");
    }
    and {
        /// The aggregation filter.
        pub aggregation: aggregation::Params = aggregation::Params::default();
        /// Pacing and send quanta.
        pub pacing: pacing::Params = pacing::Params::default();
        /// The policer detector.
        pub policer: PolicerParams = PolicerParams::default();
    }
}

crate::parameters! {
    /// Parameters of the long-term bandwidth sampling (BBR-22).
    pub struct PolicerParams {
        /// Minimum number of rounds in a sampling interval of the policer detector. The maximum is four times this
        /// number.
        pub min_rounds: u32 = 4, whole(1, 1000).unit("rounds").from("bbr_lt_intvl_min_rtts");
        /// A sampling interval is policed if the lost segments are at least this share of the delivered segments.
        pub loss_threshold: Gain = Gain::from_256ths(50), gain(0.0, 1.0).from("bbr_lt_loss_thresh");
        /// The rates of two sampling intervals agree if they differ by at most this share of the earlier rate, or by at
        /// most `policer_difference`.
        pub ratio: Gain = Gain::ratio(1, 8), gain(0.0, 1.0).from("bbr_lt_bw_ratio");
        /// The rates of two sampling intervals also agree if they differ by at most this rate.
        pub difference: Rate = Rate::from_bits_per_sec(4000), rate_from(Rate::ZERO, Rate::from_bits_per_sec(1_000_000_000_000)).from("bbr_lt_bw_diff");
        /// Number of rounds for which BBR uses the policed rate.
        pub max_rounds: u32 = 48, whole(0, 100_000).unit("rounds").from("bbr_lt_bw_max_rtts");
    }
}
