//! BIC: a binary search for the window of the last congestion, and then a search for a larger window.
//!
//! Source: Linux `tcp_bic.c`, after Xu, Harfoush and Rhee, "Binary Increase Congestion Control for Fast Long-Distance
//! Networks" (INFOCOM 2004). The integer arithmetic is that of Linux.
//!
//! Deviations from Linux:
//! * Time is in nanoseconds, not jiffies.
//! * The ACK ratio uses the recovery state after an ACK, not the state before the ACK.

use super::slow_start::{AdditiveIncrease, left_for_avoidance, part};
use crate::congestion::{Ack, Congestion, Controller, Signal, State, Window};
use crate::parameter::{flag, number, whole};
use crate::units::{NANOS_PER_SEC, Span, Time};

crate::parameters! {
    /// Parameters of [`Bic`]; the defaults are Linux's module parameters.
    pub struct Params {
        /// Maximum growth of the window per RTT.
        pub max_increment: u32 = 16, whole(1, 10_000).unit("segments").from("tcp_bic.c; Smax of the paper").module("max_increment", 1.0);
        /// Per RTT, the search covers 1/n of the distance to its goal.
        pub search_divisor: u32 = 4, whole(1, 100).from("BICTCP_B");
        /// Close to the goal, the window grows by one segment per `smooth_part / search_divisor` RTTs.
        pub smooth_part: u32 = 20, whole(1, 1000).from("tcp_bic.c").module("smooth_part", 1.0);
        /// Below this window, BIC behaves as Reno does.
        pub low_window: u32 = 14, whole(0, 1_000_000).unit("segments").from("tcp_bic.c").module("low_window", 1.0);
        /// Share of the window kept on congestion.
        pub beta: u32 = 819, number(0.1, 0.95).per(1024).from("tcp_bic.c; 0.8").module("beta", 1024.0);
        /// Whether the flow yields to new flows if its window has not reached the last maximum.
        pub fast_convergence: bool = true, flag().from("tcp_bic.c").module("fast_convergence", 1.0);
        /// Until the last maximum is known, the window grows by at least one segment per this number of ACKed segments.
        pub max_acks_per_segment_before_loss: u32 = 20, whole(1, 10_000).unit("segments").from("tcp_bic.c");
    }
    and {
        /// If the window has not changed, its growth is computed again after this time (Linux HZ/32).
        pub refresh: Span = Span::from_nanos(NANOS_PER_SEC / 32);
    }
}

/// The scale of `beta`.
const UNIT: u32 = 1024;
/// log2 of the scale of the ACK ratio. In the mean, a new value has the weight 1/2^n, where n is this number
/// (`ACK_RATIO_SHIFT`).
const RATIO_SHIFT: u32 = 4;

/// The BIC controller.
#[derive(Clone, Debug)]
pub struct Bic {
    params: Params,
    increase: AdditiveIncrease,
    /// Window at the last congestion, lowered by fast convergence. `None` before the first congestion and after a
    /// timeout.
    w_max: Option<u32>,
    /// Segments per ACK: a moving average in units of 1/16 (`delayed_ack`).
    ack_ratio: u32,
    /// After this number of ACKed segments, the window grows by one segment (`cnt`).
    acks_per_segment: u32,
    /// The window for which `acks_per_segment` was computed.
    last_cwnd: u32,
    /// The time at which `acks_per_segment` was computed.
    last_update: Time,
}

impl Default for Bic {
    fn default() -> Self {
        Bic::new(Params::default())
    }
}

