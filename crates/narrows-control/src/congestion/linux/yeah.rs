//! YeAH: grows as Scalable while the queue is short, and as Reno while the queue is long. If the
//! queue becomes too long, YeAH drains it.
//!
//! Source: Baiocchi, Castellani and Vacirca, "YeAH-TCP: Yet Another Highspeed TCP" (PFLDnet 2007); Linux
//! `tcp_yeah.c`, with its integers. Deviation: the window is at most 2^32 / 128 segments.

use super::rounds::Rounds;
use super::slow_start::{AdditiveIncrease, left_for_avoidance, part};
use crate::congestion::{Ack, Congestion, Controller, Window};
use crate::parameter::whole;
use crate::units::{Span, Time};

crate::parameters! {
    /// Parameters of [`Yeah`]; the sources `TCP_YEAH_...` are Linux's constants.
    pub struct Params {
        /// Maximum number of ACKed segments per segment of growth in fast mode.
        pub acks_per_segment: u32 = 100, whole(1, 100_000).unit("segments").from("TCP_SCALABLE_AI_CNT");
        /// YeAH drains the queue if the flow has more packets than this number in the queue.
        pub max_queue: u32 = 80, whole(1, 1_000_000).unit("packets").from("TCP_YEAH_ALPHA");
        /// YeAH drains 1/n of the queue per round trip.
        pub drain_divisor: u32 = 1, whole(1, 1000).from("TCP_YEAH_GAMMA");
        /// Draining removes at most 1/2^n of the window.
        pub drain_shift: u32 = 1, whole(0, 16).from("TCP_YEAH_EPSILON");
        /// If the queueing delay exceeds 1/n of the path's delay, YeAH behaves as Reno.
        pub delay_divisor: u32 = 8, whole(1, 1000).from("TCP_YEAH_PHY");
        /// A loss removes at least 1/2^n of the window.
        pub decrease_shift: u32 = 3, whole(1, 16).from("TCP_YEAH_DELTA");
        /// After this number of consecutive rounds in Reno mode, YeAH assumes that other flows compete. With this
        /// assumption, a loss removes half of the window.
        pub competing_rounds: u32 = 16, whole(0, 100_000).unit("rounds").from("TCP_YEAH_RHO");
        /// After more than this number of rounds in fast mode, YeAH assumes that no other flows compete.
        pub fast_rounds: u32 = 50, whole(0, 100_000).unit("rounds").from("TCP_YEAH_ZETA");
        /// A round with at most this number of samples is not evaluated.
        pub few_samples: u32 = 2, whole(0, 1000).unit("samples").from("tcp_yeah.c");
        /// Minimum `ssthresh` and minimum estimate of Reno's window.
        pub min_window: u32 = 2, whole(1, 1000).unit("segments").from("tcp_yeah.c");
    }
}

/// The YeAH controller.
#[derive(Clone, Debug)]
pub struct Yeah {
    params: Params,
    rounds: Rounds,
    increase: AdditiveIncrease,
    /// Estimated number of packets in the queue in the last evaluated round (`lastQ`).
    queued: u32,
    /// Number of consecutive rounds in Reno mode (`doing_reno_now`). It is 0 in fast mode.
    slow_rounds: u32,
    /// Estimated window of a competing Reno flow (`reno_count`). Draining leaves at least this window.
    reno_window: u32,
    /// Number of rounds in fast mode since the last loss or the last reset (`fast_count`).
    fast_rounds: u32,
}

impl Default for Yeah {
    fn default() -> Self {
        Yeah::new(Params::default())
    }
}

