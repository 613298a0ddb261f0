//! Measures the excess of a burst of ACKs: the number of acknowledged segments beyond those that the estimated
//! bandwidth explains (BBR-20).
//!
//! On links that aggregate packets (Wi-Fi, cable, offload), no ACKs arrive for a while, and then
//! ACKs for many segments arrive at once. The window must cover the pause, so BBR adds the largest
//! excess of the last 5 to 10 rounds to the window.

use crate::congestion::Ack;
use crate::congestion::filter::TwoPeriodMax;
use crate::parameter::{time_from, whole};
use crate::units::{Bytes, Rate, Span, Time};

crate::parameters! {
    /// Parameters of [`Aggregation`]; the defaults are Linux's.
    pub struct Params {
        /// Number of rounds in each of the two periods of the aggregation filter.
        pub rounds: u32 = 5, whole(1, 1000).unit("rounds").from("bbr_extra_acked_win_rtts");
        /// Aggregation enlarges the window by at most the data that a flow sends in this time at the estimated
        /// bandwidth.
        pub max: Span = Span::from_millis(100), time_from(Span::ZERO, Span::from_secs(10)).from("bbr_extra_acked_max_us");
    }
    and {
        /// An epoch is the time over which the ACKed segments are compared with the bandwidth. A new epoch begins when
        /// this number of segments has been ACKed in the present epoch (`bbr_ack_epoch_acked_reset_thresh`).
        pub epoch_limit: u64 = 1 << 20;
    }
}

/// A filter of the largest excess: the number of segments ACKed beyond the estimated bandwidth. It covers two periods
/// of rounds.
#[derive(Clone, Debug)]
pub struct Aggregation {
    epoch_start: Time,
    epoch_acked: u64,
    excess: TwoPeriodMax<u32>,
    rounds: u32,
}

impl Aggregation {
    /// Returns a filter without samples.
    pub fn new(now: Time) -> Self {
        Aggregation { epoch_start: now, epoch_acked: 0, excess: TwoPeriodMax::default(), rounds: 0 }
    }

    /// Returns the largest excess within the filter's window, segments.
    pub fn extra_acked(&self) -> u32 {
        self.excess.get()
    }

    /// Called when the sender was idle, so that the pause before `now` is not mistaken for aggregation.
    pub fn restart(&mut self, now: Time) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    /// Processes an ACK with a valid sample. `bw` is the bandwidth in use. The excess is limited to `cwnd`.
    pub fn on_ack(
        &mut self,
        ack: &Ack,
        round_start: bool,
        bw: Rate,
        cwnd: u32,
        packet_bytes: u32,
        params: &Params,
    ) {
        if ack.acked == 0 {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= params.rounds {
                self.rounds = 0;
                self.excess.advance();
            }
        }
        let acked = u64::from(ack.acked);
        // If ACKs arrive no faster than the estimated bandwidth, the burst is over and the epoch ends.
        let mut expected = bw.bytes_in(ack.now.since(self.epoch_start));
        if holds(expected, self.epoch_acked, packet_bytes) || self.epoch_acked + acked >= params.epoch_limit {
            self.restart(ack.now);
            expected = Bytes::ZERO;
        }
        self.epoch_acked = (self.epoch_acked + acked).min(params.epoch_limit);
        // The division is skipped if the excess cannot exceed the maximum of the current period.
        let known = u64::from(self.excess.current());
        if !holds(expected, self.epoch_acked.saturating_sub(known), packet_bytes) {
            let extra = (self.epoch_acked - segments(expected, packet_bytes)).min(u64::from(cwnd));
            self.excess.update(u32::try_from(extra).unwrap_or(u32::MAX));
        }
    }

    /// Returns the number of segments to add to the window: the largest excess, limited to the data that a flow sends
    /// at rate `bw` in the time `max`.
    pub fn cwnd(&self, bw: Rate, packet_bytes: u32, params: &Params) -> u32 {
        let (most, extra) = (bw.bytes_in(params.max), self.extra_acked());
        if holds(most, u64::from(extra), packet_bytes) {
            return extra;
        }
        u32::try_from(segments(most, packet_bytes)).unwrap_or(u32::MAX)
    }
}

fn segments(bytes: Bytes, packet_bytes: u32) -> u64 {
    bytes.get() / u64::from(packet_bytes.max(1))
}

/// Returns whether `bytes` is at least the size of this number of segments. Uses no division.
fn holds(bytes: Bytes, segments: u64, packet_bytes: u32) -> bool {
    bytes.get() >= segments.saturating_mul(u64::from(packet_bytes.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::ack_at;

    /// Returns the excess after two seconds of 1000 segments/s in bursts of `burst` segments.
    fn excess(burst: u32) -> u32 {
        let params = Params::default();
        let mut aggregation = Aggregation::new(Time::ZERO);
        let bw = Rate::from_bytes_per_sec(1_500_000);
        let mut at = Time::ZERO;
        for n in 0..2000 / burst {
            at += Span::from_millis(u64::from(burst));
            let ack = Ack { acked: burst, ..ack_at(at) };
            aggregation.on_ack(&ack, n % 20 == 0, bw, 1000, 1500, &params);
        }
        aggregation.extra_acked()
    }

    #[test]
    fn the_excess_is_the_size_of_a_burst() {
        assert_eq!(excess(1), 1);
        assert_eq!(excess(40), 40);
    }

    #[test]
    fn the_window_gains_at_most_a_tenth_of_a_second() {
        let params = Params::default();
        let mut aggregation = Aggregation::new(Time::ZERO);
        let bw = Rate::from_bytes_per_sec(1_500_000);
        aggregation.on_ack(&Ack { acked: 500, ..ack_at(Time::ZERO) }, true, bw, 1000, 1500, &params);
        assert_eq!(aggregation.extra_acked(), 500);
        assert_eq!(aggregation.cwnd(bw, 1500, &params), 100);
    }

    #[test]
    fn an_old_excess_is_forgotten_after_ten_rounds() {
        let params = Params::default();
        let mut aggregation = Aggregation::new(Time::ZERO);
        let bw = Rate::from_bytes_per_sec(1_500_000);
        aggregation.on_ack(&Ack { acked: 50, ..ack_at(Time::ZERO) }, true, bw, 1000, 1500, &params);
        let mut seen = Vec::new();
        for n in 1..=10 {
            let at = Time::ZERO + Span::from_millis(100 * n);
            aggregation.on_ack(&ack_at(at), true, bw, 1000, 1500, &params);
            seen.push(aggregation.extra_acked());
        }
        assert_eq!(seen, [50, 50, 50, 50, 50, 50, 50, 50, 1, 1]);
    }
}
