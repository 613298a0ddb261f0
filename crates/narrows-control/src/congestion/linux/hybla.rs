//! Hybla: a flow on a long path increases its rate as fast as a Reno flow with an RTT of 25 ms.
//!
//! Source: Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks" (IJSCN 22, 2004); Linux
//! `tcp_hybla.c`, with its integers.
//!
//! Deviations from Linux:
//! * If the handshake gave no RTT, the first sample sets rho. Linux keeps rho = 1 forever.
//! * Growth below 1/128 segment per ACK has its own counter and does not use Reno's counter.

use super::reno::Reno;
use super::slow_start::in_slow_start;
use crate::congestion::{Ack, Congestion, Connection, Controller, State, Window};
use crate::parameter::{time_from, whole};
use crate::units::Span;

crate::parameters! {
    /// Parameters of [`Hybla`].
    pub struct Params {
        /// Reference RTT. A flow increases its rate as fast as a Reno flow with this RTT.
        pub reference_rtt: Span = Span::from_millis(25), time_from(Span::from_millis(1), Span::from_secs(10)).from("the paper, section 3").module("rtt0", 1e-6);
        /// In slow start, the window grows by a factor of at most about 2^n per RTT.
        pub max_doublings: u32 = 16, whole(1, 16).from("tcp_hybla.c");
        /// Maximum window.
        pub max_cwnd: u32 = 65_535, whole(2, 1_000_000_000).unit("segments").from("tcp_hybla.c, snd_cwnd_clamp");
    }
}

/// log2 of the scale of rho.
const RHO_SHIFT: u32 = 3;
/// The scale of an increment, which is in units of 1/128 segment.
const UNIT: u32 = 128;

/// The Hybla controller.
#[derive(Clone, Debug)]
pub struct Hybla {
    params: Params,
    /// Reno's controller, for congestion and for all states except Open.
    reno: Reno,
    /// The RTT divided by the reference RTT, in units of 1/8. The minimum is 8 (`rho_3ls`).
    rho: u32,
    /// Minimum smoothed RTT; `None` before the first sample.
    min_srtt: Option<Span>,
    /// Accumulated growth of less than one segment, in units of 1/128 segment (`snd_cwnd_cents`).
    cents: u32,
    /// Number of ACKs since the window last grew.
    idle_acks: u32,
}

impl Default for Hybla {
    fn default() -> Self {
        Hybla::new(Params::default())
    }
}

impl Hybla {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        Hybla { params, reno: Reno::default(), rho: 1 << RHO_SHIFT, min_srtt: None, cents: 0, idle_acks: 0 }
    }

    /// Updates rho if the RTT is the smallest so far. Longer RTTs are ignored, because a queue must not make the flow
    /// more aggressive.
    fn take_rtt(&mut self, srtt: Span) {
        if srtt == Span::ZERO || self.min_srtt.is_some_and(|least| srtt >= least) {
            return;
        }
        self.min_srtt = Some(srtt);
        let rho = srtt.scale(1 << RHO_SHIFT, 1).as_nanos() / self.params.reference_rtt.as_nanos().max(1);
        self.rho = u32::try_from(rho).unwrap_or(u32::MAX).max(1 << RHO_SHIFT);
    }

    /// Returns the increment per ACK in slow start, 2^rho - 1, in units of 1/128 segment.
    fn slow_start_increment(&self) -> u32 {
        // Entry n is 128 * 2^(n/8), rounded down, where n is the number of eighths in rho.
        const FRACTIONS: [u64; 8] = [128, 139, 152, 165, 181, 197, 215, 234];
        let doublings = (self.rho >> RHO_SHIFT).min(self.params.max_doublings).min(31);
        let fraction = FRACTIONS[(self.rho & ((1 << RHO_SHIFT) - 1)) as usize];
        let increment = (fraction << doublings) - u64::from(UNIT);
        u32::try_from(increment).unwrap_or(u32::MAX)
    }

    /// Returns the increment per ACK in congestion avoidance, rho^2 / W, in units of 1/128 segment.
    fn avoidance_increment(&self, cwnd: u32) -> u32 {
        let squared = (u64::from(self.rho) * u64::from(self.rho)) << 1;
        u32::try_from(squared / u64::from(cwnd.max(1))).unwrap_or(u32::MAX)
    }
}