impl Yeah {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        Yeah {
            reno_window: params.min_window,
            params,
            rounds: Rounds::default(),
            increase: AdditiveIncrease::default(),
            queued: 0,
            slow_rounds: 0,
            fast_rounds: 0,
        }
    }

    /// Chooses the mode of the next round.
    fn judge(&mut self, window: &mut Window) {
        let p = &self.params;
        // The minimum RTT of the round filters out delayed ACKs, but reacts later to a queue (tcp_yeah.c).
        let delay = self.rounds.least.saturating_sub(self.rounds.base);
        // The queue holds the part of the window beyond the bandwidth-delay product, W (RTT - RTTmin) / RTT.
        self.queued = part(window.cwnd, delay, self.rounds.least);
        let long = self.queued > p.max_queue;
        if !long && delay <= self.rounds.base / p.delay_divisor.max(1) {
            // After many rounds without a queue, YeAH assumes that no Reno flows share the path. So it resets the
            // estimate of their window.
            self.fast_rounds += 1;
            if self.fast_rounds > p.fast_rounds {
                self.reno_window = p.min_window;
                self.fast_rounds = 0;
            }
            self.slow_rounds = 0;
            return;
        }
        // Precautionary decongestion: drain the queue before it overflows, but keep at least the estimated window of
        // Reno.
        if long && window.cwnd > self.reno_window {
            let most = window.cwnd.checked_shr(p.drain_shift).unwrap_or(0);
            let drained = (self.queued / p.drain_divisor.max(1)).min(most);
            window.cwnd = window.cwnd.saturating_sub(drained).max(self.reno_window);
            window.ssthresh = window.cwnd;
        }
        // If the estimate of Reno's window is at its minimum, it becomes half of the present window. Otherwise, it
        // grows by one segment per round in Reno mode.
        self.reno_window = if self.reno_window <= p.min_window {
            (window.cwnd / 2).max(p.min_window)
        } else {
            self.reno_window.saturating_add(1)
        };
        self.slow_rounds = self.slow_rounds.saturating_add(1);
    }
}