impl Bic {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        Bic {
            params,
            increase: AdditiveIncrease::default(),
            w_max: None,
            // As in Linux, the initial ratio assumes a receiver that ACKs every second segment.
            ack_ratio: 2 << RATIO_SHIFT,
            acks_per_segment: 1,
            last_cwnd: 0,
            last_update: Time::ZERO,
        }
    }

    /// Returns the number of ACKed segments per segment of growth, for a receiver that ACKs each segment (Linux
    /// `bictcp_update`).
    fn cost(&self, cwnd: u32) -> u32 {
        let p = &self.params;
        let divisor = p.search_divisor.max(1);
        let fastest = cwnd / p.max_increment.max(1);
        let slowest = cwnd.saturating_mul(p.smooth_part) / divisor;
        let w_max = self.w_max.unwrap_or(0);
        let cost = if let Some(below @ 1..) = w_max.checked_sub(cwnd) {
            // Binary search. A step covers half of the distance to the maximum in the paper, and a quarter with Linux's
            // divisor. Far from the maximum, additive increase limits the step. Close to the maximum, the window grows
            // slowly.
            match below / divisor {
                0 | 1 => slowest,
                step if step > p.max_increment => fastest,
                step => cwnd / step,
            }
        } else {
            // Beyond the maximum the window grows slowly at first, then as fast as on its way to the maximum.
            let above = cwnd - w_max;
            if above < divisor {
                slowest
            } else if above < p.max_increment.saturating_mul(divisor - 1) {
                cwnd.saturating_mul(divisor - 1) / above
            } else {
                fastest
            }
        };
        if self.w_max.is_none() { cost.min(p.max_acks_per_segment_before_loss) } else { cost }
    }

    fn update(&mut self, now: Time, cwnd: u32) {
        if self.last_cwnd == cwnd && now.since(self.last_update) <= self.params.refresh {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_update = now;
        self.acks_per_segment = if cwnd <= self.params.low_window {
            cwnd
        } else {
            let cost = (u64::from(self.cost(cwnd)) << RATIO_SHIFT) / u64::from(self.ack_ratio.max(1));
            u32::try_from(cost).unwrap_or(u32::MAX).max(1)
        };
    }
}

