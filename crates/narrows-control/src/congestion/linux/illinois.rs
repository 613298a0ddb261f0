//! Illinois: a loss reduces the window. The queueing delay sets the size of the reduction and the
//! speed of growth.
//!
//! Source: Liu, Basar and Srikant, "TCP-Illinois: a loss- and delay-based congestion control algorithm for high-speed
//! networks" (Performance Evaluation 65, 2008); Linux `tcp_illinois.c`.
//!
//! As in Linux:
//! * The arithmetic uses integers, so the minimum of alpha is 38/128. The paper has 0.3.
//! * The largest RTT is never forgotten.
//! * A segment counts when it is acknowledged in order, even if it was SACKed before (`pkts_acked` of
//!   `tcp_clean_rtx_queue`). So the ACK that ends a recovery counts the segments of a whole window.
//!
//! No deviation is known.

use super::slow_start::{AdditiveIncrease, in_slow_start, slow_start};
use crate::congestion::{Ack, Congestion, Controller, Signal, Window};
use crate::parameter::{number, whole};

crate::parameters! {
    /// Parameters of [`Illinois`]; the defaults are Linux's module parameters and constants.
    pub struct Params {
        /// Below this window, Illinois behaves as Reno does.
        pub low_window: u32 = 15, whole(0, 1_000_000).unit("segments").from("win_thresh");
        /// Number of rounds with low delay after which the fastest growth resumes.
        pub low_rounds: u32 = 5, whole(0, 1000).unit("rounds").from("theta");
        /// Minimum growth per RTT.
        pub alpha_min: u32 = 38, number(0.01, 100.0).per(128).unit("segments").from("ALPHA_MIN; the paper: 0.3");
        /// Maximum growth per RTT.
        pub alpha_max: u32 = 1280, number(0.01, 100.0).per(128).unit("segments").from("ALPHA_MAX; the paper: 10");
        /// Minimum share of the window that a loss removes.
        pub beta_min: u32 = 8, number(0.02, 0.9).per(64).from("BETA_MIN; the paper: 1/8");
        /// Maximum share of the window that a loss removes.
        pub beta_max: u32 = 32, number(0.02, 0.9).per(64).from("BETA_MAX; the paper: 1/2");
        /// Minimum `ssthresh`.
        pub min_ssthresh: u32 = 2, whole(1, 1000).unit("segments").from("tcp_illinois.c");
    }
}

/// log2 of the scales of alpha and beta.
const ALPHA_SHIFT: u32 = 7;
const BETA_SHIFT: u32 = 6;

/// The Illinois controller.
#[derive(Clone, Debug)]
pub struct Illinois {
    params: Params,
    credit: AdditiveIncrease,
    /// Growth per RTT, in units of 1/128 segment.
    alpha: u32,
    /// Share of the window that a loss removes, in units of 1/64.
    beta: u32,
    /// Least and largest RTT of the connection, us. `None` before the first RTT sample.
    rtts: Option<(u32, u32)>,
    /// Sum of the RTT samples of the round, us.
    sum: u64,
    /// Number of RTT samples of the round.
    samples: u32,
    /// The round ends when `snd_una` exceeds this number.
    end: u64,
    /// Number of segments that the last ACK acknowledged in order (`acked`).
    acked: u32,
    /// Number of the first unacknowledged segment after the last ACK.
    una: Option<u64>,
    /// Whether the fastest growth is suspended, because the queueing delay exceeded 1 % of its maximum (`rtt_above`).
    above: bool,
    /// Number of rounds in which the delay was at most this 1 %, while `above` was set (`rtt_low`).
    low: u32,
}

impl Default for Illinois {
    fn default() -> Self {
        Illinois::new(Params::default())
    }
}

