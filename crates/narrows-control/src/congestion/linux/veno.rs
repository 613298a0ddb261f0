//! Veno: Reno that uses the delay to decide whether congestion caused a loss. If the queue was short, a loss removes a
//! fifth of the window instead of half.
//!
//! Source: Fu and Liew, "TCP Veno: TCP enhancement for transmission over wireless access networks" (JSAC 21(2), 2003);
//! Linux `tcp_veno.c`, with its integers.
//!
//! As in Linux:
//! * The queue is counted in half packets and rounded up, so the limit of three packets is reached slightly early.
//! * The estimate of the queue uses all RTTs since the last ACK that was allowed to grow the window, not the RTTs of
//!   one round trip.
//!
//! Deviation from Linux: in states other than Open, Reno's growth has its own count of ACKed segments. In Linux, Veno
//! and Reno share one count.

use super::reno::Reno;
use super::rounds::Rounds;
use super::slow_start::{AdditiveIncrease, left_for_avoidance, part};
use crate::congestion::{Ack, Congestion, Controller, Window};
use crate::parameter::{number, whole};
use crate::units::{Span, Time};

crate::parameters! {
    /// Parameters of [`Veno`].
    pub struct Params {
        /// The path is congested if the flow has at least this number of packets in the queue.
        pub beta: u32 = 6, number(0.0, 100_000.0).per(2).unit("packets").from("the paper: 3");
        /// Share of the window that remains after a loss without congestion.
        pub kept: u32 = 800, number(0.1, 0.99).per(1000).from("the paper, section III.B: 4/5");
        /// Until there are more RTT samples than this number, Veno behaves as Reno does.
        pub few_samples: u32 = 2, whole(0, 1000).unit("samples").from("tcp_veno.c");
        /// Minimum window and minimum `ssthresh`.
        pub min_window: u32 = 2, whole(1, 1000).unit("segments").from("tcp_veno.c");
    }
}

/// The scale of `kept`.
const KEPT_UNIT: u32 = 1000;

/// The Veno controller.
#[derive(Clone, Debug)]
pub struct Veno {
    params: Params,
    rounds: Rounds,
    reno: Reno,
    increase: AdditiveIncrease,
    /// Whether there were more samples than `few_samples`. Linux never resets the count.
    sampled: bool,
    /// Number of packets in the queue, in units of half a packet (`diff`).
    queued: u32,
    /// Whether the next window of ACKs adds a segment (`inc`). On a congested path, only every second window of ACKs
    /// adds a segment.
    turn: bool,
}

impl Default for Veno {
    fn default() -> Self {
        Veno::new(Params::default())
    }
}

impl Veno {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        Veno {
            params,
            rounds: Rounds::default(),
            reno: Reno::default(),
            increase: AdditiveIncrease::default(),
            sampled: false,
            queued: 0,
            turn: true,
        }
    }

    fn is_congested(&self) -> bool {
        self.queued >= self.params.beta
    }
}

