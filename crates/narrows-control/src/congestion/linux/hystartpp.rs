//! HyStart++: when the delay rises, slow start continues at a quarter of its pace. The slower pace shows whether a
//! queue has caused the rise.
//!
//! Source: RFC 9406. Microsoft Windows and QUIC stacks implement HyStart++, and Linux does not. This code counts
//! segments, and the RFC counts bytes. As the RFC requires, HyStart++ applies only to the slow start before the first
//! congestion.

use super::slow_start::{AdditiveIncrease, in_slow_start, left_for_avoidance};
use crate::congestion::{Ack, INFINITE_SSTHRESH, Window};
use crate::parameter::{time_from, whole};
use crate::units::Span;

crate::parameters! {
    /// Parameters of [`HystartPlusPlus`]; the defaults are those of RFC 9406 section 4.3.
    pub struct Params {
        /// A rise of the delay by less than this time never starts conservative slow start.
        pub min_rise: Span = Span::from_millis(4), time_from(Span::ZERO, Span::from_secs(10)).from("RFC 9406, MIN_RTT_THRESH");
        /// A rise of the delay by at least this time always starts conservative slow start.
        pub max_rise: Span = Span::from_millis(16), time_from(Span::ZERO, Span::from_secs(10)).from("RFC 9406, MAX_RTT_THRESH");
        /// Between `min_rise` and `max_rise` the threshold is 1/n of the last round's delay.
        pub rise_divisor: u64 = 8, whole(1, 1000).from("RFC 9406, MIN_RTT_DIVISOR");
        /// Number of RTT samples that the delay test needs in a round.
        pub min_samples: u32 = 8, whole(1, 1000).unit("samples").from("RFC 9406, N_RTT_SAMPLE");
        /// Conservative slow start grows at 1/n of the pace of slow start.
        pub growth_divisor: u32 = 4, whole(1, 1000).from("RFC 9406, CSS_GROWTH_DIVISOR");
        /// Slow start ends after this number of rounds of conservative slow start. After these rounds, HyStart++
        /// assumes that there is a queue.
        pub css_rounds: u32 = 5, whole(1, 1000).unit("rounds").from("RFC 9406, CSS_ROUNDS");
        /// Maximum growth per ACK. Without this limit, a late ACK of many segments would cause a burst of twice as
        /// many segments. Paced senders may use `none`. The default also limits paced flows, because the controller has
        /// no information about pacing.
        pub limit: Option<u32> = Some(8), whole(1, 1_000_000).unit("segments").or_none().from("RFC 9406, L");
    }
}

/// Conservative slow start.
#[derive(Clone, Debug)]
struct Conservative {
    /// The minimum RTT at the start of conservative slow start. If a round has a smaller minimum RTT, slow start
    /// resumes.
    baseline: Span,
    /// Number of rounds left, including the present round.
    rounds: u32,
}

/// The initial slow start.
#[derive(Clone, Debug)]
pub struct HystartPlusPlus {
    params: Params,
    increase: AdditiveIncrease,
    conservative: Option<Conservative>,
    /// The round ends when `snd_una` reaches this number (windowEnd).
    end: u64,
    /// Minimum RTT of the last round, or [`Span::MAX`] without samples.
    last: Span,
    /// Minimum RTT of the present round, or [`Span::MAX`] without samples.
    least: Span,
    samples: u32,
}

impl HystartPlusPlus {
    /// Returns the state of a new connection.
    pub fn new(params: Params) -> Self {
        HystartPlusPlus {
            params,
            increase: AdditiveIncrease::default(),
            conservative: None,
            end: 0,
            last: Span::MAX,
            least: Span::MAX,
            samples: 0,
        }
    }

