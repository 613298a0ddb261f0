//! Bounds on data in flight and on bandwidth, computed from losses (BBR2-1, BBR2-3, BBR3-6, BBR3-7).
//!
//! The long-term bound is the largest volume in flight without excessive loss. Only excessive losses in Startup or in a
//! probe lower this bound. Losses outside of probes lower the short-term bounds towards the delivered rate and volume.
//! The next probe removes the short-term bounds. v2's kernel module calls the long-term bound `inflight_hi`, and the
//! short-term bounds `inflight_lo` and `bw_lo`.

use super::params::Percent;
use crate::congestion::{Ack, Lost};
use crate::units::Rate;

/// No bound on data in flight.
pub const UNBOUNDED: u32 = u32::MAX;

/// The bounds and the signals that change them. Volumes are in segments.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The largest volume in flight that did not cause excessive loss.
    pub longterm: u32,
    /// The short-term limit of data in flight.
    pub shortterm: u32,
    /// The short-term limit of the bandwidth, or [`Rate::MAX`] if there is none.
    pub bw_shortterm: Rate,
    /// The largest delivery rate of a sample in the present loss round.
    bw_latest: Rate,
    /// The largest delivered volume of a sample in the present loss round.
    inflight_latest: u32,
    /// Whether the last ACK ended a loss round. A loss round begins with a loss, or when the previous loss round ends.
    pub loss_round_start: bool,
    loss_round_delivered: u64,
    loss_in_round: bool,
    /// The values of the three bounds before the present episode of losses.
    before: Option<(u32, u32, Rate)>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            longterm: UNBOUNDED,
            shortterm: UNBOUNDED,
            bw_shortterm: Rate::MAX,
            bw_latest: Rate::ZERO,
            inflight_latest: 0,
            loss_round_start: false,
            loss_round_delivered: 0,
            loss_in_round: false,
            before: None,
        }
    }
}

impl Bounds {
    /// Handles an ACK without a valid sample.
    #[inline]
    pub fn on_nothing(&mut self) {
        self.loss_round_start = false;
    }

    /// Processes a valid sample before any other code uses the sample (`UpdateLatestDeliverySignals`).
    #[inline]
    pub fn on_sample(&mut self, ack: &Ack, bw: Rate) {
        self.bw_latest = self.bw_latest.max(bw);
        self.inflight_latest = self.inflight_latest.max(ack.rate.delivered);
        self.loss_round_start = ack.rate.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = ack.delivered;
        }
    }

    /// Processes a valid sample after all other updates (`AdvanceLatestDeliverySignals`).
    #[inline]
    pub fn on_sample_done(&mut self, ack: &Ack, bw: Rate) {
        if self.loss_round_start {
            self.bw_latest = bw;
            self.inflight_latest = ack.rate.delivered;
        }
    }

    /// Handles a loss. `delivered` is the number of segments delivered so far. If `fresh` is true, the loss begins an
    /// episode, which may turn out to be spurious.
    pub fn on_loss(&mut self, delivered: u64, fresh: bool) {
        if fresh {
            // Saves the values even if this round already had a loss or an ECN echo. Otherwise an undo would restore
            // the values from before an older episode.
            self.before = Some((self.longterm, self.shortterm, self.bw_shortterm));
        }
        if !core::mem::replace(&mut self.loss_in_round, true) {
            self.loss_round_delivered = delivered;
        }
    }

    /// Discards the saved bounds, so that the present reduction cannot be undone.
    pub fn forget_before(&mut self) {
        self.before = None;
    }

    /// Called for each valid sample, after the bandwidth update. At the end of a loss round, lowers the short-term
    /// bounds if the round had a loss and `probing` is false (`AdaptLowerBoundsFromCongestion`; BBR3-7).
    #[inline]
    pub fn on_round(&mut self, probing: bool, max_bw: Rate, cwnd: u32, beta: Percent) {
        if !self.loss_round_start {
            return;
        }
        if self.loss_in_round && !probing {
            self.tighten(max_bw, cwnd, beta);
        }
        self.loss_in_round = false;
    }

    /// Lowers the short-term bounds. If there is no short-term bound yet, the reduction starts from the maximum
    /// bandwidth and the window.
    fn tighten(&mut self, max_bw: Rate, cwnd: u32, beta: Percent) {
        if self.bw_shortterm == Rate::MAX {
            self.bw_shortterm = max_bw;
        }
        self.bound_shortterm(cwnd);
        let bw = Rate::from_bytes_per_sec(beta.of(self.bw_shortterm.as_bytes_per_sec()));
        self.bw_shortterm = bw.max(self.bw_latest);
        self.shortterm = share(beta, self.shortterm).max(self.inflight_latest);
    }

    /// If there is no short-term limit of data in flight, sets it to `cwnd`.
    pub fn bound_shortterm(&mut self, cwnd: u32) {
        if self.shortterm == UNBOUNDED {
            self.shortterm = cwnd;
        }
    }

    /// Called when Drain or a cycle of ProbeBW begins. Discards the losses and samples of the present round, so that
    /// they do not lower the short-term bounds (`ResetCongestionSignals`).
    pub fn forget_round(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = 0;
    }

    /// Called when Refill begins or ProbeRTT ends. Removes the short-term bounds (`ResetShortTermModel`).
    pub fn forget_shortterm(&mut self) {
        self.shortterm = UNBOUNDED;
        self.bw_shortterm = Rate::MAX;
    }

    /// Called when losses end Startup. Sets the long-term bound to the BDP (BBR3-3). If `delivered_counts` is true, the
    /// bound is at least the largest volume that was delivered in the latest round.
    pub fn on_full_startup(&mut self, bdp: u32, delivered_counts: bool) {
        self.longterm = if delivered_counts { bdp.max(self.inflight_latest) } else { bdp };
    }

    /// Returns the long-term bound minus the headroom. The headroom is at least one segment (`InflightWithHeadroom`).
    #[inline]
    pub fn with_headroom(&self, headroom: Percent, min_cwnd: u32) -> u32 {
        if self.longterm == UNBOUNDED {
            return UNBOUNDED;
        }
        let left = share(headroom, self.longterm).max(1);
        self.longterm.saturating_sub(left).max(min_cwnd)
    }

    /// Called when the losses of the latest episode were spurious. Raises each bound to at least its value before the
    /// episode (`HandleSpuriousLossDetection`).
    pub fn undo(&mut self) {
        self.loss_in_round = false;
        if let Some((longterm, shortterm, bw)) = self.before.take() {
            self.longterm = self.longterm.max(longterm);
            self.shortterm = self.shortterm.max(shortterm);
            self.bw_shortterm = self.bw_shortterm.max(bw);
        }
    }
}

