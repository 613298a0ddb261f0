//! The congestion controller of a sender, its window, and the measurement of how much of the window is used.
//!
//! `sender` passes ACKs to the controller. `recovery` notifies it of congestion. `transmit` notifies it when the sender
//! restarts after an idle time.

use narrows_control::congestion::{Congestion, Controller, Recovery, Signal, State, Window};
use narrows_control::units::{Span, Time};

use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::usage::Usage;

/// Pacing ratios of Linux (tcp_pacing_ss_ratio, tcp_pacing_ca_ratio). The pacing rate is this ratio times cwnd / srtt.
const PACING_SLOW_START: f64 = 2.0;
const PACING_AVOIDANCE: f64 = 1.2;

pub(crate) struct Control {
    pub(crate) cc: Box<dyn Controller>,
    pub(crate) window: Window,
    /// Window of a new connection in segments. After a long idle time, the window is reduced to this value.
    initial_segments: u32,
    usage: Usage,
}

impl Control {
    pub(super) fn new(cc: Box<dyn Controller>, initial_segments: u32) -> Self {
        Control { cc, window: Window::new(initial_segments), initial_segments, usage: Usage::default() }
    }

    /// Whether the transport sets the window during recovery, and shrinks an unused window. If not, the controller does
    /// both.
    #[inline]
    pub(super) fn is_window_of_transport(&self) -> bool {
        self.cc.recovery() == Recovery::Transport
    }

    /// Whether the window limits the sender (Linux `tcp_is_cwnd_limited`).
    #[inline]
    pub(super) fn is_window_limited(&self) -> bool {
        self.usage.is_limited(&self.window)
    }

    /// Restarts the time after which an unused window shrinks. Called when the window has changed, and for each ACK
    /// that may grow the window.
    #[inline]
    pub(super) fn postpone_shrinking(&mut self, now: Time) {
        self.usage.postpone(now);
    }

    /// Notifies the controller of congestion.
    pub(super) fn signal(&mut self, now: Time, signal: Signal, again: bool, in_flight: u32, srtt: Span) {
        let mut event = Congestion::new(signal, now);
        event.in_flight = in_flight;
        event.srtt = srtt;
        event.again = again;
        self.cc.on_congestion(&event, &mut self.window);
        self.window.ssthresh = self.window.ssthresh.max(1);
    }

    /// Returns the slow-start threshold. If no reduction of the window is in progress, the result is at least three
    /// quarters of the window (Linux `tcp_current_ssthresh`).
    pub(super) fn current_ssthresh(&self, state: State) -> u32 {
        if matches!(state, State::Cwr | State::Recovery) {
            self.window.ssthresh
        } else {
            self.kept_ssthresh()
        }
    }

    fn kept_ssthresh(&self) -> u32 {
        self.window.ssthresh.max(self.window.cwnd / 2 + self.window.cwnd / 4)
    }

    /// Records whether the window limited the last transmission. If the window has not limited the sender for one
    /// retransmission timeout, shrinks the window (Linux `tcp_cwnd_validate`).
    pub(super) fn validate(&mut self, now: Time, limited: bool, state: State, board: &Scoreboard, rtt: &Rtt) {
        let out = board.packets_out();
        self.usage.record(board.una, board.nxt(), out, limited);
        if self.is_window_limited() {
            self.usage.restart(now);
            return;
        }
        if self.usage.is_stale(now, out, rtt.rto()) && self.is_window_of_transport() {
            self.shrink_unused(now, state);
        }
    }

    /// Reduces the window to the mean of its size and its used part (RFC 2861 section 3.1, as in Linux
    /// `tcp_cwnd_application_limited`).
    fn shrink_unused(&mut self, now: Time, state: State) {
        let used = self.usage.used().max(self.initial_segments);
        if state == State::Open && used < self.window.cwnd {
            self.window.ssthresh = self.kept_ssthresh();
            self.window.cwnd = (self.window.cwnd + used) / 2;
        }
        self.usage.restart(now);
    }

    /// Adapts the window before the first transmission after an idle time. First applies RFC 2861, as in Linux, and
    /// then the controller's own rule.
    pub(super) fn restart_after_idle(&mut self, now: Time, idle: Span, rto: Span, app_limited: bool) {
        if self.is_window_of_transport() && idle > rto {
            let restart = self.window.cwnd.min(self.initial_segments);
            self.usage.restart(now);
            self.window.ssthresh = self.kept_ssthresh();
            let mut left = idle - rto;
            while left > Span::ZERO && self.window.cwnd > restart {
                self.window.cwnd /= 2;
                left -= rto;
            }
            self.window.cwnd = self.window.cwnd.max(restart);
        }
        self.cc.on_restart(now, idle, app_limited, &mut self.window);
    }

    /// Returns the ratio of the pacing rate to cwnd / srtt (Linux `tcp_update_pacing_rate`).
    pub(super) fn pacing_ratio(&self) -> f64 {
        if self.window.cwnd < self.window.ssthresh / 2 { PACING_SLOW_START } else { PACING_AVOIDANCE }
    }
}