impl Controller for Veno {
    fn name(&self) -> &'static str {
        "veno"
    }

    fn on_sample(&mut self, ack: &Ack) {
        self.rounds.on_sample(ack);
        self.sampled |= self.rounds.samples > self.params.few_samples;
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if !self.rounds.open {
            self.reno.on_ack(ack, window);
            return;
        }
        if !ack.cwnd_limited {
            return;
        }
        // Two samples may both come from delayed ACKs.
        if !self.sampled {
            self.reno.on_ack(ack, window);
            self.rounds.forget_least();
            return;
        }
        let halves = window.cwnd.saturating_mul(2);
        // The queue holds the packets beyond the bandwidth-delay product, W - W RTTmin / RTT, in half packets.
        self.queued = halves.saturating_sub(part(halves, self.rounds.base, self.rounds.least));
        self.rounds.forget_least();
        let acked = left_for_avoidance(ack, window);
        if acked > 0 {
            let per = window.cwnd;
            if !self.is_congested() {
                self.increase.on_ack(window, per, acked);
            } else if self.increase.count(per, acked) {
                // On a congested path, the window grows at half the pace, so that the connection keeps a large window
                // for longer.
                window.cwnd = window.cwnd.saturating_add(u32::from(self.turn));
                self.turn = !self.turn;
            }
        }
        window.cwnd = window.cwnd.max(self.params.min_window);
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.increase.reset();
        self.reno.on_congestion(event, window);
        // If the queue is short, the loss was probably random, as on radio links (section III.B).
        if !self.is_congested() {
            window.ssthresh = part(window.cwnd, self.params.kept, KEPT_UNIT).max(self.params.min_window);
        }
    }

    fn on_restart(&mut self, _now: Time, _idle: Span, _app_limited: bool, _window: &mut Window) {
        self.rounds.restart();
        self.turn = true;
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("queued", f64::from(self.queued) / 2.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{Path, Sender, ack_at, congestion, periodic_loss, window};
    use crate::congestion::{Signal, State};
    use crate::units::Rate;

    fn ack(rtt: u64) -> Ack {
        Ack { rtt: Some(Span::from_micros(rtt)), ..ack_at(Time::ZERO) }
    }

    fn step(veno: &mut Veno, w: &mut Window, ack: &Ack) {
        veno.on_sample(ack);
        veno.on_ack(ack, w);
    }

    /// Returns a controller on a path of 50 ms and a window of `cwnd` segments. The RTT of the last ACK was `rtt` us.
    fn after(rtt: u64, cwnd: u32) -> (Veno, Window) {
        let mut veno = Veno::default();
        for _ in 0..3 {
            veno.on_sample(&ack(50_000));
        }
        veno.rounds.forget_least();
        let mut w = window(cwnd);
        step(&mut veno, &mut w, &ack(rtt));
        (veno, w)
    }

    /// The window is 30 on a path of 50 ms. For an RTT of 55 ms, the test vector has 2.73 queued packets and a
    /// threshold of 24. Linux's integers give 60 - floor(54.55) = 6 half packets and a threshold of 15. For an RTT of
    /// 54 ms, 60 - 55 = 5 half packets give a threshold of 24.
    #[test]
    fn tv_s6_a_loss_with_fewer_than_three_queued_packets_takes_a_fifth() {
        for (rtt, halves, ssthresh) in [(50, 0, 24), (54, 5, 24), (55, 6, 15), (58, 9, 15)] {
            let (mut veno, mut w) = after(rtt * 1000, 30);
            assert_eq!(veno.queued, halves, "{rtt} ms");
            veno.on_congestion(&congestion(Signal::Loss), &mut w);
            assert_eq!(w.ssthresh, ssthresh, "{rtt} ms");
        }
    }

    #[test]
    fn a_congested_path_gets_a_segment_every_second_window_of_acks() {
        let windows = |rtt| {
            let (mut veno, mut w) = after(rtt, 20);
            (0..84).for_each(|_| step(&mut veno, &mut w, &ack(rtt)));
            w.cwnd
        };
        // On the congested path, each segment of growth takes 41 or 42 ACKs. On the other path, 20 + 21 + 22 ACKs add
        // three segments. The ACK that `after` passes also counts, so 22 further ACKs remain. A fourth segment would
        // need 23 ACKs.
        assert_eq!((windows(65_000), windows(50_000)), (22, 23));
    }

    #[test]
    fn it_is_reno_in_disorder_and_before_three_samples() {
        let mut veno = Veno::default();
        let mut w = window(10);
        for n in 1..=3 {
            step(&mut veno, &mut w, &ack(90_000));
            assert_eq!(veno.sampled, n == 3);
        }
        let disorder = Ack { state: State::Disorder, ..ack(50_000) };
        let mut w = window(10);
        (0..10).for_each(|_| step(&mut veno, &mut w, &disorder));
        assert_eq!((w.cwnd, veno.queued), (11, 0));
    }

    #[test]
    fn without_an_rtt_sample_the_queue_counts_as_full() {
        let (mut veno, mut w) = after(50_000, 30);
        step(&mut veno, &mut w, &Ack { rtt: None, ..ack(0) });
        assert!(veno.is_congested());
        veno.on_restart(Time::ZERO, Span::ZERO, false, &mut w);
        step(&mut veno, &mut w, &ack(90_000));
        assert!(!veno.is_congested(), "the path is measured again");
    }

    /// Veno's goal: a loss without congestion removes only a fifth of the window. With such losses, the mean window is
    /// sqrt((1 - b/2) / (b p)) with b = 1/5. This is 1.7 times Reno's mean window.
    #[test]
    fn random_losses_without_a_queue_cost_less_than_they_cost_reno() {
        let path =
            Path { loss: periodic_loss(2000), ..Path::new(Rate::from_bits_per_sec(1_000_000_000), 50) };
        let mut sender = Sender::new(Box::new(Veno::default()), path);
        sender.run_for(Span::from_secs(20));
        let before = sender.delivered();
        sender.run_for(Span::from_secs(200));
        let per_rtt = (sender.delivered() - before) as f64 * 0.050 / 200.0;
        let law = libm::sqrt(0.9 / 0.2 * 2000.0);
        assert!((per_rtt / law - 1.0).abs() < 0.1, "{per_rtt:.1} segments per RTT, the law says {law:.1}");
    }
}
