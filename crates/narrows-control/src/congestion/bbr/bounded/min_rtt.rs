//! The minimum RTT over two windows (BBR3-9). When the minimum over 5 s expires, ProbeRTT begins. The minimum over 10 s
//! is the estimate of the propagation time.

use super::params::Params;
use crate::congestion::Ack;
use crate::congestion::bbr::model::Model;
use crate::units::{Span, Time};

/// The minimum over the shorter window. The minimum over the longer window is `Model::min_rtt`.
#[derive(Clone, Debug)]
pub struct MinRtt {
    least: Span,
    /// The time at which the minimum was measured or confirmed, or at which ProbeRTT ended.
    pub at: Time,
}

impl MinRtt {
    /// Returns the state of a new connection, with the RTT of the handshake.
    pub fn new(now: Time, rtt: Option<Span>) -> Self {
        MinRtt { least: rtt.unwrap_or(Span::MAX), at: now }
    }

    /// Updates both windows with an ACK's RTT. Returns true if the shorter window had expired
    /// (`UpdateMinRTT`).
    ///
    /// The parameter `equal_rtt_renews` decides whether an RTT equal to the minimum restarts the shorter window.
    /// Simulated RTTs are exact, so equal RTTs are common on an idle path.
    #[inline]
    pub fn update<F>(&mut self, ack: &Ack, model: &mut Model<F>, params: &Params) -> bool {
        let expired = ack.now > self.at + params.probe_rtt_interval;
        if let Some(rtt) = ack.rtt
            && (rtt < self.least
                || (rtt == self.least && params.equal_rtt_renews)
                || (expired && !ack.delayed))
        {
            self.least = rtt;
            self.at = ack.now;
        }
        let stale = ack.now > model.min_rtt_at + params.min_rtt_window;
        if self.least <= model.min_rtt || stale {
            model.min_rtt = self.least;
            model.min_rtt_at = self.at;
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::bbr::v3;
    use crate::congestion::harness::ack_at;

    #[test]
    fn five_seconds_trigger_probe_rtt_and_ten_replace_the_estimate() {
        let params = v3::params();
        let (ms, start) = (Span::from_millis, Some(Span::from_millis(20)));
        let mut model = Model::new(Time::ZERO, start, 1500, 10);
        let mut min_rtt = MinRtt::new(Time::ZERO, start);
        let mut at = |millis, rtt| {
            let ack = Ack { rtt: Some(ms(rtt)), ..ack_at(Time::ZERO + ms(millis)) };
            (min_rtt.update(&ack, &mut model, &params), model.min_rtt)
        };
        assert_eq!(at(5000, 30), (false, ms(20)));
        assert_eq!(at(5001, 30), (true, ms(20)), "ProbeRTT is due, and the estimate does not change");
        // ProbeRTT measured 25 ms.
        assert_eq!(at(5200, 25), (false, ms(20)));
        assert_eq!(at(10_001, 40), (false, ms(25)));
        assert_eq!(at(10_300, 25), (true, ms(25)));
        assert_eq!(at(10_400, 15), (false, ms(15)));
    }
}
