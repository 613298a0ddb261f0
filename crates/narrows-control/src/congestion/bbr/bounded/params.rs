//! Parameters of BBR v2 and v3. The values are in `v2.rs` and `v3.rs`.

use crate::congestion::bbr::gain::Gain;
use crate::congestion::bbr::{aggregation, pacing};
use crate::units::Span;

/// A percentage.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Percent(pub u32);

impl Percent {
    /// Takes this percentage of an amount, rounded down.
    #[inline]
    pub fn of(self, amount: u64) -> u64 {
        match amount.checked_mul(u64::from(self.0)) {
            Some(hundredths) => hundredths / 100,
            None => (amount / 100).saturating_mul(u64::from(self.0)),
        }
    }
}

/// The gains of a state.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Gains {
    /// Pacing rate over bandwidth.
    pub pacing: Gain,
    /// Data in flight over the bandwidth-delay product.
    pub cwnd: Gain,
}

/// The condition that ends a probe for bandwidth if there is no loss.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum UpExit {
    /// v2: after a propagation time, with this many bandwidth-delay products in flight.
    Queue(Gain),
    /// v3: when the delivery rate stops growing, as in Startup (BBR3-2).
    Plateau,
}

/// All parameters. Names in parentheses are from the draft (draft-ietf-ccwg-bbr) or from Google's
/// module.
#[derive(Clone, Debug)]
pub struct Params {
    /// The name in scenarios and results.
    pub name: &'static str,

    // Gains.
    /// Doubles the rate every round.
    pub startup: Gains,
    /// Drains the queue that Startup built.
    pub drain: Gains,
    /// Leaves room.
    pub down: Gains,
    /// Holds the measured bandwidth.
    pub cruise: Gains,
    /// Fills the pipe, so that a probe that overflows a shallow buffer starts from a full pipe.
    pub refill: Gains,
    /// Looks for more.
    pub up: Gains,
    /// Drains the pipe to measure the propagation time; `cwnd` is the whole window
    /// (`ProbeRTTCwndGain`).
    pub probe_rtt: Gains,

    // Full pipe.
    /// Growth of the bandwidth per round below which the pipe may be full.
    pub full_bw_growth: Gain,
    /// Consecutive rounds below that growth that mean a full pipe.
    pub full_bw_rounds: u32,
    /// When Up ends. With [`UpExit::Plateau`] the full-pipe detector compares samples; otherwise it
    /// compares the maximum, as in v1.
    pub up_exit: UpExit,
    /// Maximum rounds in Drain (BBR3-4).
    pub drain_rounds: Option<u64>,

    // Loss.
    /// Share of the data in flight whose loss is excessive (`LossThresh`).
    pub loss_threshold: Percent,
    /// Minimum share that a reduction leaves (`Beta`).
    pub beta: Percent,
    /// Share of the long-term bound that Cruise and ProbeRTT leave to others (`Headroom`).
    pub headroom: Percent,
    /// Losses in a round that end Startup (`StartupFullLossCnt`). Each ACK that reports losses
    /// counts as a lost range.
    pub startup_losses: u32,
    /// Whether the resulting bound is at least the volume delivered in a round (BBR3-3).
    pub startup_bound_delivered: bool,
    /// Whether a spurious episode of losses restores the state in which it began, Startup or Up,
    /// and not only the bounds (`HandleSpuriousLossDetection`).
    pub undo_returns: bool,
    /// Whether an ECN echo counts as a loss (BBR3-10).
    pub ce_is_loss: bool,

    // Scheduling of probes (BBR3-5).
    /// Minimum time from the end of a probe to the next probe (`bw_probe_base_us`).
    pub probe_wait: Span,
    /// Maximum random addition to that time (`bw_probe_rand_us`).
    pub probe_wait_random: Span,
    /// Maximum rounds until the next probe (`bw_probe_max_rounds`).
    pub probe_rounds: u32,
    /// The count of rounds starts at a random value below this number (`bw_probe_rand_rounds`).
    pub probe_rounds_random: u32,

    // Propagation time (BBR3-9).
    /// Life of the estimate (`MinRTTFilterLen`).
    pub min_rtt_window: Span,
    /// ProbeRTT begins when no RTT was as low as the recent minimum for this time (`ProbeRTTInterval`).
    pub probe_rtt_interval: Span,
    /// Whether an RTT equal to the recent minimum postpones ProbeRTT. v2's module has `<=`, as
    /// Linux's v1 before 5.10.
    pub equal_rtt_renews: bool,
    /// Minimum length of ProbeRTT (`ProbeRTTDuration`).
    pub probe_rtt_stay: Span,

    // Window.
    /// Least window, segments (`MinPipeCwnd`).
    pub min_cwnd: u32,
    /// Window before the first RTT sample, segments.
    pub initial_cwnd: u32,
    /// Minimum window in send quanta: sender, offload and receiver (`offload_budget`).
    pub offload_quanta: u32,
    /// Segments added to the window in Up, so that a probe exceeds a small bandwidth-delay product.
    pub up_segments: u32,
    /// The aggregation filter (`ExtraAckedFilterLen`).
    pub aggregation: aggregation::Params,
    /// The aggregation filter in Startup, where an old excess would only enlarge the window.
    pub startup_aggregation: aggregation::Params,
    /// Pacing and send quanta.
    pub pacing: pacing::Params,
}
