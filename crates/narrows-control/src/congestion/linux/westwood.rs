//! Westwood+: computes the window after congestion from the measured bandwidth. The new window is
//! not a share of the old window.
//!
//! Source: Mascolo, Grieco, Ferorelli, Camarda and Piccarella, "Performance evaluation of Westwood+ TCP congestion
//! control" (Performance Evaluation 55, 2004); Linux `tcp_westwood.c`.
//!
//! As in Linux:
//! * The window grows as in Reno. During recovery, the target is half the window, as in Reno.
//! * RTTs are rounded up to jiffies. So a short path gets the same window as a path with an RTT of one jiffy.
//! * The filters round down, so the estimate of a rising rate is up to about 14 bytes per jiffy too low.
//!
//! Deviations from Linux:
//! * All ACKs are processed as on Linux's slow path. The difference matters only after repaired losses.
//! * The size of a segment is its L3 size. The bandwidth and the window use the same size, so it cancels out except for
//!   rounding.

use super::reno::Reno;
use crate::congestion::{Ack, Congestion, Connection, Controller, Signal, Window};
use crate::parameter::{time_from, whole};
use crate::units::{Span, Time};

crate::parameters! {
    /// Parameters of [`Westwood`].
    pub struct Params {
        /// Length of a jiffy, which is the unit of time of the filter.
        pub jiffy: Span = Span::from_millis(4), time_from(Span::from_micros(1), Span::from_millis(100)).from("HZ = 250, Debian's");
        /// Minimum length of a rate sample. A sample also takes at least one RTT.
        pub min_interval: Span = Span::from_millis(50), time_from(Span::from_millis(1), Span::from_secs(10)).from("TCP_WESTWOOD_RTT_MIN");
        /// RTT that is assumed before the first sample.
        pub initial_rtt: Span = Span::from_secs(20), time_from(Span::from_millis(1), Span::from_secs(1000)).from("TCP_WESTWOOD_INIT_RTT");
        /// Minimum of the window that is computed from the estimated bandwidth.
        pub min_window: u32 = 2, whole(1, 1000).unit("segments").from("tcp_westwood.c");
    }
}

/// The Westwood+ controller.
#[derive(Clone, Debug)]
pub struct Westwood {
    params: Params,
    reno: Reno,
    packet_bytes: u32,
    /// The rate after the first filter, bytes per jiffy (`bw_ns_est`).
    once: u32,
    /// The rate after both filters, bytes per jiffy (`bw_est`).
    rate: u32,
    /// Number of bytes ACKed since the time `since` (`bk`).
    counted: u32,
    /// Start of the count, jiffies (`rtt_win_sx`).
    since: u64,
    /// `snd_una` of the last ACK.
    una: Option<u64>,
    /// Bytes counted for duplicate ACKs, which the later cumulative ACK does not count again (`accounted`).
    accounted: u32,
    /// The latest RTT, jiffies.
    rtt: u32,
    /// The minimum RTT, jiffies.
    min_rtt: u32,
    /// Whether the next ACK restarts the minimum RTT.
    forget: bool,
    /// Whether the last congestion event was a timeout.
    timeout: bool,
}

impl Default for Westwood {
    fn default() -> Self {
        Westwood::new(Params::default())
    }
}

impl Westwood {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        let rtt = jiffies(params.initial_rtt, params.jiffy);
        Westwood {
            params,
            reno: Reno::default(),
            packet_bytes: 1500,
            once: 0,
            rate: 0,
            counted: 0,
            since: 0,
            una: None,
            accounted: 0,
            rtt,
            min_rtt: rtt,
            forget: true,
            timeout: false,
        }
    }

    fn clock(&self, now: Time) -> u64 {
        now.as_nanos() / self.params.jiffy.as_nanos().max(1)
    }

    /// Passes a sample through both filters. Each filter gives the old value a weight of 7/8 (Linux
    /// `westwood_filter`). The first sample is copied and not filtered.
    fn filter(&mut self, sample: u32) {
        let keep = |old: u32, new: u32| ((7 * u64::from(old) + u64::from(new)) >> 3) as u32;
        if self.once == 0 && self.rate == 0 {
            (self.once, self.rate) = (sample, sample);
        } else {
            self.once = keep(self.once, sample);
            self.rate = keep(self.rate, self.once);
        }
    }

    /// Returns the number of bytes that an ACK represents (Linux `westwood_acked_count`). A duplicate ACK represents
    /// one segment.
    fn count(&mut self, una: u64) -> u32 {
        // The first ACK only defines the start of the count.
        let Some(before) = self.una.replace(una) else { return 0 };
        let segments = una.saturating_sub(before);
        let bytes = u32::try_from(segments).unwrap_or(u32::MAX).saturating_mul(self.packet_bytes);
        if bytes == 0 {
            self.accounted = self.accounted.saturating_add(self.packet_bytes);
            return self.packet_bytes;
        }
        if bytes <= self.packet_bytes {
            return bytes;
        }
        if self.accounted >= bytes {
            self.accounted -= bytes;
            self.packet_bytes
        } else {
            bytes - core::mem::take(&mut self.accounted)
        }
    }

    /// Returns the bandwidth times the minimum RTT, segments (Linux `tcp_westwood_bw_rttmin`).
    fn fair_window(&self) -> u32 {
        let bytes = u64::from(self.rate) * u64::from(self.min_rtt);
        let segments = bytes / u64::from(self.packet_bytes.max(1));
        u32::try_from(segments).unwrap_or(u32::MAX).max(self.params.min_window).max(1)
    }
}