impl Illinois {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        Illinois {
            alpha: params.alpha_max,
            beta: params.beta_max,
            params,
            credit: AdditiveIncrease::default(),
            rtts: None,
            sum: 0,
            samples: 0,
            end: 0,
            acked: 0,
            una: None,
            above: false,
            low: 0,
        }
    }

    fn begin_round(&mut self, snd_nxt: u64) {
        self.end = snd_nxt;
        self.samples = 0;
        self.sum = 0;
    }

    /// Returns the growth in segments per RTT: k1 / (k2 + d), equation 3 of the paper. `mean` is the mean queueing
    /// delay, and `most` is the largest queueing delay.
    fn alpha_at(&mut self, mean: u64, most: u64) -> u32 {
        let (least_alpha, most_alpha) = (u64::from(self.params.alpha_min), u64::from(self.params.alpha_max));
        let low = most / 100;
        if mean <= low {
            if self.above {
                // One round of low delay does not resume the fastest growth.
                self.low += 1;
                if self.low < self.params.low_rounds {
                    return self.alpha;
                }
                (self.low, self.above) = (0, false);
            }
            return self.params.alpha_max;
        }
        self.above = true;
        let (mean, most) = (mean - low, most - low);
        let steep = mean * most_alpha.saturating_sub(least_alpha) / least_alpha.max(1);
        u32::try_from(most * most_alpha / (most + steep).max(1)).unwrap_or(u32::MAX)
    }

    /// Returns the share of the window that a loss removes at these delays (the paper, equation 4). The share grows
    /// linearly while the mean delay rises from a tenth to four fifths of the largest delay.
    fn beta_at(&self, mean: u64, most: u64) -> u32 {
        let (least_beta, most_beta) = (self.params.beta_min, self.params.beta_max);
        let (low, high) = (most / 10, 8 * most / 10);
        if mean <= low {
            return least_beta;
        }
        if mean >= high || high <= low {
            return most_beta;
        }
        let rise = u64::from(most_beta.saturating_sub(least_beta)) * (mean - low);
        let share = u64::from(least_beta) * (high - low) + rise;
        u32::try_from(share / (high - low)).unwrap_or(most_beta)
    }

    /// Computes alpha and beta once per round trip (Linux `update_params`).
    fn update(&mut self, cwnd: u32) {
        if cwnd < self.params.low_window {
            (self.alpha, self.beta) = (1 << ALPHA_SHIFT, self.params.beta_max);
        } else if let Some((least, most)) = self.rtts
            && self.samples > 0
        {
            let mean = (self.sum / u64::from(self.samples)).saturating_sub(u64::from(least));
            let most = u64::from(most - least);
            self.alpha = self.alpha_at(mean, most);
            self.beta = self.beta_at(mean, most);
        }
    }
}