impl Controller for Bic {
    fn name(&self) -> &'static str {
        "bic"
    }

    fn on_sample(&mut self, ack: &Ack) {
        if ack.state == State::Open {
            let rest = self.ack_ratio - (self.ack_ratio >> RATIO_SHIFT);
            self.ack_ratio = rest.saturating_add(ack.acked);
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        let acked = left_for_avoidance(ack, window);
        if acked > 0 {
            self.update(ack.now, window.cwnd);
            self.increase.on_ack(window, self.acks_per_segment, acked);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.increase.reset();
        // If the window has not reached the last maximum, another flow has probably joined. In this case, fast
        // convergence lowers the goal.
        let short = self.w_max.is_some_and(|w_max| window.cwnd < w_max);
        self.w_max = Some(if short && self.params.fast_convergence {
            part(window.cwnd, UNIT.saturating_add(self.params.beta), 2 * UNIT)
        } else {
            window.cwnd
        });
        let low = window.cwnd <= self.params.low_window;
        window.ssthresh =
            if low { window.cwnd / 2 } else { part(window.cwnd, self.params.beta, UNIT) }.max(2);
        // After a timeout, all state is reset (Linux bictcp_state).
        if event.signal == Signal::Timeout {
            *self = Bic::new(self.params.clone());
        }
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("w_max", f64::from(self.w_max.unwrap_or(0)));
        trace("ack_ratio", f64::from(self.ack_ratio) / f64::from(1 << RATIO_SHIFT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::congestion::harness::{RARE, ack_at, congestion, per_rtt_with_rare_losses, window};

    /// Returns a controller with the last maximum `w_max` and a receiver that ACKs each segment.
    fn after_congestion_at(w_max: u32) -> Bic {
        Bic { w_max: Some(w_max), ack_ratio: 1 << RATIO_SHIFT, ..Bic::default() }
    }

    #[test]
    fn tv_s10_acked_segments_per_segment_of_window() {
        for (cwnd, cost) in
            [(120, 7), (150, 12), (197, 985), (200, 1000), (203, 1015), (210, 63), (247, 15), (248, 15)]
        {
            let mut bic = after_congestion_at(200);
            bic.update(Time::ZERO, cwnd);
            assert_eq!(bic.acks_per_segment, cost, "cwnd {cwnd}");
        }
    }

    #[test]
    fn tv_s10_congestion_leaves_four_fifths_or_half_of_a_small_window() {
        for (cwnd, ssthresh) in [(200, 159), (15, 11), (14, 7), (3, 2), (1, 2)] {
            let mut w = window(cwnd);
            Bic::default().on_congestion(&congestion(Signal::Loss), &mut w);
            assert_eq!(w.ssthresh, ssthresh, "cwnd {cwnd}");
        }
    }

    #[test]
    fn a_small_window_grows_as_renos() {
        let mut bic = after_congestion_at(200);
        bic.update(Time::ZERO, 14);
        assert_eq!(bic.acks_per_segment, 14);
    }

    #[test]
    fn before_any_loss_a_segment_costs_at_most_twenty_acked_ones() {
        let mut bic = Bic { w_max: None, ..after_congestion_at(0) };
        bic.update(Time::ZERO, 1600);
        assert_eq!(bic.acks_per_segment, 20);
        bic.update(Time::ZERO, 160);
        assert_eq!(bic.acks_per_segment, 10);
    }

    /// A receiver that ACKs every second segment does not slow the search. Linux's older code counted ACKs instead of
    /// segments, and the ratio corrected this.
    #[test]
    fn the_cost_falls_with_the_segments_per_ack() {
        let mut bic = after_congestion_at(200);
        for n in 0..200 {
            bic.on_sample(&Ack { acked: 2, ..ack_at(Time::from_nanos(n)) });
        }
        // The integer mean settles between 2 and 2 + 15/16.
        assert!((32..48).contains(&bic.ack_ratio), "{}", bic.ack_ratio);
        bic.update(Time::ZERO, 197);
        assert_eq!(bic.acks_per_segment, (985 << RATIO_SHIFT) / bic.ack_ratio);
        let before = bic.ack_ratio;
        bic.on_sample(&Ack { acked: 20, state: State::Recovery, ..ack_at(Time::ZERO) });
        assert_eq!(bic.ack_ratio, before, "the ratio is measured only in state Open");
    }

    #[test]
    fn a_maximum_that_was_not_reached_is_lowered_and_a_timeout_discards_it() {
        let mut bic = after_congestion_at(200);
        bic.on_congestion(&congestion(Signal::Loss), &mut window(150));
        // 150 * (1024 + 819) / 2048
        assert_eq!(bic.w_max, Some(134));
        bic.on_congestion(&congestion(Signal::Timeout), &mut window(150));
        assert_eq!((bic.w_max, bic.ack_ratio), (None, 32));
    }

    /// The window approaches the last maximum by a quarter of the distance per RTT. After a reduction from 500 to 400,
    /// Reno needs 100 RTTs to return. BIC needs far fewer, and then stays close to the maximum.
    #[test]
    fn the_search_returns_to_the_maximum_quickly_and_stays_near_it() {
        let mut bic = after_congestion_at(500);
        let mut w = window(400);
        let mut rtts = [0; 2];
        for (n, goal) in [492, 508].into_iter().enumerate() {
            while w.cwnd < goal {
                for _ in 0..w.cwnd {
                    bic.on_ack(&ack_at(Time::ZERO), &mut w);
                }
                rtts[n] += 1;
            }
        }
        assert!((8..=18).contains(&rtts[0]), "{rtts:?}");
        assert!((20..=80).contains(&rtts[1]), "{rtts:?}");
    }

    /// On a wide link with rare losses, BIC's mean window exceeds Reno's mean window of sqrt(3/(2p)).
    #[test]
    fn rare_losses_cost_less_than_they_cost_reno() {
        let per_rtt = per_rtt_with_rare_losses(Box::new(Bic::default()));
        let reno = libm::sqrt(3.0 * RARE / 2.0);
        assert!(per_rtt > 2.0 * reno, "{per_rtt:.0} segments per RTT, Reno {reno:.0}");
    }
}
