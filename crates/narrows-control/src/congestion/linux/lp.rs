//! TCP-LP: Reno that yields to other flows when the one-way delay shows a queue. On Linux, most connections with TCP-LP
//! behave like connections with Reno.
//!
//! Source: Kuzmanovic and Knightly, "TCP-LP: Low-Priority Service via End-Point Congestion Control" (ToN 14(4), 2006);
//! Linux `tcp_lp.c`. Linux's 32-bit integers determine how LP behaves:
//! * The delay is the difference of two hosts' millisecond timestamps. Since Linux 4.10 the receiver's timestamps start
//!   at a random value per connection. So the difference is an arbitrary 32-bit number.
//! * The mean is kept in eighths, modulo 2^32. For seven in eight offsets, the difference exceeds 29 bits. In this
//!   case, the truncated mean stays below the least delay. So LP never detects a queue and behaves as Reno does.
//! * For one in eight offsets, the difference has at most 29 bits. After the first sample, the least delay and the
//!   largest delay are equal. So any delay counts as a queue, and the window is halved. Linux then sets the largest
//!   delay to twice the mean, including the offset. No queue reaches the new threshold, so LP behaves as Reno does from
//!   then on. LP yields repeatedly only if the receiver's clock is ahead by less than a second.
//! * The delay also depends on an estimate of the receiver's clock rate. The estimate is a mean of samples. Each sample
//!   is the number of receiver ticks between two ACKs, divided by the number of sender ticks. One receiver tick for two
//!   sender ticks gives 500 Hz. Two receiver ticks for one sender tick give 2000 Hz. So for ACKs 1 to 3 ms apart the
//!   mean exceeds 1000 Hz, although both clocks run at the same speed. At other intervals between ACKs, the mean leaves
//!   the range of 501 to 1000 Hz when delays vary.
//! * Above 1000 Hz Linux multiplies by 1000 / Hz = 0, so the delay becomes a different number. After that, any of the
//!   cases above occurs, or the window is cut without a queue.
//! * If ACKs are less than a tick apart, the two clocks may never both tick between two ACKs. In this case, there is no
//!   estimate and no delay.
//!
//! When LP detects a queue, it cuts the window and leaves `ssthresh` unchanged. Before the first loss, slow start
//! therefore follows each cut. If the window is one segment, the receiver's delayed ACKs look like a queue.
//!
//! Deviations from Linux:
//! * If an ACK without progress causes a cut, the cut is applied at the next ACK with progress.
//! * A cut by the ACK that begins recovery is omitted, because the transport has already handled that ACK. Linux cuts
//!   first, and recovery halves the remaining window.

use super::reno::Reno;
use crate::congestion::{Ack, Congestion, Connection, Controller, State, Timestamps, Window};
use crate::parameter::{time_from, whole};
use crate::units::{Span, Time};

crate::parameters! {
    /// Parameters of [`Lp`].
    pub struct Params {
        /// The path is congested if the mean one-way delay exceeds the minimum delay by at least this percentage of the
        /// range from the minimum to the maximum delay.
        pub threshold: u32 = 15, whole(1, 100).unit("%").from("the paper, section IV");
        /// Offset of the receiver's timestamps from the sender's timestamps. With `none`, the offset is a random 32-bit
        /// number, which depends on the flow's seed.
        pub offset: Option<u32> = None, whole(0, 4_294_967_295).unit("ticks").or_none().from("net.ipv4.tcp_timestamps = 1");
        /// Uptime of the sender's host at the start of the run.
        pub uptime: Span = Span::from_secs(3600), time_from(Span::ZERO, Span::from_secs(10000000)).from("arbitrary");
        /// A new delay has a weight of 1/2^n in the mean.
        pub mean_shift: u32 = 3, whole(0, 16).from("tcp_lp.c");
        /// Length of the inference phase after a cut. In this phase the window does not grow. If the delay rises again,
        /// the window falls to one segment.
        pub inference_rtts: u32 = 3, whole(0, 1000).unit("RTTs").from("tcp_lp.c");
    }
}

