//! Scalable TCP: adds a segment per hundred ACKed segments and removes an eighth of the window on
//! congestion. The time between losses does not depend on the rate.
//!
//! Source: Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks" (CCR 33(2),
//! 2003); Linux `tcp_scalable.c`. No deviation is known.

use super::slow_start::{AdditiveIncrease, left_for_avoidance};
use crate::congestion::{Ack, Congestion, Controller, Window};
use crate::parameter::whole;

crate::parameters! {
    /// Parameters of [`Scalable`].
    pub struct Params {
        /// Maximum number of ACKed segments per segment of growth. Windows below this number grow as in Reno.
        pub acks_per_segment: u32 = 100, whole(1, 100_000).unit("segments").from("TCP_SCALABLE_AI_CNT; the paper: a = 0.01");
        /// Congestion removes 1/2^n of the window.
        pub decrease_shift: u32 = 3, whole(0, 16).from("TCP_SCALABLE_MD_SCALE; the paper: b = 1/8");
        /// Minimum `ssthresh`.
        pub min_ssthresh: u32 = 2, whole(1, 1000).unit("segments").from("tcp_scalable.c");
    }
}

/// The Scalable controller.
#[derive(Clone, Debug, Default)]
pub struct Scalable {
    params: Params,
    increase: AdditiveIncrease,
}

impl Scalable {
    /// Returns a controller with parameters that differ from those of the paper.
    pub fn new(params: Params) -> Self {
        Scalable { params, increase: AdditiveIncrease::default() }
    }
}

impl Controller for Scalable {
    fn name(&self) -> &'static str {
        "scalable"
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        let acked = left_for_avoidance(ack, window);
        if acked > 0 {
            // Below `acks_per_segment` segments, Reno grows faster, so Linux uses Reno's growth. The paper uses a
            // legacy window instead.
            let per = window.cwnd.min(self.params.acks_per_segment);
            self.increase.on_ack(window, per, acked);
        }
    }

    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        self.increase.reset();
        let off = window.cwnd.checked_shr(self.params.decrease_shift).unwrap_or(0);
        window.ssthresh = (window.cwnd - off).max(self.params.min_ssthresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Signal;
    use crate::congestion::harness::{Path, Sender, ack_at, congestion, window};
    use crate::units::{Rate, Span, Time};

    #[test]
    fn tv_s11_congestion_takes_an_eighth() {
        for (cwnd, ssthresh) in [(400, 350), (15, 14), (7, 7), (1, 2)] {
            let mut w = window(cwnd);
            Scalable::default().on_congestion(&congestion(Signal::Loss), &mut w);
            assert_eq!(w.ssthresh, ssthresh, "cwnd {cwnd}");
        }
    }

    #[test]
    fn growth_is_renos_up_to_a_hundred_segments_and_a_hundredth_per_acked_segment_beyond() {
        for (cwnd, acks) in [(40, 40), (100, 100), (1000, 100)] {
            let mut scalable = Scalable::default();
            let mut w = window(cwnd);
            for n in 1..=acks {
                assert_eq!(w.cwnd, cwnd, "after {} ACKs", n - 1);
                scalable.on_ack(&ack_at(Time::ZERO), &mut w);
            }
            assert_eq!(w.cwnd, cwnd + 1);
        }
    }

    /// Kelly 2003, section 3: growth and decrease balance at the window W = a/(b p). A loss reduces W by an eighth, so
    /// the mean window is 15/16 W.
    #[test]
    fn the_mean_window_is_inverse_to_the_loss_rate() {
        for segments_per_loss in [5_000, 10_000, 40_000] {
            let mut scalable = Scalable::default();
            let mut w = window(100);
            let (mut rtts, cycles) = (0.0, 200);
            for n in 0..cycles * segments_per_loss {
                // The first half is not measured, because the window still moves from 100 segments to the balance.
                if n >= cycles / 2 * segments_per_loss {
                    rtts += 1.0 / f64::from(w.cwnd);
                }
                if n % segments_per_loss == segments_per_loss - 1 {
                    scalable.on_congestion(&congestion(Signal::Loss), &mut w);
                    w.cwnd = w.ssthresh;
                } else {
                    scalable.on_ack(&ack_at(Time::ZERO), &mut w);
                }
            }
            let mean = f64::from(cycles / 2 * segments_per_loss) / rtts;
            let law = 15.0 / 16.0 * 0.08 * f64::from(segments_per_loss);
            assert!((mean / law - 1.0).abs() < 0.03, "mean window {mean:.1}, the law says {law:.1}");
        }
    }

    /// Scalable's goal: the recovery time after a loss does not depend on the rate. It is ln(8/7)/ln(1.01) = 13.4 RTTs.
    /// Detection and repair of the loss take one or two RTTs more.
    #[test]
    fn the_time_between_losses_does_not_depend_on_the_rate() {
        for mbit in [100, 1000] {
            let path = Path { queue: 20, ..Path::new(Rate::from_bits_per_sec(mbit * 1_000_000), 50) };
            let mut sender = Sender::new(Box::new(Scalable::default()), path);
            // Skips the overflow at the end of slow start and the recovery from it.
            sender.run_for(Span::from_secs(20));
            let (mut lost, mut episodes) = (sender.lost(), Vec::<Time>::new());
            let end = sender.now() + Span::from_secs(20);
            sender.run_until(end, |s| {
                let again = episodes.last().is_none_or(|&at| s.now().since(at) > Span::from_millis(150));
                if s.lost() > lost && again {
                    episodes.push(s.now());
                }
                lost = s.lost();
                false
            });
            let span = episodes[episodes.len() - 1].since(episodes[0]).as_secs_f64();
            let rtts = span / (episodes.len() - 1) as f64 / 0.050;
            assert!((13.4..17.0).contains(&rtts), "{rtts:.1} RTTs between losses at {mbit} Mbit/s");
        }
    }
}
