//! Estimates the RTT and the retransmission timeout (RFC 6298, with Linux's minimum of 200 ms).
//!
//! The handshake, and each ACK with an RTT sample, update the estimate. Each timeout doubles the retransmission
//! timeout.

use narrows_control::units::Span;

/// Linux TCP_RTO_MIN.
pub(crate) const RTO_MIN: Span = Span::from_millis(200);
/// Linux TCP_RTO_MAX.
const RTO_MAX: Span = Span::from_secs(120);
/// Timeout before the first RTT sample. It is also the timeout of the first SYN (RFC 6298, 2.1).
pub(crate) const RTO_INITIAL: Span = Span::from_secs(1);

/// The smoothed RTT, its mean deviation, and the timeout.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    /// Zero before the first sample.
    pub(crate) srtt: Span,
    pub(crate) rttvar: Span,
    /// The least sample, or [`Span::MAX`] before the first sample. The simulator keeps the minimum for the whole
    /// connection. Linux discards a minimum that is older than 300 s.
    pub(crate) min: Span,
    pub(crate) last: Span,
    backoff: u32,
}

impl Rtt {
    pub(crate) fn new() -> Self {
        Rtt { srtt: Span::ZERO, rttvar: Span::ZERO, min: Span::MAX, last: Span::ZERO, backoff: 0 }
    }

    /// Updates srtt and rttvar (RFC 6298, 2.2 and 2.3). There are two deviations from Linux (`tcp_rtt_estimator`).
    /// Linux lowers rttvar at most once per RTT, but here each sample can lower it. Linux keeps 4 * rttvar at 200 ms or
    /// more, but here [`rto`](Rtt::rto) applies this minimum.
    pub(crate) fn sample(&mut self, rtt: Span) {
        self.last = rtt;
        self.min = self.min.min(rtt);
        if self.srtt == Span::ZERO {
            self.srtt = rtt;
            self.rttvar = rtt.scale(1, 2);
            return;
        }
        let (r, s) = (rtt.as_nanos(), self.srtt.as_nanos());
        let error = Span::from_nanos(r.abs_diff(s));
        self.rttvar = self.rttvar.scale(3, 4) + error.scale(1, 4);
        self.srtt = self.srtt.scale(7, 8) + rtt.scale(1, 8);
    }

    /// Returns the timeout with backoff. As in Linux, the timeout before the backoff is srtt + max(200 ms, 4 *
    /// rttvar).
    pub(crate) fn rto(&self) -> Span {
        let base = if self.srtt == Span::ZERO {
            RTO_INITIAL
        } else {
            self.srtt + RTO_MIN.max(self.rttvar.scale(4, 1))
        };
        base.scale(1 << self.backoff.min(10), 1).min(RTO_MAX)
    }

    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Ends the backoff. Called after an ACK of new data.
    pub(crate) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    pub(crate) fn backoffs(&self) -> u32 {
        self.backoff
    }
}
