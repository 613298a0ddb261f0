//! The mean RTT of the last completed round. The gain model uses this mean as the current RTT (GAIN-5). BBQ compares
//! this mean with the propagation time to detect a queue.

use crate::congestion::Ack;
use crate::units::Span;

/// Collects the RTT samples of a round.
#[derive(Clone, Debug, Default)]
pub struct RoundRtt {
    sum: u64,
    samples: u64,
    last: Option<Span>,
}

impl RoundRtt {
    /// Processes an ACK. An ACK that begins a round belongs to the new round. Returns true if this ACK completed a
    /// round with samples.
    ///
    /// Only segments that were sent once give RTT samples (Karn's algorithm).
    pub fn on_ack(&mut self, ack: &Ack, round_start: bool) -> bool {
        let completed = round_start && self.samples > 0;
        if completed {
            self.last = Some(Span::from_nanos(self.sum / self.samples));
            (self.sum, self.samples) = (0, 0);
        }
        if let Some(rtt) = ack.rtt {
            self.sum = self.sum.saturating_add(rtt.as_nanos());
            self.samples += 1;
        }
        completed
    }

    /// Returns the mean of the last completed round with samples.
    pub fn last(&self) -> Option<Span> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::ack_at;
    use crate::units::Time;

    #[test]
    fn the_mean_is_that_of_the_completed_round() {
        let mut round = RoundRtt::default();
        let mut ack = |rtt: Option<u64>, start| {
            let done = round.on_ack(&Ack { rtt: rtt.map(Span::from_millis), ..ack_at(Time::ZERO) }, start);
            (done, round.last().map(|mean| mean.as_micros() / 1000))
        };
        assert_eq!(ack(Some(10), true), (false, None));
        assert_eq!(ack(Some(20), false), (false, None));
        assert_eq!(ack(Some(100), true), (true, Some(15)));
        // Retransmitted segments give no sample.
        assert_eq!(ack(None, false), (false, Some(15)));
        assert_eq!(ack(None, true), (true, Some(100)));
        assert_eq!(ack(Some(40), true), (false, Some(100)));
    }
}
