//! Measures the minimum RTT of each round trip, for Vegas, Veno and YeAH (Linux `tcp_vegas.c`).
//!
//! As in Linux, one microsecond is added to each time, so that no time is zero.

use crate::congestion::{Ack, State};
use crate::units::Span;

/// The minimum RTT of the path, and the minimum RTT of the present round trip.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Minimum RTT since the start or the last [`Rounds::restart`], us (`baseRTT`). The value is `u32::MAX` before the
    /// first sample.
    pub base: u32,
    /// Minimum RTT since `least` was last reset, us (`minRTT`). The value is `u32::MAX` if there are no samples.
    pub least: u32,
    /// Number of samples since the start of the round (`cntRTT`).
    pub samples: u32,
    /// Whether the sender is in state Open. Queues are not measured during recovery (`doing_vegas_now`).
    pub open: bool,
    /// The round ends when `snd_una` exceeds this number (`beg_snd_nxt`).
    end: u64,
}

impl Default for Rounds {
    fn default() -> Self {
        Rounds { base: u32::MAX, least: u32::MAX, samples: 0, open: true, end: 0 }
    }
}

impl Rounds {
    /// Processes the RTT sample of an ACK, in any state. Starts a round when the state becomes Open.
    pub fn on_sample(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let rtt = micros(rtt);
            self.base = self.base.min(rtt);
            self.least = self.least.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        let open = ack.state == State::Open;
        if open && !self.open {
            self.begin(ack.snd_nxt);
        }
        self.open = open;
    }

    /// Returns whether this ACK ends the round. If so, the caller reads the samples and calls [`Rounds::begin`].
    pub fn is_over(&self, ack: &Ack) -> bool {
        ack.snd_una > self.end
    }

    /// Starts a round. The new round lasts until everything sent so far is acknowledged.
    pub fn begin(&mut self, snd_nxt: u64) {
        self.end = snd_nxt;
        self.samples = 0;
        self.forget_least();
    }

    /// Discards the minimum RTT of the round.
    pub fn forget_least(&mut self) {
        self.least = u32::MAX;
    }

    /// Called when the sender resumes after idle time (Linux CA_EVENT_TX_START). Resets the minimum RTTs, because the
    /// path may have changed. Keeps the end of the round, because all data before that end is acknowledged.
    pub fn restart(&mut self) {
        self.base = u32::MAX;
        self.least = u32::MAX;
        self.samples = 0;
        self.open = true;
    }
}

fn micros(rtt: Span) -> u32 {
    // The largest RTT is `u32::MAX - 1`, because `u32::MAX` means that there is no sample.
    u32::try_from(rtt.as_micros().saturating_add(1)).unwrap_or(u32::MAX).min(u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::ack_at;
    use crate::units::Time;

    fn ack(una: u64, rtt: u64, state: State) -> Ack {
        let rtt = Some(Span::from_millis(rtt));
        Ack { snd_una: una, snd_nxt: una + 10, rtt, state, ..ack_at(Time::ZERO) }
    }

    #[test]
    fn a_round_lasts_until_what_was_sent_at_its_start_is_acknowledged() {
        let mut rounds = Rounds::default();
        let first = ack(1, 50, State::Open);
        rounds.on_sample(&first);
        assert!(rounds.is_over(&first));
        rounds.begin(first.snd_nxt);
        rounds.on_sample(&ack(11, 60, State::Open));
        assert!(!rounds.is_over(&ack(11, 60, State::Open)));
        assert!(rounds.is_over(&ack(12, 60, State::Open)));
        assert_eq!((rounds.base, rounds.least, rounds.samples), (50_001, 60_001, 1));
    }

    #[test]
    fn a_round_restarts_after_recovery_and_keeps_the_path() {
        let mut rounds = Rounds::default();
        rounds.on_sample(&ack(1, 50, State::Open));
        rounds.on_sample(&ack(2, 40, State::Recovery));
        assert!(!rounds.open);
        rounds.on_sample(&ack(3, 70, State::Open));
        assert!(rounds.open && !rounds.is_over(&ack(13, 70, State::Open)));
        assert_eq!((rounds.base, rounds.least, rounds.samples), (40_001, u32::MAX, 0));
        rounds.restart();
        assert_eq!(rounds.base, u32::MAX);
    }
}