impl Controller for Hybla {
    fn name(&self) -> &'static str {
        "hybla"
    }

    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        if let Some(rtt) = connection.rtt {
            self.take_rtt(rtt);
        }
        // Linux starts with rho segments. For an RTT below 250 ms, that is less than the usual 10 segments.
        window.cwnd = (self.rho >> RHO_SHIFT).min(self.params.max_cwnd).max(1);
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        self.take_rtt(ack.srtt);
        if !ack.cwnd_limited {
            return;
        }
        if ack.state != State::Open {
            self.reno.on_ack(ack, window);
            return;
        }
        let slow_start = in_slow_start(window);
        let increment =
            if slow_start { self.slow_start_increment() } else { self.avoidance_increment(window.cwnd) };
        if !slow_start && increment < UNIT {
            self.idle_acks = self.idle_acks.saturating_add(1);
        }
        self.cents += increment % UNIT;
        let segments = increment / UNIT + self.cents / UNIT;
        if self.cents >= UNIT {
            self.cents %= UNIT;
            self.idle_acks = 0;
        }
        window.cwnd = window.cwnd.saturating_add(segments);
        // The increment is less than 1/128 per ACK, so the window grows as in Reno.
        if increment == 0 && self.idle_acks >= window.cwnd {
            window.cwnd = window.cwnd.saturating_add(1);
            self.idle_acks = 0;
        }
        if slow_start {
            window.cwnd = window.cwnd.min(window.ssthresh);
        }
        window.cwnd = window.cwnd.min(self.params.max_cwnd);
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.reno.on_congestion(event, window);
        self.idle_acks = 0;
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("rho", f64::from(self.rho) / f64::from(1 << RHO_SHIFT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{Path, Sender, ack_at, congestion, window};
    use crate::congestion::{INFINITE_SSTHRESH, Signal};
    use crate::units::{Rate, Time};

    fn at_rtt(millis: u64) -> Hybla {
        let mut hybla = Hybla::default();
        hybla.take_rtt(Span::from_millis(millis));
        hybla
    }

    #[test]
    fn tv_s4_rho_and_both_increments() {
        for (rtt, rho, slow_start, avoidance) in [(50, 2, 3, 4), (100, 4, 15, 16), (200, 8, 255, 64)] {
            let hybla = at_rtt(rtt);
            assert_eq!(hybla.rho, rho << RHO_SHIFT);
            assert_eq!(hybla.slow_start_increment(), slow_start * UNIT);
            assert_eq!(hybla.avoidance_increment(1), avoidance * UNIT);
        }
    }

    #[test]
    fn a_short_path_is_renos_and_the_exponent_is_bounded() {
        let short = at_rtt(3);
        assert_eq!((short.rho, short.slow_start_increment(), short.avoidance_increment(1)), (8, UNIT, UNIT));
        assert_eq!(at_rtt(60_000).slow_start_increment(), (UNIT << 16) - UNIT);
        // 2^1.5 - 1
        assert!((f64::from(at_rtt(38).slow_start_increment()) / 128.0 - 1.828).abs() < 0.01);
    }

    #[test]
    fn rho_follows_the_least_rtt_and_ignores_queues() {
        let mut hybla = at_rtt(100);
        hybla.take_rtt(Span::from_millis(200));
        hybla.take_rtt(Span::ZERO);
        assert_eq!(hybla.rho, 32);
        hybla.take_rtt(Span::from_millis(50));
        assert_eq!(hybla.rho, 16);
    }

    #[test]
    fn an_ack_adds_to_the_window_up_to_the_threshold() {
        let mut w = Window { cwnd: 4, ssthresh: 30, pacing_rate: None };
        let mut hybla = at_rtt(100);
        let ack = ack_at(Time::ZERO);
        let mut windows = Vec::new();
        for _ in 0..3 {
            hybla.on_ack(&ack, &mut w);
            windows.push(w.cwnd);
        }
        // The window grows by 15 segments per ACK, and then by 16/30 segment per ACK.
        assert_eq!(windows, [19, 30, 30]);
        hybla.on_ack(&ack, &mut w);
        assert_eq!(w.cwnd, 31);
        let mut open = w.clone();
        hybla.on_ack(&Ack { state: State::Disorder, ..ack }, &mut open);
        assert_eq!(open.cwnd, 31, "outside state Open, the window grows as in Reno");
        hybla.on_congestion(&congestion(Signal::Loss), &mut w);
        assert_eq!(w.ssthresh, 15);
    }

    #[test]
    fn a_wide_window_on_a_short_path_still_grows_by_a_segment_per_window() {
        let mut w = window(1000);
        let mut hybla = at_rtt(10);
        for _ in 0..1000 {
            hybla.on_ack(&ack_at(Time::ZERO), &mut w);
        }
        assert_eq!(w.cwnd, 1001);
    }

    /// Hybla's goal: in congestion avoidance, the rate grows as fast on a long path as on a path of
    /// 25 ms.
    #[test]
    fn the_rate_grows_by_the_same_at_any_rtt() {
        let mut growth = Vec::new();
        for rtt in [25, 50, 100] {
            let mut sender = Sender::new(
                Box::new(Leaves(at_rtt(rtt))),
                Path::new(Rate::from_bits_per_sec(10_000_000_000), rtt),
            );
            sender.run_for(Span::from_secs(1));
            let before = sender.window().cwnd;
            sender.run_for(Span::from_secs(1));
            growth.push(f64::from(sender.window().cwnd - before) / (rtt as f64 / 1e3));
        }
        // Reno's rate grows by 1600, 400 and 100 segments/s per second on these paths. Hybla aims at 1600 on each path.
        // Rounding to 1/128 segment per ACK costs up to a third of this.
        for g in &growth {
            assert!((1100.0..1600.0).contains(g), "segments/s gained per second: {growth:?}");
        }
    }

    /// A Hybla controller that starts in congestion avoidance.
    struct Leaves(Hybla);

    impl Controller for Leaves {
        fn name(&self) -> &'static str {
            "hybla"
        }
        fn on_established(&mut self, _: &Connection, window: &mut Window) {
            assert_eq!(window.ssthresh, INFINITE_SSTHRESH);
            window.ssthresh = window.cwnd;
        }
        fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
            self.0.on_ack(ack, window);
        }
        fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
            self.0.on_congestion(event, window);
        }
    }
}