/// Number of timestamp ticks per second in Linux (`LP_RESOL`).
const HZ: u32 = 1000;
/// In the estimate of the receiver's clock rate, a new sample has the weight 1/2^n, where n is this number.
const CLOCK_SHIFT: u32 = 6;

/// The receiver's clock rate, as Linux estimates it (`tcp_lp_remote_hz_estimator`).
#[derive(Clone, Debug, Default)]
struct Clock {
    hz: u32,
    /// The receiver's timestamp in the last ACK (TSval), or 0 before the first ACK.
    value: u32,
    /// The echoed timestamp in the last ACK (TSecr), or 0 before the first ACK.
    echo: u32,
}

impl Clock {
    fn take(&mut self, value: u32, echo: u32) {
        let (passed_there, passed_here) = (value.wrapping_sub(self.value), echo.wrapping_sub(self.echo));
        if self.value != 0 && self.echo != 0 && passed_there != 0 && passed_here != 0 {
            // The sample is the ratio of the ticks of both clocks since the last ACK, in Hz. The new estimate is 63/64
            // of the old estimate plus 1/64 of the sample.
            let sample = i64::from(HZ.wrapping_mul(passed_there) / passed_here);
            let old = i64::from(self.hz.wrapping_shl(CLOCK_SHIFT));
            let new = if old > 0 { old + sample - (old >> CLOCK_SHIFT) } else { sample << CLOCK_SHIFT };
            self.hz = (new >> CLOCK_SHIFT) as u32;
        }
        (self.value, self.echo) = (value, echo);
    }

    /// Returns the number of ticks of the sender's clock per tick of the receiver's clock, rounded down.
    fn ticks(&self) -> Option<u32> {
        HZ.checked_div(self.hz)
    }
}

/// One-way delays in ticks, with an unknown offset, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Delays {
    /// The mean delay in units of `1 / 2^mean_shift` ticks (`sowd`), or 0 if there is none.
    smoothed: u32,
    min: u32,
    /// The second largest delay (`owd_max`). The threshold uses this delay, so that a single outlier does not count.
    max: u32,
    /// The largest delay (`owd_max_rsv`).
    largest: u32,
}

impl Default for Delays {
    fn default() -> Self {
        Delays { smoothed: 0, min: u32::MAX, max: 0, largest: 0 }
    }
}

impl Delays {
    fn take(&mut self, delay: u32, shift: u32) {
        self.min = self.min.min(delay);
        if delay > self.max {
            // The first outlier only changes `largest`. A second outlier changes `max`.
            if delay > self.largest {
                self.max = if self.largest == 0 { delay } else { self.largest };
                self.largest = delay;
            } else {
                self.max = delay;
            }
        }
        // The products wrap at 32 bits, as in Linux. This is why LP never yields on most connections (see the top of
        // this file).
        self.smoothed = if self.smoothed == 0 {
            delay << shift
        } else {
            self.smoothed.wrapping_add(delay).wrapping_sub(self.smoothed >> shift)
        };
    }

    fn threshold(&self, per_cent: u32) -> u32 {
        self.min.wrapping_add(per_cent.wrapping_mul(self.max.wrapping_sub(self.min)) / 100)
    }

    /// Returns whether the mean is at or above the threshold. If the least and the largest delay are equal, any delay
    /// counts as congestion.
    fn is_congested(&self, per_cent: u32, shift: u32) -> bool {
        self.smoothed >> shift >= self.threshold(per_cent)
    }

    /// Sets the least delay to the current mean, and the largest delay to twice the mean.
    fn begin_anew(&mut self, shift: u32) {
        self.min = self.smoothed >> shift;
        self.max = self.smoothed >> shift.saturating_sub(1);
        self.largest = self.max;
    }
}

/// The effect of a cut on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Half,
    /// The window falls to one segment, because the delay rose again in the inference phase.
    All,
}

