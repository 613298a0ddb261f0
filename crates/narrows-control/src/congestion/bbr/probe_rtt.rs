//! ProbeRTT: keeps few packets in flight for 200 ms and a round, to measure the RTT without a queue (BBR-17, BBR3-9).

use super::model::Model;
use crate::congestion::Ack;
use crate::units::{Span, Time};

/// The progress of ProbeRTT.
#[derive(Clone, Debug, Default)]
pub struct ProbeRtt {
    /// Earliest end of ProbeRTT. It is set when the data in flight has fallen to the minimum.
    done_at: Option<Time>,
    round_done: bool,
}

impl ProbeRtt {
    /// Processes an ACK. Returns true when ProbeRTT ends. ProbeRTT ends when the time `stay` and one round have passed
    /// since the data in flight fell to `few` segments.
    pub fn on_ack<F>(&mut self, ack: &Ack, model: &mut Model<F>, few: u32, stay: Span) -> bool {
        model.mark_self_limited(ack.delivered, ack.in_flight);
        match self.done_at {
            None => {
                if ack.in_flight <= few {
                    self.done_at = Some(ack.now + stay);
                    self.round_done = false;
                    model.start_round(ack.delivered);
                }
                false
            }
            Some(_) => {
                self.round_done |= model.round_start;
                self.round_done && self.is_over(ack.now)
            }
        }
    }

    /// Returns whether the minimum time has passed.
    pub fn is_over(&self, now: Time) -> bool {
        self.done_at.is_some_and(|done_at| now > done_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::RateSample;
    use crate::congestion::harness::ack_at;

    /// Returns the time at which ProbeRTT ends if the RTT is `rtt_millis`. The data in flight is at the minimum from
    /// the first ACK on.
    fn length(rtt_millis: u64) -> u64 {
        let mut model = Model::new(Time::ZERO, None, 1500, 10);
        let mut probe = ProbeRtt::default();
        // Each millisecond, an ACK samples the segment that was sent an RTT ago.
        (1000..)
            .find(|&ms: &u64| {
                let rate = RateSample {
                    delivered: 1,
                    interval: Span::from_millis(1),
                    prior_delivered: ms - rtt_millis,
                    ..RateSample::default()
                };
                let ack = Ack { delivered: ms, rate, ..ack_at(Time::ZERO + Span::from_millis(ms)) };
                model.on_sample(&ack);
                probe.on_ack(&ack, &mut model, 4, Span::from_millis(200))
            })
            .map_or(0, |end| end - 1000)
    }

    #[test]
    fn probe_rtt_lasts_200_ms_and_at_least_a_round() {
        assert_eq!(length(20), 201);
        assert_eq!(length(450), 450);
    }
}
