//! Vegas: keeps two to four of its packets in the bottleneck queue. Once per round trip, it estimates the number of its
//! queued packets from the delay.
//!
//! Source: Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet" (1995). As in Linux
//! `tcp_vegas.c`, Vegas has no retransmissions of its own, and treats losses as Reno does. In slow start, it doubles
//! the window every RTT.
//!
//! Deviation from Linux: if the window does not limit the sender, the window does not grow (RFC 7661). Linux does not
//! check this, so the window of an application-limited sender grows.

use super::reno::Reno;
use super::rounds::Rounds;
use super::slow_start::{in_slow_start, part, slow_start};
use crate::congestion::{Ack, Congestion, Controller, Window};
use crate::parameter::whole;
use crate::units::{Span, Time};

crate::parameters! {
    /// Parameters of [`Vegas`]; the defaults are Linux's module parameters.
    pub struct Params {
        /// The window grows if the flow has fewer packets than this number in the queue.
        pub alpha: u32 = 2, whole(0, 1_000_000).unit("packets").from("tcp_vegas.c").module("alpha", 1.0);
        /// The window shrinks if the flow has more packets than this number in the queue.
        pub beta: u32 = 4, whole(0, 1_000_000).unit("packets").from("tcp_vegas.c").module("beta", 1.0);
        /// Slow start ends if the flow has more packets than this number in the queue.
        pub gamma: u32 = 1, whole(0, 1_000_000).unit("packets").from("tcp_vegas.c").module("gamma", 1.0);
        /// After a round with at most this number of samples, Vegas behaves as Reno, because all of these samples may
        /// come from delayed ACKs.
        pub few_samples: u32 = 2, whole(0, 1000).unit("samples").from("tcp_vegas.c");
        /// Minimum window.
        pub min_window: u32 = 2, whole(1, 1000).unit("segments").from("tcp_vegas.c");
    }
}

/// The Vegas controller.
#[derive(Clone, Debug, Default)]
pub struct Vegas {
    params: Params,
    rounds: Rounds,
    reno: Reno,
    /// Estimated number of packets in the queue in the last round.
    queued: u32,
}

impl Vegas {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        Vegas { params, ..Vegas::default() }
    }

    /// Decides at the end of a round (Linux `tcp_vegas_cong_avoid`).
    fn judge(&mut self, ack: &Ack, window: &mut Window) {
        let (base, rtt) = (self.rounds.base, self.rounds.least);
        // Data that exceeds the capacity of the empty path stays in the queue.
        self.queued = part(window.cwnd, rtt.saturating_sub(base), base);
        if in_slow_start(window) {
            if self.queued > self.params.gamma {
                // The new window is the amount that fills the empty path, plus one segment.
                window.cwnd = window.cwnd.min(part(window.cwnd, base, rtt).saturating_add(1));
                leave_slow_start(window);
            } else if ack.cwnd_limited {
                slow_start(window, ack.acked);
            }
        } else if self.queued > self.params.beta {
            window.cwnd = window.cwnd.saturating_sub(1);
            leave_slow_start(window);
        } else if self.queued < self.params.alpha && ack.cwnd_limited {
            window.cwnd = window.cwnd.saturating_add(1);
        }
        window.cwnd = window.cwnd.max(self.params.min_window);
        // As in Linux tcp_current_ssthresh, the threshold is at least three quarters of the window.
        window.ssthresh = window.ssthresh.max(window.cwnd / 2 + window.cwnd / 4);
    }
}

/// Limits the threshold to the window (Linux `tcp_vegas_ssthresh`). Traces of Linux show a threshold equal to the
/// window, not one segment lower.
fn leave_slow_start(window: &mut Window) {
    window.ssthresh = window.ssthresh.min(window.cwnd).max(1);
}