/// Converts a time to jiffies and rounds up, as Linux does with measured values.
fn jiffies(span: Span, jiffy: Span) -> u32 {
    u32::try_from(span.as_nanos().div_ceil(jiffy.as_nanos().max(1))).unwrap_or(u32::MAX)
}

impl Controller for Westwood {
    fn name(&self) -> &'static str {
        "westwood"
    }

    fn on_established(&mut self, connection: &Connection, _window: &mut Window) {
        self.packet_bytes = connection.packet_bytes.max(1);
        self.since = self.clock(connection.now);
    }

    fn on_sample(&mut self, ack: &Ack) {
        // As in Linux, the bytes of this ACK are counted before its RTT is stored.
        let now = self.clock(ack.now);
        let took = now.saturating_sub(self.since);
        // HZ / 20, rounded down. For jiffies of 4 ms, this is 12 jiffies.
        let floor = self.params.min_interval.as_nanos() / self.params.jiffy.as_nanos().max(1);
        let least = u64::from(self.rtt).max(floor);
        if self.rtt > 0 && took > least {
            self.filter(u32::try_from(u64::from(self.counted) / took).unwrap_or(u32::MAX));
            self.counted = 0;
            self.since = now;
        }
        self.counted = self.counted.saturating_add(self.count(ack.snd_una));
        self.min_rtt = if core::mem::take(&mut self.forget) { self.rtt } else { self.min_rtt.min(self.rtt) };
        if let Some(rtt) = ack.rtt.filter(|&rtt| rtt > Span::ZERO) {
            self.rtt = jiffies(rtt, self.params.jiffy);
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        self.reno.on_ack(ack, window);
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.timeout = event.signal == Signal::Timeout;
        if event.again {
            return;
        }
        self.reno.on_congestion(event, window);
        if self.timeout {
            window.ssthresh = self.fair_window();
            // The path may have changed.
            self.forget = true;
        }
    }

    fn on_recovered(&mut self, _now: Time, window: &mut Window) {
        // Corresponds to Linux's CA_EVENT_COMPLETE_CWR, which does not occur at the end of Loss.
        if !self.timeout {
            window.ssthresh = self.fair_window();
            window.cwnd = window.ssthresh;
        }
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        let jiffy = self.params.jiffy.as_secs_f64();
        trace("bandwidth_bps", 8.0 * f64::from(self.rate) / jiffy);
        trace("min_rtt_s", f64::from(self.min_rtt) * jiffy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{Path, Sender, ack_at, congestion, connection, periodic_loss, window};
    use crate::units::Rate;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    /// Returns a controller that has measured `rate` bytes per jiffy, with jiffies of 1 ms and a minimum RTT of
    /// `min_rtt` jiffies.
    fn measured(rate: u32, min_rtt: u32) -> Westwood {
        let params = Params { jiffy: ms(1), ..Params::default() };
        Westwood { rate, min_rtt, rtt: min_rtt, packet_bytes: 1448, ..Westwood::new(params) }
    }

    /// The expected window is 10 Mbit/s times 50 ms in segments of 1448 bytes.
    #[test]
    fn tv_s8_the_window_after_congestion_is_bandwidth_times_the_least_rtt() {
        let mut westwood = measured(1250, 50);
        let mut w = window(100);
        westwood.on_congestion(&congestion(Signal::Loss), &mut w);
        assert_eq!(w.ssthresh, 50, "during recovery, the target is half the window as in Reno");
        westwood.on_recovered(Time::ZERO, &mut w);
        assert_eq!((w.cwnd, w.ssthresh), (43, 43));
        measured(1, 1).on_recovered(Time::ZERO, &mut w);
        assert_eq!(w.cwnd, 2);
    }

    #[test]
    fn a_timeout_sets_only_the_threshold_and_discards_the_least_rtt() {
        let mut westwood = measured(1250, 50);
        westwood.forget = false;
        let mut w = window(100);
        westwood.on_congestion(&congestion(Signal::Timeout), &mut w);
        assert_eq!(w.ssthresh, 43);
        w.cwnd = 7;
        westwood.on_recovered(Time::ZERO, &mut w);
        assert_eq!(w.cwnd, 7, "the end of state Loss does not change the window");
        westwood.rtt = 80;
        westwood.on_sample(&ack_at(Time::ZERO));
        assert_eq!(westwood.min_rtt, 80);
        westwood.on_sample(&ack_at(Time::ZERO));
        assert_eq!(westwood.min_rtt, 80);
        // Linux raises no CA_EVENT_LOSS within an episode.
        w.ssthresh = 9;
        westwood.on_congestion(&Congestion { again: true, ..congestion(Signal::Timeout) }, &mut w);
        assert!(!westwood.forget && westwood.timeout && w.ssthresh == 9);
    }

    #[test]
    fn the_first_sample_is_copied_and_later_ones_are_filtered_twice() {
        let mut westwood = measured(0, 50);
        westwood.filter(800);
        assert_eq!((westwood.once, westwood.rate), (800, 800));
        westwood.filter(1600);
        assert_eq!((westwood.once, westwood.rate), (900, 812));
        for _ in 0..200 {
            westwood.filter(1600);
        }
        assert_eq!((westwood.once, westwood.rate), (1593, 1586), "both filters round down");
    }

    #[test]
    fn duplicate_acks_count_a_segment_and_the_covering_ack_the_rest() {
        let mut westwood = Westwood { packet_bytes: 1000, ..Westwood::default() };
        let counts: Vec<u32> = [10, 12, 12, 12, 12, 14, 20].map(|una| westwood.count(una)).to_vec();
        // After three duplicate ACKs, the ACK of two segments still counts one segment, as in Linux. The total is
        // eleven segments instead of ten.
        assert_eq!(counts, [0, 2000, 1000, 1000, 1000, 1000, 5000]);
        assert_eq!(westwood.accounted, 0);
    }

    #[test]
    fn a_rate_is_sampled_once_per_rtt_but_not_below_fifty_milliseconds() {
        for (rtt, first) in [(10, 51), (80, 81)] {
            let mut westwood = measured(0, rtt);
            westwood.una = Some(0);
            let at = |n: u64| Ack { snd_una: n, ..ack_at(Time::ZERO + ms(n)) };
            let n = (1..200).find(|&n| {
                westwood.on_sample(&at(n));
                westwood.rate > 0
            });
            assert_eq!(n, Some(first), "{rtt} ms");
            assert_eq!(westwood.rate, (first as u32 - 1) * 1448 / first as u32);
        }
    }

    /// With HZ = 250, HZ / 20 is 12 jiffies. A sample takes more than 12 jiffies.
    #[test]
    fn with_jiffies_of_4_ms_a_short_path_is_sampled_every_13_of_them() {
        let mut westwood = Westwood { rtt: 3, una: Some(0), ..Westwood::default() };
        let first = (1..100).find(|&n| {
            westwood.on_sample(&Ack { snd_una: n, ..ack_at(Time::ZERO + ms(4 * n)) });
            westwood.rate > 0
        });
        assert_eq!(first, Some(13));
    }

    /// Westwood+'s goal: losses without congestion do not reduce the window. Reno gets a third of
    /// the link in this test.
    #[test]
    fn random_losses_do_not_empty_a_link_that_is_not_congested() {
        let share = |controller: Box<dyn Controller>| {
            let rate = Rate::from_bits_per_sec(20_000_000);
            let path = Path { loss: periodic_loss(2000), ..Path::new(rate, 100) };
            let mut sender = Sender::new(controller, path);
            sender.run_for(Span::from_secs(20));
            let before = sender.delivered();
            sender.run_for(Span::from_secs(60));
            (sender.delivered() - before) as f64 * 1500.0 / (60.0 * rate.as_f64())
        };
        let (westwood, reno) = (share(Box::<Westwood>::default()), share(Box::<Reno>::default()));
        assert!(westwood > 0.8 && westwood > 1.5 * reno, "{westwood:.3} of the link, Reno {reno:.3}");
    }

    #[test]
    fn the_segment_size_is_that_of_the_connection() {
        let mut westwood = Westwood::default();
        let now = Time::ZERO + ms(50);
        westwood.on_established(&Connection { now, ..connection(Some(ms(50)), None) }, &mut window(10));
        assert_eq!((westwood.packet_bytes, westwood.since), (1500, 12));
    }
}
