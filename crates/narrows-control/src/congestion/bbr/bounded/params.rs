//! Parameters of BBR v2 and v3. The values are in `v2.rs` and `v3.rs`.

use crate::congestion::bbr::gain::Gain;
use crate::congestion::bbr::{aggregation, pacing};
use crate::units::Span;

/// A share in per cent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Percent(pub u32);

impl Percent {
    /// This share of an amount, rounded down.
    #[inline]
    pub fn of(self, amount: u64) -> u64 {
        match amount.checked_mul(u64::from(self.0)) {
            Some(hundredths) => hundredths / 100,
            None => (amount / 100).saturating_mul(u64::from(self.0)),
        }
    }
}

/// What a state makes of the model.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Gains {
    /// Multiple of the bandwidth to pace at.
    pub pacing: Gain,
    /// Multiple of the bandwidth-delay product to allow in flight.
    pub cwnd: Gain,
}

/// When a probe for bandwidth has found all there is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum UpExit {
    /// v2: after a propagation time, when this many bandwidth-delay products are in flight: they queue.
    Queue(Gain),
    /// v3: when the delivery rate has stopped growing, as in Startup (BBR3-2).
    Plateau,
}

/// Every tunable. Names in parentheses are those of the draft (draft-ietf-ccwg-bbr) or of Google's module.
#[derive(Clone, Debug)]
pub struct Params {
    /// The name in scenarios and results.
    pub name: &'static str,

    // Gains.
    /// Doubles the rate every round.
    pub startup: Gains,
    /// Empties what Startup queued.
    pub drain: Gains,
    /// Leaves room.
    pub down: Gains,
    /// Keeps to the bandwidth found.
    pub cruise: Gains,
    /// Fills the pipe, so that a probe that overflows a shallow buffer does not start from less.
    pub refill: Gains,
    /// Looks for more.
    pub up: Gains,
    /// Empties the pipe to see the propagation time; `cwnd` is the whole window (`ProbeRTTCwndGain`).
    pub probe_rtt: Gains,

    // Full pipe.
    /// Growth of bandwidth that says the pipe is not full yet.
    pub full_bw_growth: Gain,
    /// Rounds without such growth that say it is.
    pub full_bw_rounds: u32,
    /// When Up ends. With [`UpExit::Plateau`] the full-pipe detector compares samples, else the maximum, as v1's.
    pub up_exit: UpExit,
    /// Most rounds in Drain (BBR3-4).
    pub drain_rounds: Option<u64>,

    // Loss.
    /// Lost of what was in flight: more is too much in flight (`LossThresh`).
    pub loss_threshold: Percent,
    /// What a reduction leaves at least (`Beta`).
    pub beta: Percent,
    /// What Cruise and ProbeRTT leave free of the long-term bound for others (`Headroom`).
    pub headroom: Percent,
    /// Losses in a round that end Startup: ACKs that report some, as a stand-in for ranges (`StartupFullLossCnt`).
    pub startup_losses: u32,
    /// Whether the bound that such losses set is at least what a round delivered (BBR3-3).
    pub startup_bound_delivered: bool,
    /// Whether an episode of losses that was none gives back the state that it began in, Startup or Up, and not the bounds alone
    /// (`HandleSpuriousLossDetection`).
    pub undo_returns: bool,
    /// Whether an ECN echo counts as a loss (BBR3-10).
    pub ce_is_loss: bool,

    // When to probe (BBR3-5).
    /// Least time from one probe's end to the next probe (`bw_probe_base_us`).
    pub probe_wait: Span,
    /// At most this much more, at random (`bw_probe_rand_us`).
    pub probe_wait_random: Span,
    /// Most rounds to the next probe (`bw_probe_max_rounds`).
    pub probe_rounds: u32,
    /// The count of rounds starts below this, at random (`bw_probe_rand_rounds`).
    pub probe_rounds_random: u32,

    // Propagation time (BBR3-9).
    /// Life of the estimate (`MinRTTFilterLen`).
    pub min_rtt_window: Span,
    /// Time without an RTT as low as the least of late that brings ProbeRTT (`ProbeRTTInterval`).
    pub probe_rtt_interval: Span,
    /// Whether an RTT equal to the least of late puts ProbeRTT off: in the module of v2, `<=` as Linux's v1 had before 5.10.
    pub equal_rtt_renews: bool,
    /// How long the window stays down, at least (`ProbeRTTDuration`).
    pub probe_rtt_stay: Span,

    // Window.
    /// Least window, segments (`MinPipeCwnd`).
    pub min_cwnd: u32,
    /// Window while there is no RTT sample, segments.
    pub initial_cwnd: u32,
    /// Send quanta that the window has room for at least: sender, offload and receiver (`offload_budget`).
    pub offload_quanta: u32,
    /// Segments added to the window in Up, so that a small bandwidth-delay product is exceeded.
    pub up_segments: u32,
    /// The aggregation filter (`ExtraAckedFilterLen`).
    pub aggregation: aggregation::Params,
    /// The same in Startup, where an old excess would only swell the window.
    pub startup_aggregation: aggregation::Params,
    /// Pacing and send quanta.
    pub pacing: pacing::Params,
}