impl Controller for Vegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn on_sample(&mut self, ack: &Ack) {
        self.rounds.on_sample(ack);
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if !self.rounds.open {
            self.reno.on_ack(ack, window);
        } else if self.rounds.is_over(ack) {
            if self.rounds.samples <= self.params.few_samples {
                self.reno.on_ack(ack, window);
            } else {
                self.judge(ack, window);
            }
            self.rounds.begin(ack.snd_nxt);
        } else if in_slow_start(window) && ack.cwnd_limited {
            slow_start(window, ack.acked);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.reno.on_congestion(event, window);
    }

    fn on_restart(&mut self, _now: Time, _idle: Span, _app_limited: bool, _window: &mut Window) {
        self.rounds.restart();
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("queued", f64::from(self.queued));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{Path, Sender, ack_at, congestion};
    use crate::congestion::{Signal, State};
    use crate::units::Rate;

    /// Returns the window after a round with a minimum RTT of `rtt` ms, on a path of `base` ms.
    fn after_round(window: Window, base: u64, rtt: u64) -> Window {
        let mut vegas = Vegas::default();
        let mut w = window;
        let ack = |una, ms| Ack {
            snd_una: una,
            snd_nxt: 100,
            rtt: Some(Span::from_millis(ms)),
            ..ack_at(Time::ZERO)
        };
        vegas.on_sample(&ack(0, base));
        vegas.rounds.begin(9);
        for una in 8..=10 {
            vegas.on_sample(&ack(una, rtt));
        }
        vegas.on_ack(&ack(10, rtt), &mut w);
        w
    }

    fn window(cwnd: u32, ssthresh: u32) -> Window {
        Window { cwnd, ssthresh, pacing_rate: None }
    }

    /// TV-S6: the window is 20, and the RTT is 60 ms on a path of 50 ms. This gives 4.0 queued packets, so the window
    /// does not change. In slow start, the window becomes the target of 16.67 (16 in integers) plus one.
    #[test]
    fn tv_s6_four_queued_packets_are_enough_and_end_slow_start_at_the_target() {
        assert_eq!(after_round(window(20, 10), 50, 60).cwnd, 20);
        let w = after_round(window(20, 1000), 50, 60);
        assert_eq!((w.cwnd, w.ssthresh), (17, 17));
        assert!(!in_slow_start(&w));
    }

    #[test]
    fn fewer_than_two_queued_packets_add_one_and_more_than_four_take_one() {
        assert_eq!(after_round(window(20, 10), 50, 52).cwnd, 21);
        assert_eq!(after_round(window(20, 10), 50, 57).cwnd, 20);
        let w = after_round(window(20, 10), 50, 64);
        assert_eq!((w.cwnd, w.ssthresh), (19, 13), "five packets queued, threshold 3/4 of the window");
        assert_eq!(after_round(window(2, 2), 50, 500).cwnd, 2);
    }

    #[test]
    fn a_round_of_few_samples_and_a_sender_in_disorder_behave_as_reno() {
        let mut vegas = Vegas::default();
        let mut w = window(10, 5);
        let disorder = Ack { state: State::Disorder, rtt: Some(Span::from_millis(90)), ..ack_at(Time::ZERO) };
        for _ in 0..10 {
            vegas.on_sample(&disorder);
            vegas.on_ack(&disorder, &mut w);
        }
        assert_eq!(w.cwnd, 11);
        vegas.on_congestion(&congestion(Signal::Loss), &mut w);
        assert_eq!(w.ssthresh, 5);
    }

    #[test]
    fn alone_on_a_link_it_fills_it_with_two_to_four_packets_queued_and_no_loss() {
        let path = Path::new(Rate::from_bits_per_sec(100_000_000), 20);
        let mut sender = Sender::new(Box::new(Vegas::default()), path);
        sender.run_for(Span::from_secs(20));
        let before = sender.delivered();
        sender.run_for(Span::from_secs(20));
        let share = (sender.delivered() - before) as f64 * 12_000.0 / 20.0 / 1e8;
        assert!(share > 0.99, "utilisation {share:.3}");
        // 166.7 packets fill the path, and one is in transmission.
        let cwnd = sender.window().cwnd;
        assert!((168..=172).contains(&cwnd), "window {cwnd}");
        assert_eq!(sender.lost(), 0);
    }
}