impl Controller for Illinois {
    fn name(&self) -> &'static str {
        "illinois"
    }

    fn on_sample(&mut self, ack: &Ack) {
        let before = self.una.replace(ack.snd_una);
        self.acked = before
            .map_or(ack.acked, |una| u32::try_from(ack.snd_una.saturating_sub(una)).unwrap_or(u32::MAX));
        if let Some(rtt) = ack.rtt {
            // RTTs are limited (`RTT_MAX`), because longer RTTs would overflow Linux's computation of alpha. With the
            // default of `alpha_max`, the limit is 3.3 s.
            let most = u64::from(u32::MAX / self.params.alpha_max.max(1));
            let rtt = rtt.as_micros().min(most);
            let us = rtt as u32;
            self.rtts = Some(self.rtts.map_or((us, us), |(least, most)| (least.min(us), most.max(us))));
            self.samples = self.samples.saturating_add(1);
            self.sum = self.sum.saturating_add(rtt);
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if ack.snd_una > self.end {
            self.update(window.cwnd);
            self.begin_round(ack.snd_nxt);
        }
        if !ack.cwnd_limited {
            return;
        }
        if in_slow_start(window) {
            slow_start(window, ack.acked);
        } else {
            self.credit.by_share(window, self.alpha, ALPHA_SHIFT, self.acked);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.credit.reset();
        let off = (u64::from(window.cwnd) * u64::from(self.beta)) >> BETA_SHIFT;
        let off = u32::try_from(off).unwrap_or(u32::MAX);
        window.ssthresh = window.cwnd.saturating_sub(off).max(self.params.min_ssthresh);
        if event.signal == Signal::Timeout {
            (self.alpha, self.beta) = (1 << ALPHA_SHIFT, self.params.beta_max);
            (self.above, self.low) = (false, 0);
            // In this file, the next ACK begins the round, when the window is one segment. Linux begins the round
            // earlier.
            self.begin_round(0);
        }
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("alpha", f64::from(self.alpha) / f64::from(1 << ALPHA_SHIFT));
        trace("beta", f64::from(self.beta) / f64::from(1 << BETA_SHIFT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{RARE, ack_at, congestion, per_rtt_with_rare_losses, window};
    use crate::units::{Span, Time};

    /// The expected values are Linux's integers. The test vector's alpha is 1 % larger, because the vector has 0.3
    /// where Linux has 38/128. The vector's beta is larger by up to 1/64.
    #[test]
    fn tv_s5_alpha_falls_and_beta_rises_with_the_delay() {
        for (delay, alpha, beta) in [
            (1, 10.0, 0.125),
            (10, 2.538, 0.125),
            (25, 1.131, 0.2054),
            (50, 0.588, 0.3393),
            (80, 0.373, 0.5),
            (100, 0.3, 0.5),
        ] {
            let mut illinois = Illinois::default();
            let a = f64::from(illinois.alpha_at(1000 * delay, 100_000)) / 128.0;
            let b = f64::from(illinois.beta_at(1000 * delay, 100_000)) / 64.0;
            assert!(a <= alpha && a > 0.98 * alpha - 1.0 / 128.0, "{delay} ms: alpha {a}, not {alpha}");
            assert!(b <= beta && b > beta - 1.0 / 64.0, "{delay} ms: beta {b}, not {beta}");
        }
    }

    /// Passes a round with a mean RTT of `rtt` ms to a controller on a path of 50 to 150 ms.
    fn after_round(illinois: &mut Illinois, cwnd: u32, rtt: u64) {
        illinois.rtts = Some((50_000, 150_000));
        (illinois.sum, illinois.samples) = (3000 * rtt, 3);
        illinois.update(cwnd);
    }

    #[test]
    fn after_a_delay_the_fastest_growth_needs_five_rounds_without() {
        let mut illinois = Illinois::default();
        after_round(&mut illinois, 100, 50);
        assert_eq!(illinois.alpha, 1280, "there was no queueing delay yet");
        after_round(&mut illinois, 100, 150);
        assert_eq!((illinois.alpha, illinois.beta), (38, 32));
        for n in 1..=5 {
            after_round(&mut illinois, 100, 51);
            assert_eq!(illinois.alpha, if n < 5 { 38 } else { 1280 }, "round {n}");
            assert_eq!(illinois.beta, 8);
        }
    }

    #[test]
    fn a_small_window_and_a_timeout_behave_as_reno() {
        let mut illinois = Illinois::default();
        after_round(&mut illinois, 14, 50);
        assert_eq!((illinois.alpha, illinois.beta), (128, 32));
        after_round(&mut illinois, 15, 50);
        assert_eq!((illinois.alpha, illinois.beta), (1280, 8));
        for (signal, alpha, beta) in [(Signal::Loss, 1280, 8), (Signal::Timeout, 128, 32)] {
            let mut w = window(160);
            illinois.on_congestion(&congestion(signal), &mut w);
            assert_eq!((w.ssthresh, illinois.alpha, illinois.beta), (140, alpha, beta));
        }
        let mut w = window(1);
        illinois.on_congestion(&congestion(Signal::Loss), &mut w);
        assert_eq!(w.ssthresh, 2);
    }

    #[test]
    fn a_round_uses_the_mean_of_its_samples_and_ignores_absurd_ones() {
        let mut illinois = Illinois::default();
        let ack = |una, ms| Ack {
            snd_una: una,
            snd_nxt: 100,
            rtt: Some(Span::from_millis(ms)),
            ..ack_at(Time::ZERO)
        };
        for (una, ms) in [(0, 50), (0, 150), (0, 100)] {
            illinois.on_sample(&ack(una, ms));
        }
        illinois.on_ack(&ack(1, 100), &mut window(100));
        // The mean queueing delay is 50 ms, and the largest queueing delay is 100 ms.
        assert_eq!((illinois.alpha, illinois.beta, illinois.samples, illinois.end), (74, 21, 0, 100));
        illinois.on_sample(&ack(1, 1_000_000));
        assert_eq!(illinois.rtts, Some((50_000, u32::MAX / 1280)));
    }

    #[test]
    fn it_grows_by_alpha_per_window() {
        let mut illinois = Illinois { end: 1, ..Illinois::default() };
        let mut w = window(100);
        for n in 1..=11 {
            assert_eq!(w.cwnd, if n <= 10 { 100 } else { 101 });
            illinois.on_sample(&ack_at(Time::ZERO));
            illinois.acked = 1;
            illinois.on_ack(&ack_at(Time::ZERO), &mut w);
        }
    }

    /// Segments SACKed during a recovery count when they are acknowledged in order. With alpha =
    /// 10, 100 segments add ten segments to the window.
    #[test]
    fn the_ack_that_ends_a_recovery_counts_for_a_window() {
        let mut illinois = Illinois { end: 1000, ..Illinois::default() };
        let mut w = window(100);
        let ack = |una| Ack { snd_una: una, acked: 1, ..ack_at(Time::ZERO) };
        for una in [1, 1, 1] {
            illinois.on_sample(&ack(una));
        }
        illinois.on_sample(&ack(101));
        illinois.on_ack(&ack(101), &mut w);
        assert_eq!(w.cwnd, 110);
        illinois.on_sample(&ack(102));
        illinois.on_ack(&ack(102), &mut w);
        assert_eq!(w.cwnd, 110, "it counts once");
    }

    /// Illinois's goal: without a queue, it fills a wide link by adding ten segments per RTT, and a loss removes an
    /// eighth of the window.
    #[test]
    fn rare_losses_on_an_empty_wide_link_cost_less_than_they_cost_reno() {
        let per_rtt = per_rtt_with_rare_losses(Box::new(Illinois::default()));
        // The law is sqrt(alpha (1 - b/2) / (b p)), which is 8.7 times Reno's sqrt(3/(2p)).
        let law = libm::sqrt(10.0 * 0.9375 / 0.125 * RARE);
        assert!((per_rtt / law - 1.0).abs() < 0.2, "{per_rtt:.0} segments per RTT, the law says {law:.0}");
    }
}