/// The TCP-LP controller.
#[derive(Clone, Debug, Default)]
pub struct Lp {
    params: Params,
    reno: Reno,
    /// Offset of the receiver's clock, ticks. The simulator's clocks start together.
    offset: u32,
    clock: Clock,
    delays: Delays,
    /// Length of the inference phase, ticks.
    inference: u32,
    inferring: bool,
    /// Tick of the last cut, or 0 if there was none.
    last_cut: u32,
    /// A cut that is decided but not applied yet. The call that takes samples cannot change the window.
    cut: Option<Cut>,
    /// Whether this ACK ended a reduction.
    recovered: bool,
}

impl Lp {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        Lp { params, ..Lp::default() }
    }

    /// Returns the value of the sender's clock at a tick of the simulation.
    fn here(&self, tick: u32) -> u32 {
        tick.wrapping_add((self.params.uptime.as_nanos() / Timestamps::TICK.as_nanos()) as u32)
    }

    fn take_delay(&mut self, value: u32, echo: u32) {
        self.clock.take(value, echo);
        let Some(ticks) = self.clock.ticks() else { return };
        // The delay is computed as in tcp_lp_owd_calculator: the receiver's time in the sender's ticks, minus the
        // sender's time. The delay includes the offset of the clocks.
        let delay = value.wrapping_mul(ticks).wrapping_sub(echo);
        if delay > 0 {
            self.delays.take(delay, self.params.mean_shift.min(31));
        }
    }
}

