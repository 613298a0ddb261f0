//! TCP-LP: takes what others leave; Reno that gives way as soon as the one-way delay says that a queue builds.
//!
//! Source: Kuzmanovic and Knightly, "TCP-LP: Low-Priority Service via End-Point Congestion Control" (ToN 14(4), 2006); Linux
//! `tcp_lp.c` (SUR 2.9). As in Linux giving way leaves `ssthresh` alone, so that what follows is slow start, and sets the largest
//! delay to twice the smoothed one, which means something only where the clocks agree: in the simulator they do, on Linux, whose
//! timestamps begin at random, the threshold may be far beyond any queue, and what is left is Reno.
//! At a window of one segment the receiver's delayed ACKs look like a queue, as they would to Linux: in the simulator LP may stay there.
//! Delays are in Linux's ticks of a millisecond: finer ones would take the packets of one burst for a queue.
//! Deviations from Linux: the receiver's clock rate is known, where Linux estimates it first; the age of the echoed timestamp is the RTT sample; a cut that an ACK without progress causes
//! waits for the next that has some.

use super::slow_start::{AdditiveIncrease, in_slow_start, slow_start};
use crate::congestion::{Ack, Congestion, Controller, State, Window};
use crate::units::{Span, Time};

/// Parameters of [`Lp`].
#[derive(Clone, Debug)]
pub struct Params {
    /// Congested beyond this share of the way from the least to the largest one-way delay, in per cent. 15: the paper, section IV.
    pub threshold: u64,
    /// Resolution of delays (`LP_RESOL`). 1 ms: Linux's timestamps.
    pub tick: Span,
    /// After giving way it waits for so many RTTs, and gives all up if the delay rises again (the inference phase). 3: Linux.
    pub inference_rtts: u64,
    /// Least `ssthresh`, segments. 2: RFC 5681 equation 4.
    pub min_ssthresh: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { threshold: 15, tick: Span::from_millis(1), inference_rtts: 3, min_ssthresh: 2 }
    }
}

/// One-way delays in ticks, zero point unknown.
#[derive(Clone, Copy, Debug)]
struct Delays {
    /// A mean, in 1/8 (`sowd`).
    smoothed: u64,
    min: u64,
    /// The second largest, so that one outlier does not count, and the largest.
    max: u64,
    largest: u64,
}

impl Delays {
    fn first(delay: u64) -> Self {
        Delays { smoothed: delay << 3, min: delay, max: delay, largest: delay }
    }

    fn mean(&self) -> u64 {
        self.smoothed >> 3
    }

    fn take(&mut self, delay: u64) {
        self.min = self.min.min(delay);
        if delay > self.largest {
            self.max = self.largest;
            self.largest = delay;
        } else {
            self.max = self.max.max(delay);
        }
        self.smoothed = self.smoothed - self.mean() + delay;
    }

    fn congested(&self, per_cent: u64) -> bool {
        self.mean() > self.min + per_cent.saturating_mul(self.max - self.min) / 100
    }

    /// What was found is taken for the level without a queue.
    fn begin_anew(&mut self) {
        let twice = 2 * self.mean();
        *self = Delays { smoothed: self.smoothed, min: self.mean(), max: twice, largest: twice };
    }
}

/// What giving way does to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Half,
    /// A segment is left: the delay rose again in the inference phase.
    All,
}

/// The TCP-LP controller.
#[derive(Clone, Debug, Default)]
pub struct Lp {
    params: Params,
    increase: AdditiveIncrease,
    delays: Option<Delays>,
    /// Length of the inference phase.
    inference: Span,
    inferring: bool,
    last_cut: Option<Time>,
    /// Decided, and not yet done: a sample does not move the window.
    cut: Option<Cut>,
}

impl Lp {
    /// A controller with these parameters.
    pub fn new(params: Params) -> Self {
        Lp { params, ..Lp::default() }
    }

    fn take_delay(&mut self, delay: Span) {
        // Three bits less than 64 for the mean's eighths; a tick of a nanosecond would still leave 73 years.
        let delay = (delay.as_nanos() / self.params.tick.as_nanos().max(1)).min(u64::MAX >> 4);
        match &mut self.delays {
            Some(delays) => delays.take(delay),
            None => self.delays = Some(Delays::first(delay)),
        }
    }
}