/// Returns this percentage of a number of segments, rounded down.
pub fn share(percent: Percent, segments: u32) -> u32 {
    u32::try_from(percent.of(u64::from(segments))).unwrap_or(u32::MAX)
}

/// Returns whether losses show that too much data was in flight when a segment was sent (`IsInflightTooHigh`).
pub fn is_too_high(lost: u32, tx_in_flight: u32, threshold: Percent) -> bool {
    u64::from(lost) * 100 > u64::from(tx_in_flight) * u64::from(threshold.0)
}

/// Returns the volume in flight at which losses crossed the threshold (`InflightAtLoss`; BBR2-3). All amounts are in
/// segments, or all are in bytes. The last `size` segments or bytes were marked lost together. `lost` and
/// `tx_in_flight` include them.
pub fn inflight_at_loss(tx_in_flight: u64, lost: u64, size: u64, threshold: Percent) -> u64 {
    let before = tx_in_flight.saturating_sub(size);
    let lost_before = lost.saturating_sub(size);
    // When the losses cross the threshold, lost_prefix of the last `size` segments are lost: lost_prefix = (threshold *
    // before - lost_before) / (1 - threshold). In the code, the threshold is in percent.
    let allowed = before.saturating_mul(u64::from(threshold.0));
    let prefix = allowed.saturating_sub(lost_before.saturating_mul(100));
    before.saturating_add(prefix / u64::from(100u32.saturating_sub(threshold.0).max(1)))
}

