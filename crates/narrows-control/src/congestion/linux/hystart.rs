//! HyStart: ends slow start before the queue overflows. The signal is a long ACK train or a rising delay.
//!
//! Source: Ha and Rhee, "Taming the elephants: new TCP slow start" (2011), as in Linux `tcp_cubic.c`
//! (`hystart_update`).
//!
//! Deviations from Linux:
//! * A parameter states whether the transport paces. Linux reads this from the socket.
//! * The pacing rate is 2 x cwnd per srtt, which is the socket's pacing rate in slow start. Linux reads it from the
//!   socket.

use crate::congestion::Ack;
use crate::parameter::{time_from, whole};
use crate::units::{Bytes, Rate, Span, Time};

crate::parameters! {
    /// Parameters of [`Hystart`]. The sources are Linux's module parameters and constants.
    pub struct Params {
        /// HyStart does not end slow start below this window.
        pub low_window: u32 = 16, whole(0, 1_000_000).unit("segments").from("hystart_low_window").module("hystart_low_window", 1.0);
        /// Maximum time between two ACKs of one train.
        pub ack_delta: Span = Span::from_millis(2), time_from(Span::ZERO, Span::from_secs(1)).from("hystart_ack_delta_us").module("hystart_ack_delta_us", 1e-3);
        /// Number of RTT samples that the delay test needs in a round.
        pub min_samples: u32 = 8, whole(1, 1000).unit("samples").from("HYSTART_MIN_SAMPLES");
        /// The delay threshold is 1/n of the minimum delay.
        pub delay_divisor: u64 = 8, whole(1, 1000).from("HYSTART_DELAY_THRESH");
        /// Minimum delay threshold.
        pub delay_min: Span = Span::from_millis(4), time_from(Span::ZERO, Span::from_secs(10)).from("HYSTART_DELAY_MIN");
        /// Maximum delay threshold.
        pub delay_max: Span = Span::from_millis(16), time_from(Span::ZERO, Span::from_secs(10)).from("HYSTART_DELAY_MAX");
        /// Limit of the time that segmentation offload may add to an ACK train.
        pub max_ack_delay: Span = Span::from_millis(1), time_from(Span::ZERO, Span::from_secs(1)).from("hystart_ack_delay");
    }
    and {
        /// Largest offloaded burst (`GSO_LEGACY_MAX_SIZE`).
        pub gso_bytes: u32 = 65_536;
        /// Whether the transport paces. Without pacing, a train of half the minimum delay is long enough.
        pub paced: bool = false;
    }
}

/// HyStart's state over the rounds of one slow start.
#[derive(Clone, Debug)]
pub struct Hystart {
    params: Params,
    found: bool,
    round_start: Time,
    last_ack: Time,
    /// The round ends when `snd_una` exceeds this number.
    end_seq: u64,
    least_rtt: Span,
    samples: u32,
}

impl Hystart {
    /// Returns a detector for a slow start that begins at `now`.
    pub fn new(params: Params, now: Time) -> Self {
        let mut hystart = Hystart {
            params,
            found: false,
            round_start: now,
            last_ack: now,
            end_seq: 0,
            least_rtt: Span::MAX,
            samples: 0,
        };
        hystart.start_round(now, 0);
        hystart
    }

    /// Handles the start of a new slow start, after a timeout.
    pub fn reset(&mut self, now: Time) {
        self.found = false;
        self.start_round(now, 0);
    }

    fn start_round(&mut self, now: Time, snd_nxt: u64) {
        self.round_start = now;
        self.last_ack = now;
        self.end_seq = snd_nxt;
        self.least_rtt = Span::MAX;
        self.samples = 0;
    }

    /// Processes an ACK in slow start with the RTT sample `rtt`. Returns true once, when slow start
    /// should end.
    pub fn on_ack(&mut self, ack: &Ack, cwnd: u32, rtt: Span, delay_min: Span, packet_bytes: u32) -> bool {
        if self.found {
            return false;
        }
        // Rounds are tracked even below `low_window`, because the length of a train is measured from the start of its
        // round.
        if ack.snd_una > self.end_seq {
            self.start_round(ack.now, ack.snd_nxt);
        }
        if cwnd < self.params.low_window {
            return false;
        }
        // Both detectors keep state, so both must process every ACK.
        let train = self.train_is_long(ack, cwnd, delay_min, packet_bytes);
        let delay = self.delay_has_risen(rtt, delay_min);
        self.found = train || delay;
        self.found
    }

