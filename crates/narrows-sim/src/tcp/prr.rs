//! Proportional rate reduction (RFC 6937, Linux `tcp_cwnd_reduction`).
//!
//! `recovery` starts PRR at each reduction, and `transmit` counts the segments that were sent. At each ACK in the
//! states CWR and Recovery, `sender` sets the window to the result of PRR.

/// The state of one window reduction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prr {
    /// Window at the start of the reduction, in segments. RFC 6937 uses the flight size instead, but Linux uses the
    /// window.
    prior_cwnd: u32,
    delivered: u32,
    /// Number of segments sent since the start of the reduction.
    pub(crate) out: u32,
}

impl Prr {
    pub(crate) fn start(&mut self, cwnd: u32) {
        *self = Prr { prior_cwnd: cwnd, delivered: 0, out: 0 };
    }

    /// Returns the window after an ACK. The ACK has delivered `delivered` segments, and `lost` segments were marked
    /// lost because of this ACK. Returns `None` if the ACK has delivered no segment.
    pub(crate) fn window(
        &mut self,
        delivered: u32,
        lost: u32,
        una_advanced: bool,
        in_flight: u32,
        ssthresh: u32,
    ) -> Option<u32> {
        if delivered == 0 || self.prior_cwnd == 0 {
            return None;
        }
        self.delivered += delivered;
        let send = if in_flight > ssthresh {
            let share = (ssthresh as u64 * self.delivered as u64).div_ceil(self.prior_cwnd as u64) as u32;
            share.saturating_sub(self.out)
        } else {
            // Slow-start reduction bound: the window grows by one additional segment if the ACK advances `una` and
            // shows no loss.
            let bound = self.delivered.saturating_sub(self.out).max(delivered);
            let bound = bound + (una_advanced && lost == 0) as u32;
            bound.min(ssthresh - in_flight)
        };
        // At the start of the recovery, always allow one retransmission.
        let send = if self.out == 0 { send.max(1) } else { send };
        Some(in_flight + send)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vector TV-S12: the window before the reduction (RecoverFS) is 20, ssthresh is 10, and each ACK delivers one
    /// segment. With these values, the sender sends one segment for every two ACKs.
    #[test]
    fn one_segment_is_sent_for_two_delivered_when_the_window_halves() {
        let mut prr = Prr::default();
        prr.start(20);
        let mut in_flight = 19;
        let mut sent = Vec::new();
        for _ in 0..10 {
            in_flight -= 1;
            let window = prr.window(1, 0, false, in_flight, 10).unwrap();
            let send = window - in_flight;
            prr.out += send;
            in_flight += send;
            sent.push(prr.out);
        }
        assert_eq!(sent[4], 3, "ceil(5 * 10 / 20)");
        assert_eq!(sent[9], 5);
    }
}