/// Returns the volume in flight, in segments, at which losses crossed the threshold. Returns `None` if losses are below
/// the threshold.
pub fn crossing(lost: &Lost, threshold: Percent) -> Option<u32> {
    is_too_high(lost.lost, lost.tx_in_flight, threshold).then(|| {
        let at = inflight_at_loss(u64::from(lost.tx_in_flight), u64::from(lost.lost), 1, threshold);
        u32::try_from(at).unwrap_or(u32::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::RateSample;
    use crate::congestion::harness::ack_at;
    use crate::units::Time;

    const THRESHOLD: Percent = Percent(2);
    const BETA: Percent = Percent(70);

    /// Returns an ACK with a sampled segment. When that segment was sent, `prior` segments had been delivered.
    fn ack(prior: u64, delivered: u64, volume: u32) -> Ack {
        let rate = RateSample { prior_delivered: prior, delivered: volume, ..RateSample::default() };
        Ack { delivered, rate, ..ack_at(Time::ZERO) }
    }

    fn rate(rate: u64) -> Rate {
        Rate::from_bytes_per_sec(rate)
    }

    /// Checks test vector TV-B2 for bursts of up to 64 kB.
    #[test]
    fn tv_b2_losses_crossed_the_threshold_2041_bytes_into_the_burst() {
        for size in [10_000, 64_000] {
            assert_eq!(inflight_at_loss(300_000 + size, 4_000 + size, size, THRESHOLD), 302_040);
        }
        // In this case, the losses before the burst already exceeded the threshold.
        assert_eq!(inflight_at_loss(310_000, 16_100, 10_000, THRESHOLD), 300_000);
    }

    #[test]
    fn two_per_cent_is_not_too_much_and_one_more_is() {
        assert!(!is_too_high(2, 100, THRESHOLD));
        assert!(is_too_high(3, 100, THRESHOLD));
        assert!(!is_too_high(0, 0, THRESHOLD));
        let lost = |lost| Lost { now: Time::ZERO, delivered: 0, tx_in_flight: 100, lost, app_limited: false };
        assert_eq!(crossing(&lost(2), THRESHOLD), None);
        assert_eq!(crossing(&lost(3), THRESHOLD), Some(99));
    }

    /// Gives `Bounds` a round with a loss while the flow does not probe. The best sample of the round has the rate
    /// `latest` and the volume `volume`. Returns the short-term bounds on the bandwidth and the volume.
    fn tighten(bw: u64, latest: u64, inflight: u32, volume: u32) -> (u64, u32) {
        let mut bounds = Bounds { bw_shortterm: rate(bw), shortterm: inflight, ..Bounds::default() };
        bounds.on_loss(10, true);
        bounds.on_sample(&ack(9, 11, volume), rate(latest));
        bounds.on_round(false, rate(bw), 1000, BETA);
        assert_eq!(bounds.bw_shortterm, rate(bw), "the round is not over");
        bounds.on_sample(&ack(10, 12, 1), rate(1));
        bounds.on_round(false, rate(bw), 1000, BETA);
        (bounds.bw_shortterm.as_bytes_per_sec(), bounds.shortterm)
    }

    /// Checks test vector TV-B3 for the bandwidth and the volume.
    #[test]
    fn tv_b3_a_loss_leaves_at_least_70_per_cent_and_the_delivered_amount() {
        assert_eq!(tighten(100, 65, 100, 65), (70, 70));
        assert_eq!(tighten(100, 80, 100, 80), (80, 80));
    }

    #[test]
    fn a_round_is_answered_once_for_any_number_of_losses_and_never_during_a_probe() {
        let mut bounds = Bounds::default();
        for _ in 0..5 {
            bounds.on_loss(10, true);
        }
        bounds.on_sample(&ack(10, 20, 1), rate(1));
        bounds.on_round(false, rate(1000), 50, BETA);
        // Without a short-term bound, the reduction starts from the maximum bandwidth and the window.
        assert_eq!((bounds.bw_shortterm, bounds.shortterm), (rate(700), 35));
        bounds.on_sample(&ack(20, 30, 1), rate(1));
        bounds.on_round(false, rate(1000), 50, BETA);
        assert_eq!((bounds.bw_shortterm, bounds.shortterm), (rate(700), 35));
        bounds.on_loss(30, true);
        bounds.on_sample(&ack(30, 40, 1), rate(1));
        bounds.on_round(true, rate(1000), 50, BETA);
        assert_eq!((bounds.bw_shortterm, bounds.shortterm), (rate(700), 35));
        bounds.forget_shortterm();
        assert_eq!((bounds.bw_shortterm, bounds.shortterm), (Rate::MAX, UNBOUNDED));
    }

    #[test]
    fn headroom_is_15_per_cent_at_least_a_segment_and_leaves_four_segments() {
        let with = |longterm| Bounds { longterm, ..Bounds::default() }.with_headroom(Percent(15), 4);
        assert_eq!([with(100), with(6), with(4), with(UNBOUNDED)], [85, 5, 4, UNBOUNDED]);
    }

    #[test]
    fn a_spurious_episode_leaves_no_bound_lower_than_before() {
        let mut bounds = Bounds { longterm: 200, shortterm: 150, ..Bounds::default() };
        bounds.on_loss(10, true);
        bounds.longterm = 90;
        bounds.on_sample(&ack(10, 20, 1), rate(1));
        bounds.on_round(false, rate(1000), 50, BETA);
        // A later loss of the same episode does not replace the saved values.
        bounds.on_loss(20, false);
        bounds.undo();
        assert_eq!((bounds.longterm, bounds.shortterm, bounds.bw_shortterm), (200, 150, Rate::MAX));
    }

    #[test]
    fn startups_bound_is_the_bdp_or_the_volume_delivered_in_a_round() {
        let mut bounds = Bounds::default();
        bounds.on_sample(&ack(0, 10, 120), rate(1));
        bounds.on_full_startup(100, true);
        assert_eq!(bounds.longterm, 120);
        bounds.on_full_startup(100, false);
        assert_eq!(bounds.longterm, 100);
    }
}
