//! Measures how much of its window a sender uses (Linux `tcp_cwnd_validate`, RFC 2861).
//!
//! `control` calls [`Usage::record`] after each transmission. The result determines whether a controller may grow the
//! window, and when an unused window shrinks.

use narrows_control::congestion::Window;
use narrows_control::units::{Span, Time};

#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    /// Whether the window limited the sender in the current round trip.
    limited: bool,
    /// Maximum number of segments in flight in this round trip (Linux max_packets_out). The round trip ends when
    /// `round_end` is acknowledged (Linux cwnd_usage_seq).
    max_out: u32,
    round_end: u32,
    /// Maximum number of segments in flight since the window last limited the sender (Linux snd_cwnd_used). `stamp` is
    /// the time since which the window has not been fully used (Linux snd_cwnd_stamp).
    used: u32,
    stamp: Time,
}

impl Usage {
    /// Records that `out` segments are in flight, and that `nxt` is the number of the next new segment. `limited` says
    /// whether the window stopped the transmission.
    #[inline]
    pub(super) fn record(&mut self, una: u32, nxt: u32, out: u32, limited: bool) {
        if una >= self.round_end || limited || (!self.limited && out > self.max_out) {
            self.limited = limited;
            self.max_out = out;
            self.round_end = nxt;
        }
    }

    /// Whether the window limits the flow. In slow start, the window already counts as a limit if more than half of it
    /// was in flight (Linux `tcp_is_cwnd_limited`).
    #[inline]
    pub(super) fn is_limited(&self, window: &Window) -> bool {
        self.limited || (window.cwnd < window.ssthresh && window.cwnd < 2 * self.max_out)
    }

    /// Starts a new measurement of the used part of the window. Called when the window limits the sender, and after the
    /// window has shrunk to its used part.
    #[inline]
    pub(super) fn restart(&mut self, now: Time) {
        (self.used, self.stamp) = (0, now);
    }

    /// Restarts the time after which an unused window shrinks. Called when the window has changed, and for each ACK
    /// that may grow the window.
    #[inline]
    pub(super) fn postpone(&mut self, now: Time) {
        self.stamp = now;
    }

    /// Records a transmission that the window did not limit. Returns whether the window has not been fully used for at
    /// least `rto`.
    #[inline]
    pub(super) fn is_stale(&mut self, now: Time, out: u32, rto: Span) -> bool {
        self.used = self.used.max(out);
        now.since(self.stamp) >= rto
    }

    /// Returns the used part of the window, in segments.
    pub(super) fn used(&self) -> u32 {
        self.used
    }
}
