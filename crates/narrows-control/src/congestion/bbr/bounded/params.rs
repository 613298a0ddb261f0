//! Parameters of BBR v2 and v3. The values are in `v2.rs` and `v3.rs`.

use crate::congestion::bbr::gain::Gain;
use crate::congestion::bbr::{aggregation, pacing};
use crate::parameter::{Field, Shape, Value, flag, gain, number, time_from, whole};
use crate::units::Span;

/// A percentage.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Percent(pub u32);

impl Percent {
    /// Returns this percentage of an amount, rounded down.
    #[inline]
    pub fn of(self, amount: u64) -> u64 {
        match amount.checked_mul(u64::from(self.0)) {
            Some(hundredths) => hundredths / 100,
            None => (amount / 100).saturating_mul(u64::from(self.0)),
        }
    }
}

impl Field for Percent {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        u32::read(value, shape).map(Percent)
    }
    fn value(&self, shape: &Shape) -> Value {
        self.0.value(shape)
    }
}

crate::parameters! {
    /// The gains of a state.
    #[derive(Copy, Eq)]
    pub struct Gains without default {
        /// Pacing rate divided by the estimated bandwidth.
        pub pacing: Gain, gain(0.1, 10.0).named("pacing_gain").from("ProbeBW and Startup of the draft");
        /// Limit of the data in flight, divided by the bandwidth-delay product.
        pub cwnd: Gain, gain(0.1, 10.0).named("cwnd_gain").from("ProbeBW and Startup of the draft");
    }
}

/// The condition that ends a probe for bandwidth if there is no loss.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum UpExit {
    /// In v2, the probe ends when more than one propagation time has passed and this number of bandwidth-delay products
    /// is in flight.
    Queue(Gain),
    /// In v3, the probe ends when the delivery rate stops growing, as in Startup (BBR3-2).
    Plateau,
}

crate::parameters! {
    /// All parameters. The sources are names of the draft (draft-ietf-ccwg-bbr) or of Google's module.
    pub struct Params without default {
        /// If the bandwidth grows by less than this factor in a round, the pipe may be full.
        pub full_bw_growth: Gain, gain(1.0, 4.0).from("StartupFullBWThresh");
        /// The pipe is full after this number of consecutive rounds in which the bandwidth grew by less than
        /// `full_bw_growth`.
        pub full_bw_rounds: u32, whole(1, 1000).unit("rounds").from("the draft, section 5.3.1.2");
        /// Maximum number of rounds in Drain.
        pub drain_rounds: Option<u64>, whole(1, 1000).unit("rounds").or_none().from("BBR3-4");
        /// Loss is excessive if it exceeds this share of the data in flight.
        pub loss_threshold: Percent, number(0.0, 1.0).per(100).from("LossThresh");
        /// A reduction leaves at least this share of a bound.
        pub beta: Percent, number(0.1, 0.99).per(100).from("Beta");
        /// Share of the long-term bound that Cruise and ProbeRTT leave to other flows.
        pub headroom: Percent, number(0.0, 0.9).per(100).from("Headroom");
        /// Startup ends if a round has at least this number of lost ranges and excessive loss. Each ACK that reports
        /// losses counts as one lost range.
        pub startup_losses: u32, whole(1, 100_000).from("StartupFullLossCnt");
        /// Whether the long-term bound at the end of Startup is at least the largest volume that was delivered in the
        /// last round.
        pub startup_bound_delivered: bool, flag().from("BBR3-3");
        /// Whether the flow returns to its earlier phase (Startup or Up) after a spurious episode of losses. The bounds
        /// are always restored.
        pub undo_returns: bool, flag().from("HandleSpuriousLossDetection");
        /// Whether an ECN echo counts as a loss.
        pub ce_is_loss: bool, flag().from("BBR3-10");
        /// Time from the end of a probe to the next probe, without `probe_wait_random`. The next probe begins earlier
        /// if a limit in rounds is reached first.
        pub probe_wait: Span, time_from(Span::from_millis(1), Span::from_secs(1000)).from("bw_probe_base_us");
        /// Maximum of the random time that is added to `probe_wait`.
        pub probe_wait_random: Span, time_from(Span::ZERO, Span::from_secs(1000)).from("bw_probe_rand_us");
        /// Maximum number of rounds from the end of a probe to the next probe.
        pub probe_rounds: u32, whole(1, 100_000).unit("rounds").from("bw_probe_max_rounds");
        /// The count of rounds starts at a random value below this number.
        pub probe_rounds_random: u32, whole(1, 100_000).unit("rounds").from("bw_probe_rand_rounds");
        /// Lifetime of the estimate of the propagation time.
        pub min_rtt_window: Span, time_from(Span::from_millis(10), Span::from_secs(10000)).from("MinRTTFilterLen");
        /// ProbeRTT begins if no RTT has reached the recent minimum for this time.
        pub probe_rtt_interval: Span, time_from(Span::from_millis(10), Span::from_secs(10000)).from("ProbeRTTInterval");
        /// Whether an RTT equal to the recent minimum postpones ProbeRTT, as in the module of v2 and in Linux's v1
        /// before Linux 5.10.
        pub equal_rtt_renews: bool, flag().from("tcp_bbr2.c");
        /// Minimum length of ProbeRTT.
        pub probe_rtt_stay: Span, time_from(Span::ZERO, Span::from_secs(100)).from("ProbeRTTDuration").named("probe_rtt_duration");
        /// Minimum window.
        pub min_cwnd: u32, whole(1, 10_000).unit("segments").from("MinPipeCwnd");
        /// Window before the first RTT sample.
        pub initial_cwnd: u32, whole(1, 10_000).unit("segments").from("TCP_INIT_CWND");
        /// Minimum window in send quanta. This minimum leaves room for the bursts of sender, segmentation offload and
        /// receiver.
        pub offload_quanta: u32, whole(0, 1000).unit("quanta").from("offload_budget");
        /// Segments added to the window in Up, so that a probe exceeds a small bandwidth-delay product.
        pub up_segments: u32, whole(0, 10_000).unit("segments").from("ours");
    }
    and {
        /// The name in scenarios and results.
        pub name: &'static str;
        /// The gains of Startup, which doubles the rate every round.
        pub startup: Gains;
        /// The gains of Drain, which drains the queue that Startup built.
        pub drain: Gains;
        /// The gains of Down, which drains the queue of a probe and leaves room for other flows.
        pub down: Gains;
        /// The gains of Cruise, which holds the measured bandwidth.
        pub cruise: Gains;
        /// The gains of Refill, which fills the pipe before a probe.
        pub refill: Gains;
        /// The gains of Up, which probes for more bandwidth.
        pub up: Gains;
        /// The gains of ProbeRTT, which drains the pipe to measure the propagation time. `cwnd`
        /// determines the whole window (`ProbeRTTCwndGain`).
        pub probe_rtt: Gains;
        /// The condition that ends Up. With [`UpExit::Plateau`], the full-pipe detector uses the delivery rate of each
        /// sample. Otherwise it uses the maximum bandwidth, as in v1.
        pub up_exit: UpExit;
        /// The aggregation filter (`ExtraAckedFilterLen`).
        pub aggregation: aggregation::Params;
        /// The aggregation filter in Startup. It forgets an excess sooner than `aggregation` does, because an old
        /// excess would only enlarge the window.
        pub startup_aggregation: aggregation::Params;
        /// Pacing and send quanta.
        pub pacing: pacing::Params;
    }
}