impl Controller for Lp {
    fn name(&self) -> &'static str {
        "lp"
    }

    fn on_sample(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.inference = rtt.scale(self.params.inference_rtts, 1);
            if let Some(delay) = ack.one_way {
                self.take_delay(delay);
            }
        }
        self.inferring = self.last_cut.is_some_and(|at| ack.now.since(at) < self.inference);
        let Some(delays) = &mut self.delays else { return };
        if !delays.congested(self.params.threshold) {
            return;
        }
        delays.begin_anew();
        self.last_cut = Some(ack.now);
        // PRR owns the window then, and overwrites in Linux what the cut leaves.
        if !matches!(ack.state, State::Cwr | State::Recovery) {
            self.cut = Some(if self.inferring { Cut::All } else { Cut::Half });
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        match self.cut.take() {
            Some(Cut::All) => window.cwnd = 1,
            Some(Cut::Half) => window.cwnd = (window.cwnd / 2).max(1),
            None => {}
        }
        if self.inferring || !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked;
        if in_slow_start(window) {
            acked = slow_start(window, acked);
        }
        if acked > 0 {
            let per = window.cwnd;
            self.increase.on_ack(window, per, acked);
        }
    }

    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        self.increase.reset();
        self.cut = None;
        window.ssthresh = (window.cwnd / 2).max(self.params.min_ssthresh);
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        let ticks = self.delays.map_or(0, |d| d.mean().saturating_sub(d.min));
        trace("queue_delay_s", self.params.tick.scale(ticks, 1).as_secs_f64());
        trace("inferring", f64::from(u8::from(self.inferring)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{Path, Sender, ack_at};
    use crate::units::Rate;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    fn ack(at: u64, one_way: u64) -> Ack {
        Ack { rtt: Some(ms(100)), one_way: Some(ms(one_way)), ..ack_at(Time::ZERO + ms(at)) }
    }

    fn step(lp: &mut Lp, w: &mut Window, ack: &Ack) {
        lp.on_sample(ack);
        lp.on_ack(ack, w);
    }

    /// In Linux's ticks of a millisecond 17 where the vector has 17.5.
    #[test]
    fn tv_s11_congested_beyond_a_seventh_of_the_way() {
        let delays = |eighths| Delays { smoothed: eighths, min: 10, max: 60, largest: 90 };
        assert!(!delays(18 * 8 - 1).congested(15));
        assert!(delays(18 * 8).congested(15));
    }

    #[test]
    fn the_largest_delay_but_one_counts() {
        let mut delays = Delays::first(10);
        let mut max = Vec::new();
        for delay in [50, 90, 20, 60, 70] {
            delays.take(delay);
            max.push(delays.max);
        }
        assert_eq!(max, [10, 50, 50, 60, 70]);
        assert_eq!((delays.min, delays.largest), (10, 90));
    }

    #[test]
    fn a_rising_delay_halves_the_window_then_holds_it_and_then_leaves_one_segment() {
        let mut lp = Lp::default();
        let mut w = Window { cwnd: 100, ssthresh: 50, pacing_rate: None };
        step(&mut lp, &mut w, &ack(0, 10));
        assert_eq!(w.cwnd, 100);
        step(&mut lp, &mut w, &ack(10, 50));
        assert_eq!(w.cwnd, 50, "halved");
        for at in 11..200 {
            step(&mut lp, &mut w, &ack(at, 15));
        }
        assert_eq!(w.cwnd, 50, "inference");
        step(&mut lp, &mut w, &ack(250, 90));
        assert_eq!(w.cwnd, 1);
        step(&mut lp, &mut w, &ack(551, 15));
        assert_eq!(w.cwnd, 2, "Reno again");
    }

    #[test]
    fn without_timestamps_and_on_loss_it_is_reno() {
        let mut lp = Lp::default();
        let mut w = Window { cwnd: 10, ssthresh: 2, pacing_rate: None };
        for n in 0..10 {
            step(&mut lp, &mut w, &Ack { one_way: None, ..ack(n, 0) });
        }
        assert_eq!(w.cwnd, 11);
        let event = Congestion {
            signal: crate::congestion::Signal::Loss,
            now: Time::ZERO,
            in_flight: 10,
            srtt: ms(20),
        };
        lp.on_congestion(&event, &mut w);
        assert_eq!(w.ssthresh, 5);
    }

    /// Alone on a link it keeps the queue short and loses nothing, at the price of most of the link: until a loss has set
    /// `ssthresh`, each cut is followed by slow start, whose bursts are the next queue (measured: 9 % of the link).
    #[test]
    fn alone_it_keeps_the_queue_short() {
        let rate = Rate::from_bits_per_sec(60_000_000);
        let path = Path { queue: 250, ..Path::new(rate, 50) };
        let mut sender = Sender::new(Box::new(Lp::default()), path);
        sender.run_for(Span::from_secs(10));
        let (before, queued) = (sender.delivered(), sender.queue_seconds());
        sender.run_for(Span::from_secs(50));
        let share = (sender.delivered() - before) as f64 * 1500.0 / (50.0 * rate.as_f64());
        let queue = (sender.queue_seconds() - queued) / 50.0;
        assert!(share > 0.05, "{share:.3} of the link");
        assert!(queue < 0.005 && sender.lost() == 0, "{queue:.4} s in a queue of 50 ms");
    }
}
