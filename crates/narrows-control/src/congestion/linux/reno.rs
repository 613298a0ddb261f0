//! Reno: adds one segment per window of ACKs and halves the window on congestion.
//!
//! Source: RFC 5681; Linux `tcp_cong.c`. The transport runs loss recovery, and `slow_start.rs`
//! implements slow start.

use super::hystartpp::{self, HystartPlusPlus};
use super::slow_start::{AdditiveIncrease, left_for_avoidance, part};
use crate::congestion::{Ack, Congestion, Controller, Window};
use crate::parameter::{Parameters, Values, number, whole, word};

crate::parameters! {
    /// Parameters of [`Reno`].
    pub struct Params {
        /// Share of the window kept on congestion.
        pub beta: u32 = 512, number(0.1, 0.95).per(1024).from("RFC 5681, equation 4: 0.5");
        /// Minimum `ssthresh`.
        pub min_ssthresh: u32 = 2, whole(1, 1000).unit("segments").from("RFC 5681, equation 4");
    }
}

crate::words! {
    /// The slow start before the first congestion.
    pub enum SlowStart {
        /// Doubles the window per round trip until the first congestion.
        Plain = "plain",
        /// HyStart++ (RFC 9406).
        HystartPlusPlus = "hystart++",
    }
}

crate::parameters! {
    /// The choice of slow start.
    pub struct Start {
        /// Slow start before the first congestion.
        pub slow_start: SlowStart = SlowStart::Plain, word(SlowStart::WORDS).from("RFC 5681; hystart++: RFC 9406");
    }
}

/// The scale of `beta`.
const UNIT: u32 = 1024;

/// The Reno controller.
#[derive(Clone, Debug, Default)]
pub struct Reno {
    params: Params,
    increase: AdditiveIncrease,
    hystartpp: Option<Box<HystartPlusPlus>>,
}

impl Reno {
    /// Returns a controller with parameters that differ from those of RFC 5681.
    pub fn new(params: Params) -> Self {
        Reno { params, ..Reno::default() }
    }

    /// Returns Reno with the given parameters of the catalogue.
    pub fn from_values(values: &Values) -> Self {
        let params = Params::default().with("", values);
        let hystartpp = match Start::default().with("", values).slow_start {
            SlowStart::Plain => None,
            SlowStart::HystartPlusPlus => {
                let params = hystartpp::Params::default().with("hystartpp_", values);
                Some(Box::new(HystartPlusPlus::new(params)))
            }
        };
        Reno { hystartpp, ..Reno::new(params) }
    }
}

impl Controller for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        let acked = match &mut self.hystartpp {
            Some(hystart) => hystart.left_for_avoidance(ack, window),
            None => left_for_avoidance(ack, window),
        };
        if acked > 0 {
            let per = window.cwnd;
            self.increase.on_ack(window, per, acked);
        }
    }

    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        self.increase.reset();
        window.ssthresh = part(window.cwnd, self.params.beta, UNIT).max(self.params.min_ssthresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{Path, Sender, ack_at, congestion, periodic_loss, window};
    use crate::congestion::{INFINITE_SSTHRESH, Signal};
    use crate::units::{Rate, Span, Time};

    #[test]
    fn congestion_halves_the_window_but_leaves_two_segments() {
        let mut reno = Reno::default();
        for (cwnd, ssthresh) in [(100, 50), (11, 5), (3, 2), (1, 2)] {
            let mut w = Window { cwnd, ssthresh: INFINITE_SSTHRESH, pacing_rate: None };
            reno.on_congestion(&congestion(Signal::Loss), &mut w);
            assert_eq!(w.ssthresh, ssthresh);
        }
    }

    /// TV-S11: losses every 1/p segments give a mean window of sqrt(3/(2p)), if a window of ACKs takes one RTT and
    /// recovery takes no time. In this test, windows are whole segments, so the sawtooth goes from 5 to 11 segments
    /// instead of from 5.77 to 11.55. The mean is about a tenth lower.
    #[test]
    fn the_sawtooth_has_the_mean_window_of_the_square_root_law() {
        let mut reno = Reno::default();
        let mut w = window(10);
        let (mut rtts, segments) = (0.0, 50_000);
        for n in 0..segments {
            rtts += 1.0 / f64::from(w.cwnd);
            if n % 50 == 49 {
                reno.on_congestion(&congestion(Signal::Loss), &mut w);
                w.cwnd = w.ssthresh;
            } else {
                reno.on_ack(&ack_at(Time::ZERO), &mut w);
            }
        }
        let mean = f64::from(segments) / rtts;
        assert!((0.88 * 8.66..8.66).contains(&mean), "mean window {mean:.2}");
    }

    /// Recovery takes one RTT, which hardly reduces the mean window if losses are rare.
    #[test]
    fn rare_losses_on_a_link_give_the_throughput_of_the_square_root_law() {
        let path =
            Path { loss: periodic_loss(2000), ..Path::new(Rate::from_bits_per_sec(1_000_000_000), 50) };
        let mut sender = Sender::new(Box::new(Reno::default()), path);
        sender.run_for(Span::from_secs(20));
        let before = sender.delivered();
        sender.run_for(Span::from_secs(200));
        let per_rtt = (sender.delivered() - before) as f64 * 0.050 / 200.0;
        let law = libm::sqrt(3.0 * 2000.0 / 2.0);
        assert!((per_rtt / law - 1.0).abs() < 0.06, "{per_rtt:.1} segments per RTT, the law says {law:.1}");
    }
}
