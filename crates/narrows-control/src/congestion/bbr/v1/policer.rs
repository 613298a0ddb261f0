//! The policer detector ("lt_bw"). A high loss rate at a constant delivery rate indicates a token
//! bucket (BBR-22).
//!
//! Source: Linux `tcp_bbr.c`; Flach et al., "An Internet-Wide Analysis of Traffic Policing" (2016). On a policed path,
//! the only effect of a probe is loss. So BBR uses the policed rate, with gain 1, for 48 rounds.

use super::params::PolicerParams;
use crate::units::{Bytes, Rate, Time};

/// The detector's view of one ACK.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// The current time.
    pub now: Time,
    /// Segments delivered so far.
    pub delivered: u64,
    /// Segments lost so far.
    pub total_lost: u64,
    /// Whether this ACK marked segments as lost.
    pub losses: bool,
    /// Whether the application limited the sample.
    pub app_limited: bool,
    /// Whether the ACK begins a round.
    pub round_start: bool,
    /// Whether BBR is in ProbeBW. BBR stops using the policed rate only in this phase.
    pub probing_bw: bool,
}

/// The detector.
#[derive(Clone, Debug)]
pub struct Policer {
    params: PolicerParams,
    packet_bytes: u32,
    sampling: bool,
    /// Rate of the last interval. While `in_use` is true, this is the policed rate.
    bw: Option<Rate>,
    in_use: bool,
    /// Number of rounds in the current interval, or since BBR began to use the policed rate.
    rounds: u32,
    started: Time,
    start_delivered: u64,
    start_lost: u64,
}

impl Policer {
    /// Returns a detector without samples.
    pub fn new(params: PolicerParams, packet_bytes: u32) -> Self {
        Policer {
            params,
            packet_bytes,
            sampling: false,
            bw: None,
            in_use: false,
            rounds: 0,
            started: Time::ZERO,
            start_delivered: 0,
            start_lost: 0,
        }
    }

    /// Returns the policed rate, L3 bytes/s, while it is in use.
    pub fn policed_rate(&self) -> Option<Rate> {
        self.bw.filter(|_| self.in_use)
    }

    /// Discards all samples and the policed rate.
    pub fn reset(&mut self) {
        self.bw = None;
        self.in_use = false;
        self.sampling = false;
        self.rounds = 0;
    }

    /// Processes one ACK. Returns true if the policed rate has expired and probing should restart.
    pub fn on_ack(&mut self, seen: &Observation) -> bool {
        if self.in_use {
            return self.on_ack_in_use(seen);
        }
        // Sampling begins with the first loss. Before this loss, the bucket still has tokens, so the rate would be
        // overestimated.
        if !self.sampling {
            if !seen.losses {
                return false;
            }
            self.start_interval(seen);
            self.sampling = true;
        }
        if seen.app_limited {
            self.reset();
            return false;
        }
        self.rounds += u32::from(seen.round_start);
        if self.rounds > 4 * self.params.min_rounds {
            self.reset();
        } else if self.rounds >= self.params.min_rounds && seen.losses {
            // The interval ends with a loss, when the bucket is empty again.
            self.end_interval(seen);
        }
        false
    }

    fn on_ack_in_use(&mut self, seen: &Observation) -> bool {
        if seen.probing_bw && seen.round_start {
            self.rounds += 1;
            if self.rounds >= self.params.max_rounds {
                self.reset();
                return true;
            }
        }
        false
    }

    fn start_interval(&mut self, seen: &Observation) {
        self.started = seen.now;
        self.start_delivered = seen.delivered;
        self.start_lost = seen.total_lost;
        self.rounds = 0;
    }

    fn end_interval(&mut self, seen: &Observation) {
        let lost = seen.total_lost.saturating_sub(self.start_lost);
        let delivered = seen.delivered.saturating_sub(self.start_delivered);
        let policed = delivered > 0
            && u128::from(lost) << 8 >= self.params.loss_threshold.of(u128::from(delivered) << 8);
        let span = seen.now.since(self.started);
        // Linux counts whole milliseconds. An interval of less than a millisecond therefore continues.
        if !policed || span.as_micros() < 1000 {
            return;
        }
        let bw = Rate::of(Bytes::new(delivered.saturating_mul(u64::from(self.packet_bytes))), span);
        match self.bw {
            Some(before) if self.rates_agree(bw, before) => {
                self.bw = Some(Rate::from_bytes_per_sec((bw + before).as_bytes_per_sec() / 2));
                self.in_use = true;
                self.rounds = 0;
            }
            _ => {
                self.bw = Some(bw);
                self.start_interval(seen);
            }
        }
    }

    fn rates_agree(&self, bw: Rate, before: Rate) -> bool {
        let difference = bw.as_bytes_per_sec().abs_diff(before.as_bytes_per_sec());
        u128::from(difference) <= self.params.ratio.of(u128::from(before.as_bytes_per_sec()))
            || Rate::from_bytes_per_sec(difference) <= self.params.difference
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    /// Passes rounds of 100 ms to a detector, each with this many delivered and lost segments. Returns the detector.
    fn after(rounds: &[(u64, u64)]) -> Policer {
        after_with(rounds, usize::MAX)
    }

    /// Like [`after`], but the application limits the sender in round number `limited`.
    fn after_with(rounds: &[(u64, u64)], limited: usize) -> Policer {
        let mut policer = Policer::new(PolicerParams::default(), 1500);
        let (mut delivered, mut total_lost, mut now) = (0, 0, Time::ZERO);
        for (n, &(more, lost)) in rounds.iter().enumerate() {
            now += Span::from_millis(100);
            delivered += more;
            total_lost += lost;
            let seen = Observation {
                now,
                delivered,
                total_lost,
                losses: lost > 0,
                app_limited: n == limited,
                round_start: true,
                probing_bw: true,
            };
            policer.on_ack(&seen);
        }
        policer
    }

    #[test]
    fn two_equal_intervals_of_heavy_loss_are_a_policer() {
        assert_eq!(after(&[(100, 25); 7]).policed_rate(), None);
        let policer = after(&[(100, 25); 9]);
        assert_eq!(policer.policed_rate(), Some(Rate::from_bytes_per_sec(1_500_000)));
    }

    #[test]
    fn light_loss_is_no_policer() {
        assert_eq!(after(&[(100, 19); 30]).policed_rate(), None);
    }

    #[test]
    fn an_application_limit_starts_the_search_again() {
        assert_eq!(after_with(&[(100, 25); 9], 6).policed_rate(), None);
        assert!(after_with(&[(100, 25); 16], 6).policed_rate().is_some());
    }

    #[test]
    fn an_interval_without_loss_in_sixteen_rounds_is_discarded() {
        // The rates of both intervals are equal, but the second interval would have 20 rounds, more than the maximum of
        // 16.
        let mut rounds = vec![(100, 25); 5];
        rounds.extend([(100, 0); 19]);
        rounds.push((100, 500));
        assert_eq!(after(&rounds).policed_rate(), None);
    }

    #[test]
    fn intervals_that_differ_by_more_than_an_eighth_do_not_agree() {
        let mut rounds = vec![(100, 25); 4];
        rounds.extend([(140, 35); 4]);
        assert_eq!(after(&rounds).policed_rate(), None);
    }

    #[test]
    fn the_policed_rate_is_used_for_48_rounds() {
        let found = (1..30).find(|&n| after(&vec![(100, 25); n]).policed_rate().is_some()).unwrap_or(0);
        assert!(after(&vec![(100, 25); found + 47]).policed_rate().is_some());
        assert!(after(&vec![(100, 25); found + 48]).policed_rate().is_none());
    }
}
