//! ProbeRTT: four packets in flight for 200 ms and a round, to see the path without a queue (BBR-17).

use super::model::Model;
use super::params::Params;
use crate::congestion::Ack;
use crate::units::Time;

/// How far the visit to ProbeRTT has come.
#[derive(Clone, Debug, Default)]
pub struct ProbeRtt {
    /// Earliest end; set once the flight has shrunk to the minimum.
    done_at: Option<Time>,
    round_done: bool,
}

impl ProbeRtt {
    /// Takes an ACK. True when the visit is over.
    pub fn on_ack(&mut self, ack: &Ack, model: &mut Model, params: &Params) -> bool {
        model.mark_self_limited(ack.delivered, ack.in_flight);
        match self.done_at {
            None => {
                if ack.in_flight <= params.min_cwnd {
                    self.done_at = Some(ack.now + params.probe_rtt);
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

    /// The time at the minimum has passed.
    pub fn is_over(&self, now: Time) -> bool {
        self.done_at.is_some_and(|done_at| now > done_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::RateSample;
    use crate::congestion::harness::ack_at;
    use crate::units::Span;

    /// When a visit is over with ACKs of an RTT of `rtt_millis`, of which the first finds the flight shrunk.
    fn length(rtt_millis: u64) -> u64 {
        let params = Params::default();
        let mut model = Model::new(Time::ZERO, None, 1500, &params);
        let mut probe = ProbeRtt::default();
        // One segment per millisecond; each ACK samples the segment sent an RTT ago.
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
                probe.on_ack(&ack, &mut model, &params)
            })
            .map_or(0, |end| end - 1000)
    }

    #[test]
    fn a_visit_lasts_200_ms_and_at_least_a_round() {
        assert_eq!(length(20), 201);
        assert_eq!(length(450), 450);
    }
}