impl Controller for Lp {
    fn name(&self) -> &'static str {
        "lp"
    }

    fn on_established(&mut self, connection: &Connection, _window: &mut Window) {
        self.offset = self.params.offset.unwrap_or((mix(connection.seed) >> 32) as u32);
    }

    fn on_sample(&mut self, ack: &Ack) {
        let recovered = std::mem::take(&mut self.recovered);
        let now = self.here(Timestamps::clock(ack.now));
        if let Some(Timestamps { value, echo }) = ack.timestamps {
            let value = self.here(value).wrapping_add(self.offset);
            let echo = self.here(echo);
            if ack.rtt.is_some_and(|rtt| rtt > Span::ZERO) {
                self.take_delay(value, echo);
            }
            let rtt = now.wrapping_sub(echo);
            if rtt as i32 > 0 {
                self.inference = self.params.inference_rtts.wrapping_mul(rtt);
            }
        }
        // The time after a cut is the paper's inference phase. The effect of a cut is visible an RTT later, so another
        // sign of a queue in this phase means that the cut was not enough.
        self.inferring = self.last_cut != 0 && now.wrapping_sub(self.last_cut) < self.inference;
        let shift = self.params.mean_shift.min(31);
        if !self.delays.is_congested(self.params.threshold, shift) {
            return;
        }
        // According to a FIXME in tcp_lp.c, the old extremes may no longer fit the path.
        self.delays.begin_anew(shift);
        self.last_cut = now;
        // There is no cut in the states Cwr and Recovery, because PRR would overwrite the cut window in Linux. There is
        // no cut at the end of a reduction, because Linux also sets the window at this point.
        if !recovered && !matches!(ack.state, State::Cwr | State::Recovery) {
            self.cut = Some(if self.inferring { Cut::All } else { Cut::Half });
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        match self.cut.take() {
            Some(Cut::All) => window.cwnd = 1,
            Some(Cut::Half) => window.cwnd = (window.cwnd / 2).max(1),
            None => {}
        }
        if !self.inferring {
            self.reno.on_ack(ack, window);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.reno.on_congestion(event, window);
        self.cut = None;
    }

    fn on_recovered(&mut self, _now: Time, _window: &mut Window) {
        self.recovered = true;
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("clock_hz", f64::from(self.clock.hz));
        let ticks = (self.delays.smoothed >> self.params.mean_shift.min(31)).saturating_sub(self.delays.min);
        trace("queue_delay_s", Timestamps::TICK.scale(u64::from(ticks), 1).as_secs_f64());
        trace("inferring", f64::from(u8::from(self.inferring)));
    }
}

/// Spreads a seed over 64 bits (Steele, Lea and Flood 2014, SplitMix64).
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Signal;
    use crate::congestion::harness::{Path, Sender, ack_at, congestion, connection, window};
    use crate::units::{Rate, Time};

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    /// Returns a controller with a receiver whose clock is ahead by this number of ticks.
    fn ahead_by(offset: u32) -> Lp {
        let mut lp = Lp::new(Params { offset: Some(offset), ..Params::default() });
        lp.on_established(&connection(Some(ms(100)), None), &mut window(10));
        lp
    }

    /// Returns an ACK for a packet that took `one_way` ms. The ACK takes 50 ms on its way back and arrives at `at`
    /// ms.
    fn ack(at: u64, one_way: u64) -> Ack {
        let value = Time::ZERO + ms(1000 + at - 50);
        let clock = Timestamps::clock;
        let timestamps = Some(Timestamps { value: clock(value), echo: clock(value - ms(one_way)) });
        Ack { rtt: Some(ms(one_way + 50)), timestamps, ..ack_at(Time::ZERO + ms(1000 + at)) }
    }

    fn step(lp: &mut Lp, w: &mut Window, ack: &Ack) {
        lp.on_sample(ack);
        lp.on_ack(ack, w);
    }

    /// The threshold is 17 in Linux's millisecond ticks. The test vector has 17.5.
    #[test]
    fn tv_s11_the_path_is_congested_beyond_a_seventh_of_the_range() {
        assert_eq!(Delays { smoothed: 0, min: 10, max: 60, largest: 90 }.threshold(15), 17);
    }

    #[test]
    fn the_second_largest_delay_counts() {
        let mut delays = Delays::default();
        let mut max = Vec::new();
        for delay in [10, 50, 90, 20, 60, 70] {
            delays.take(delay, 3);
            max.push(delays.max);
        }
        assert_eq!(max, [10, 10, 50, 50, 60, 70]);
        assert_eq!((delays.min, delays.largest), (10, 90));
    }

    #[test]
    fn the_clock_rate_is_a_mean_of_ratios_between_two_acks() {
        let mut clock = Clock::default();
        clock.take(5000, 100);
        assert_eq!(clock.ticks(), None, "one ACK gives no estimate");
        clock.take(5010, 110);
        assert_eq!((clock.hz, clock.ticks()), (1000, Some(1)));
        clock.take(5010, 120);
        clock.take(5020, 120);
        assert_eq!(clock.hz, 1000, "an interval of zero at one end gives no sample");
        clock.take(5022, 121);
        assert_eq!((clock.hz, clock.ticks()), (1015, Some(0)), "1/64 of 1000 Hz more than before");
        clock.take(5023, 122);
        assert_eq!(clock.hz, 1014, "rounded down");
    }

    #[test]
    fn a_queue_halves_the_window_then_holds_it_and_then_leaves_one_segment() {
        // With an offset of one millisecond, a delay can reach twice the mean.
        let mut lp = ahead_by(1);
        let mut w = Window { cwnd: 100, ssthresh: 50, pacing_rate: None };
        step(&mut lp, &mut w, &ack(0, 10));
        assert_eq!(w.cwnd, 100);
        step(&mut lp, &mut w, &ack(1, 10));
        assert_eq!(w.cwnd, 50, "Linux treats the first delay as a queue");
        assert_eq!((lp.delays.min, lp.delays.max, lp.delays.threshold(15)), (11, 22, 12));
        for at in 2..100 {
            step(&mut lp, &mut w, &ack(at, 10));
        }
        assert_eq!(w.cwnd, 50, "inference");
        step(&mut lp, &mut w, &ack(100, 60));
        assert_eq!(w.cwnd, 1);
    }

    /// If a delay has more than 29 bits, the mean delay never exceeds the least delay. Otherwise
    /// the first delay is both the least and the largest delay, and LP detects a queue once.
    #[test]
    fn with_seven_of_eight_offsets_no_queue_is_ever_detected() {
        for eighth in 0..8 {
            let mut delays = Delays::default();
            let mut cuts = 0;
            for n in 0..2000 {
                // A queue of 100 ms builds and drains.
                delays.take((eighth << 29) + (1 << 28) + n % 100, 3);
                if delays.is_congested(15, 3) {
                    delays.begin_anew(3);
                    cuts += 1;
                }
            }
            assert_eq!(cuts, u32::from(eighth == 0), "the offset is in eighth {eighth} of the 32-bit range");
        }
    }

    #[test]
    fn the_ack_that_ends_a_reduction_leaves_the_window_at_the_threshold() {
        for (recovered, cwnd) in [(false, 50), (true, 100)] {
            let mut lp = ahead_by(1);
            let mut w = Window { cwnd: 100, ssthresh: 50, pacing_rate: None };
            step(&mut lp, &mut w, &ack(0, 10));
            if recovered {
                lp.on_recovered(Time::ZERO, &mut w);
            }
            step(&mut lp, &mut w, &ack(1, 10));
            assert_eq!((w.cwnd, lp.inferring), (cwnd, false));
        }
    }

    #[test]
    fn the_offset_belongs_to_the_connection() {
        let mut offsets = Vec::new();
        for seed in 0..64 {
            let mut lp = Lp::default();
            lp.on_established(&Connection { seed, ..connection(None, None) }, &mut window(10));
            offsets.push(lp.offset >> 29);
        }
        let small = offsets.iter().filter(|&&top| top == 0).count();
        assert!((3..=16).contains(&small), "{small} of 64 in the lowest eighth");
    }

    #[test]
    fn without_timestamps_and_on_loss_it_is_reno() {
        let mut lp = ahead_by(1);
        let mut w = window(10);
        for n in 0..10 {
            step(&mut lp, &mut w, &Ack { timestamps: None, ..ack(n, 0) });
        }
        assert_eq!(w.cwnd, 11);
        lp.on_congestion(&congestion(Signal::Loss), &mut w);
        assert_eq!(w.ssthresh, 5);
    }

    /// Returns LP's share of a link of 60 Mbit/s and 50 ms, its mean queueing delay (at most 50 ms) and its losses. The
    /// measurement begins after 10 s.
    fn alone(offset: u32) -> (f64, f64, u64) {
        let rate = Rate::from_bits_per_sec(60_000_000);
        let path = Path { queue: 250, ..Path::new(rate, 50) };
        let mut sender =
            Sender::new(Box::new(Lp::new(Params { offset: Some(offset), ..Params::default() })), path);
        sender.run_for(Span::from_secs(10));
        let (before, queued, lost) = (sender.delivered(), sender.queue_seconds(), sender.lost());
        sender.run_for(Span::from_secs(50));
        let share = (sender.delivered() - before) as f64 * 1500.0 / (50.0 * rate.as_f64());
        (share, (sender.queue_seconds() - queued) / 50.0, sender.lost() - lost)
    }

    /// LP's goal is a short queue for other flows. With synchronised clocks, LP reaches this goal but leaves most of
    /// the link unused. Before the first loss, slow start follows each cut, and its bursts build the next queue.
    #[test]
    fn with_synchronised_clocks_it_keeps_the_queue_short() {
        let (share, queue, lost) = alone(0);
        assert!(queue < 0.005 && lost == 0, "{share:.3} of the link, {queue:.4} s in the queue, {lost} lost");
    }

    /// Without synchronised clocks, LP behaves as it does on Linux.
    #[test]
    fn without_synchronised_clocks_it_fills_the_queue_as_reno_does() {
        let (share, queue, lost) = alone(1 << 30);
        assert!(
            share > 0.95 && queue > 0.01 && lost > 0,
            "{share:.3} of the link, {queue:.4} s, {lost} lost"
        );
    }
}