    fn train_is_long(&mut self, ack: &Ack, cwnd: u32, delay_min: Span, packet_bytes: u32) -> bool {
        if ack.now.since(self.last_ack) > self.params.ack_delta {
            return false;
        }
        self.last_ack = ack.now;
        let mut threshold = delay_min + self.ack_delay(cwnd, ack.srtt, packet_bytes);
        if !self.params.paced {
            threshold = threshold.scale(1, 2);
        }
        ack.now.since(self.round_start) > threshold
    }

    fn delay_has_risen(&mut self, rtt: Span, delay_min: Span) -> bool {
        self.least_rtt = self.least_rtt.min(rtt);
        if self.samples < self.params.min_samples {
            self.samples += 1;
            return false;
        }
        let rise = delay_min
            .scale(1, self.params.delay_divisor)
            .min(self.params.delay_max)
            .max(self.params.delay_min);
        self.least_rtt > delay_min + rise
    }

    /// Returns the maximum delay of the last segment of a burst: the time to send four offloaded bursts.
    fn ack_delay(&self, cwnd: u32, srtt: Span, packet_bytes: u32) -> Span {
        let window = Bytes::new(2 * u64::from(cwnd) * u64::from(packet_bytes));
        let pacing = Rate::of(window, srtt);
        if pacing == Rate::ZERO {
            return Span::ZERO;
        }
        pacing.time_for(Bytes::new(4 * u64::from(self.params.gso_bytes))).min(self.params.max_ack_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::ack_at;

    const DELAY_MIN: Span = Span::from_millis(40);

    /// Passes one ACK at `millis` of a round that began at 0.
    fn feed(hystart: &mut Hystart, millis: u64, rtt_millis: u64) -> bool {
        let rtt = Span::from_millis(rtt_millis);
        let ack = Ack { snd_una: 0, srtt: DELAY_MIN, ..ack_at(Time::ZERO + Span::from_millis(millis)) };
        hystart.on_ack(&ack, 100, rtt, DELAY_MIN, 1500)
    }

    #[test]
    fn rounds_are_counted_below_the_minimum_window() {
        let mut hystart = Hystart::new(Params::default(), Time::ZERO);
        // As in Linux hystart_update(), the first ACK of a flight begins the round, even if the window is below the
        // minimum.
        let first = Ack { snd_una: 1, snd_nxt: 10, ..ack_at(Time::ZERO + Span::from_millis(40)) };
        assert!(!hystart.on_ack(&first, 10, DELAY_MIN, DELAY_MIN, 1500));
        assert_eq!((hystart.end_seq, hystart.round_start), (10, first.now));
    }

    #[test]
    fn a_train_longer_than_half_the_least_delay_ends_an_unpaced_slow_start() {
        let mut hystart = Hystart::new(Params::default(), Time::ZERO);
        let exit = (0..100).find(|&ms| feed(&mut hystart, ms, 40));
        // (40 ms + 1 ms of ACK delay) / 2 = 20.5 ms.
        assert_eq!(exit, Some(21));
    }

    #[test]
    fn a_paced_train_may_last_a_whole_delay() {
        let mut hystart = Hystart::new(Params { paced: true, ..Params::default() }, Time::ZERO);
        assert_eq!((0..100).find(|&ms| feed(&mut hystart, ms, 40)), Some(42));
    }

    #[test]
    fn a_gap_breaks_the_train_for_the_rest_of_the_round() {
        let mut hystart = Hystart::new(Params::default(), Time::ZERO);
        let with_gap = (0..10).chain(14..100);
        assert_eq!(with_gap.into_iter().find(|&ms| feed(&mut hystart, ms, 40)), None);
    }

    #[test]
    fn delay_counts_after_eight_samples_and_above_an_eighth_of_the_least_delay() {
        for (rtt, expected) in [(45, None), (46, Some(8))] {
            let mut hystart = Hystart::new(Params::default(), Time::ZERO);
            // ACKs 3 ms apart are never a train.
            assert_eq!((0..30).find(|&n| feed(&mut hystart, 3 * n, rtt)), expected, "rtt {rtt} ms");
        }
    }

    #[test]
    fn small_windows_are_not_affected() {
        let mut hystart = Hystart::new(Params::default(), Time::ZERO);
        let found = (0..100).any(|ms| {
            let ack = ack_at(Time::ZERO + Span::from_millis(ms));
            hystart.on_ack(&ack, 15, Span::from_millis(100), DELAY_MIN, 1500)
        });
        assert!(!found);
    }
}