    /// Controllers with HyStart++ call this method instead of the function [`left_for_avoidance`], and use the result
    /// in the same way. Grows the window, and sets `ssthresh` when slow start is over.
    pub fn left_for_avoidance(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        if !in_slow_start(window) || window.ssthresh != INFINITE_SSTHRESH {
            return left_for_avoidance(ack, window);
        }
        if ack.snd_una >= self.end {
            self.begin_round(ack.snd_nxt);
            if self.conservative.as_ref().is_some_and(|c| c.rounds == 0) {
                window.ssthresh = window.cwnd;
                return left_for_avoidance(ack, window);
            }
        }
        if let Some(rtt) = ack.rtt {
            self.least = self.least.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if ack.cwnd_limited {
            let acked = ack.acked.min(self.params.limit.unwrap_or(u32::MAX));
            let per = if self.conservative.is_some() { self.params.growth_divisor } else { 1 };
            self.increase.on_ack(window, per, acked);
        }
        self.judge();
        0
    }

    fn begin_round(&mut self, snd_nxt: u64) {
        self.end = snd_nxt;
        self.last = self.least;
        self.least = Span::MAX;
        self.samples = 0;
        if let Some(c) = &mut self.conservative {
            c.rounds = c.rounds.saturating_sub(1);
        }
    }

    /// Applies the delay test of RFC 9406 section 4.2.
    fn judge(&mut self) {
        if self.samples < self.params.min_samples || self.least == Span::MAX {
            return;
        }
        match &self.conservative {
            Some(c) if self.least < c.baseline => self.conservative = None,
            Some(_) => {}
            None if self.last != Span::MAX && self.least >= self.last + self.rise() => {
                // The rest of the present round counts as the first round of conservative slow start.
                let rounds = self.params.css_rounds;
                self.conservative = Some(Conservative { baseline: self.least, rounds });
            }
            None => {}
        }
    }

    /// Returns the threshold of the delay test: the smallest rise over the last round's delay that starts conservative
    /// slow start.
    fn rise(&self) -> Span {
        let part = self.last.scale(1, self.params.rise_divisor.max(1));
        part.min(self.params.max_rise).max(self.params.min_rise)
    }

    /// Returns whether the flow is in conservative slow start.
    pub fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{ack_at, initial_window};
    use crate::units::Time;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    fn fresh() -> (HystartPlusPlus, Window) {
        (HystartPlusPlus::new(Params::default()), initial_window())
    }

    /// Passes a round of ten ACKs with this RTT. Each acknowledges one segment.
    fn round(hystart: &mut HystartPlusPlus, window: &mut Window, rtt: Span) {
        let una = hystart.end;
        for n in 0..10 {
            let ack = Ack { snd_una: una + n, snd_nxt: una + 10, rtt: Some(rtt), ..ack_at(Time::ZERO) };
            hystart.left_for_avoidance(&ack, window);
        }
    }

    #[test]
    fn tv_s14_the_delay_has_risen_by_an_eighth_between_four_and_sixteen_milliseconds() {
        for (last, css) in [(40, 45), (200, 216), (16, 20), (8, 12)] {
            for (rtt, conservative) in [(css - 1, false), (css, true)] {
                let (mut hystart, mut w) = fresh();
                round(&mut hystart, &mut w, ms(last));
                round(&mut hystart, &mut w, ms(rtt));
                assert_eq!(hystart.is_conservative(), conservative, "{rtt} ms after {last}");
            }
        }
    }

    #[test]
    fn a_round_of_seven_samples_is_not_evaluated() {
        let (mut hystart, mut w) = fresh();
        round(&mut hystart, &mut w, ms(40));
        let una = hystart.end;
        for n in 0..8 {
            assert!(!hystart.is_conservative(), "after {n} samples");
            let ack = Ack { snd_una: una + n, snd_nxt: una + 8, rtt: Some(ms(90)), ..ack_at(Time::ZERO) };
            hystart.left_for_avoidance(&ack, &mut w);
        }
        assert!(hystart.is_conservative());
    }

    #[test]
    fn five_rounds_at_a_quarter_of_the_pace_end_slow_start() {
        let (mut hystart, mut w) = fresh();
        round(&mut hystart, &mut w, ms(40));
        assert_eq!(w.cwnd, 20);
        let mut windows = Vec::new();
        for _ in 0..6 {
            round(&mut hystart, &mut w, ms(60));
            windows.push(w.cwnd);
        }
        // The first eight ACKs grow the window at the full pace, and all later ACKs at a quarter of it. Slow start ends
        // in the sixth round after the rise.
        assert_eq!(windows[..5], [28, 31, 33, 36, 38]);
        assert_eq!((windows[5], w.ssthresh), (38, 38));
    }

    #[test]
    fn a_delay_that_falls_again_resumes_slow_start() {
        let (mut hystart, mut w) = fresh();
        round(&mut hystart, &mut w, ms(40));
        round(&mut hystart, &mut w, ms(60));
        assert!(hystart.is_conservative());
        round(&mut hystart, &mut w, ms(59));
        assert!(!hystart.is_conservative());
        let before = w.cwnd;
        round(&mut hystart, &mut w, ms(59));
        assert_eq!((w.cwnd, w.ssthresh), (before + 10, INFINITE_SSTHRESH));
    }

    #[test]
    fn an_ack_adds_at_most_eight_segments_and_a_later_slow_start_is_plain() {
        let (mut hystart, mut w) = fresh();
        let ack = Ack { acked: 30, ..ack_at(Time::ZERO) };
        assert_eq!((hystart.left_for_avoidance(&ack, &mut w), w.cwnd), (0, 18));
        let limited = Ack { cwnd_limited: false, ..ack.clone() };
        assert_eq!((hystart.left_for_avoidance(&limited, &mut w), w.cwnd), (0, 18));
        w.ssthresh = 40;
        assert_eq!((hystart.left_for_avoidance(&ack, &mut w), w.cwnd), (8, 40));
    }
}