impl Controller for Yeah {
    fn name(&self) -> &'static str {
        "yeah"
    }

    fn on_sample(&mut self, ack: &Ack) {
        self.rounds.on_sample(ack);
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if !ack.cwnd_limited {
            return;
        }
        let acked = left_for_avoidance(ack, window);
        if acked > 0 {
            // Scalable adds a segment per `acks_per_segment` ACKed segments. A smaller window grows by a segment per
            // window, as in Reno.
            let fast = self.slow_rounds == 0;
            let per = if fast { window.cwnd.min(self.params.acks_per_segment) } else { window.cwnd };
            self.increase.on_ack(window, per, acked);
        }
        if self.rounds.is_over(ack) {
            if self.rounds.samples > self.params.few_samples {
                self.judge(window);
            }
            self.rounds.begin(ack.snd_nxt);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        if event.again {
            return;
        }
        let p = &self.params;
        let half = (window.cwnd / 2).max(p.min_window);
        // If the flow is alone, the link stays full without the queue. So a loss removes the queued packets from the
        // window, but at least 1/2^`decrease_shift` and at most half of the window. If Reno flows share the path, YeAH
        // halves its window as they do.
        let off = if self.slow_rounds < p.competing_rounds {
            self.queued.min(half).max(window.cwnd.checked_shr(p.decrease_shift).unwrap_or(0))
        } else {
            half
        };
        self.increase.reset();
        self.fast_rounds = 0;
        self.reno_window = (self.reno_window / 2).max(p.min_window);
        window.ssthresh = window.cwnd.saturating_sub(off).max(p.min_window);
    }

    fn on_restart(&mut self, _now: Time, _idle: Span, _app_limited: bool, _window: &mut Window) {
        self.rounds.restart();
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("queued", f64::from(self.queued));
        trace("slow_rounds", f64::from(self.slow_rounds));
        trace("reno_window", f64::from(self.reno_window));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Signal;
    use crate::congestion::harness::{Path, Sender, ack_at, congestion, window};
    use crate::units::Rate;

    /// Returns a controller on a path of 50 ms after a round with a minimum RTT of `rtt` ms, and its window.
    fn after_round(mut yeah: Yeah, cwnd: u32, rtt: u64) -> (Yeah, Window) {
        let mut w = window(cwnd);
        yeah.rounds.base = 50_001;
        yeah.rounds.least = 1000 * rtt as u32 + 1;
        yeah.rounds.samples = 3;
        yeah.judge(&mut w);
        (yeah, w)
    }

    /// The window is 400, and the RTT is 60 ms on a path of 50 ms. The 66 queued packets are below
    /// the limit, but the delay of 10 ms is more than an eighth of 50 ms.
    #[test]
    fn tv_s7_a_delay_of_more_than_an_eighth_is_slow_mode_but_drains_nothing() {
        let (yeah, w) = after_round(Yeah::default(), 400, 60);
        assert_eq!((yeah.queued, yeah.slow_rounds, w.cwnd), (66, 1, 400));
        assert_eq!(yeah.reno_window, 200);
        let (yeah, _) = after_round(yeah, 400, 56);
        assert_eq!((yeah.slow_rounds, yeah.reno_window), (0, 200), "6 ms are less than an eighth of 50 ms");
    }

    #[test]
    fn a_queue_of_more_than_eighty_packets_is_drained_but_not_below_renos_window() {
        // 500 (75 - 50) / 75 = 166.
        let (yeah, w) = after_round(Yeah::default(), 500, 75);
        assert_eq!((yeah.queued, w.cwnd, w.ssthresh), (166, 334, 334));
        assert_eq!((yeah.reno_window, yeah.slow_rounds), (167, 1));
        let (yeah, w) = after_round(Yeah { reno_window: 400, ..yeah }, 500, 75);
        assert_eq!((w.cwnd, yeah.reno_window, yeah.slow_rounds), (400, 401, 2));
        let (_, w) = after_round(Yeah { reno_window: 600, ..yeah }, 500, 75);
        assert_eq!((w.cwnd, w.ssthresh), (500, 2), "the estimated window of Reno is larger");
        // Draining removes at most half of the window. In this case, 500 (300 - 50) / 300 = 416 packets are queued.
        assert_eq!(after_round(Yeah::default(), 500, 300).1.cwnd, 250);
    }

    #[test]
    fn a_loss_takes_the_queue_between_an_eighth_and_half_of_the_window_and_half_in_competition() {
        for (queued, slow_rounds, ssthresh) in [(0, 0, 350), (100, 15, 300), (300, 15, 200), (100, 16, 200)] {
            let mut yeah = Yeah { queued, slow_rounds, reno_window: 100, fast_rounds: 9, ..Yeah::default() };
            let mut w = window(400);
            yeah.on_congestion(&congestion(Signal::Loss), &mut w);
            assert_eq!((w.ssthresh, yeah.reno_window, yeah.fast_rounds), (ssthresh, 50, 0));
        }
        let mut w = window(1);
        Yeah::default().on_congestion(&congestion(Signal::Loss), &mut w);
        assert_eq!(w.ssthresh, 2);
    }

    #[test]
    fn a_timeout_within_an_episode_does_not_cut_again() {
        let mut yeah = Yeah { reno_window: 100, ..Yeah::default() };
        let mut w = window(400);
        yeah.on_congestion(&congestion(Signal::Loss), &mut w);
        let before = (yeah.reno_window, w.ssthresh);
        yeah.on_congestion(&Congestion { again: true, ..congestion(Signal::Timeout) }, &mut w);
        assert_eq!((yeah.reno_window, w.ssthresh), before);
    }

    #[test]
    fn after_fifty_one_fast_rounds_no_competition_is_assumed() {
        let mut yeah = Yeah { reno_window: 100, ..Yeah::default() };
        for n in 1..=51 {
            assert_eq!(yeah.reno_window, 100, "before round {n}");
            yeah = after_round(yeah, 100, 50).0;
        }
        assert_eq!((yeah.reno_window, yeah.fast_rounds), (2, 0));
    }

    #[test]
    fn fast_mode_grows_by_a_hundredth_and_slow_mode_by_a_segment_per_window() {
        for (slow_rounds, grown) in [(0, 10), (1, 1)] {
            let mut yeah = Yeah { slow_rounds, ..Yeah::default() };
            yeah.rounds.begin(1);
            let mut w = window(1000);
            (0..1000).for_each(|_| yeah.on_ack(&ack_at(Time::ZERO), &mut w));
            assert_eq!(w.cwnd, 1000 + grown);
        }
    }

    /// YeAH's goal: it fills a wide link and keeps the queue almost empty. The queue has room for two BDP, which Reno
    /// would overflow.
    #[test]
    fn a_wide_link_is_full_and_its_queue_short() {
        let rate = Rate::from_bits_per_sec(240_000_000);
        let path = Path { queue: 4000, ..Path::new(rate, 100) };
        let mut sender = Sender::new(Box::new(Yeah::default()), path);
        sender.run_for(Span::from_secs(30));
        let (before, queued, lost) = (sender.delivered(), sender.queue_seconds(), sender.lost());
        sender.run_for(Span::from_secs(60));
        let share = (sender.delivered() - before) as f64 * 1500.0 / (60.0 * rate.as_f64());
        let queue = (sender.queue_seconds() - queued) / 60.0;
        assert!(share > 0.98, "{share:.3} of the link");
        // 80 packets are 4 ms.
        assert!(queue < 0.005 && sender.lost() == lost, "{queue:.4} s");
    }
}
