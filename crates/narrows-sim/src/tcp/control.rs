//! The congestion controller of a sender, its window, and the use of the window.
//!
//! `sender` passes ACKs to the controller, `recovery` notifies it of congestion, and `transmit` notifies the controller
//! when the sender restarts after an idle time.

use narrows_control::congestion::{Congestion, Controller, Recovery, Signal, State, Window};
use narrows_control::units::{Span, Time};

use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::usage::Usage;

/// Linux pacing ratios (tcp_pacing_ss_ratio, tcp_pacing_ca_ratio): the pacing rate divided by cwnd per srtt.
const PACING_SLOW_START: f64 = 2.0;
const PACING_AVOIDANCE: f64 = 1.2;

pub(crate) struct Control {
    pub(crate) cc: Box<dyn Controller>,
    pub(crate) window: Window,
    /// Window of a new connection, and of a connection after a long idle time, in segments.
    initial_segments: u32,
    usage: Usage,
}

impl Control {
    pub(super) fn new(cc: Box<dyn Controller>, initial_segments: u32) -> Self {
        Control { cc, window: Window::new(initial_segments), initial_segments, usage: Usage::default() }
    }

    /// Whether the transport, not the controller, sets the window during recovery and shrinks an unused window.
    #[inline]
    pub(super) fn is_window_of_transport(&self) -> bool {
        self.cc.recovery() == Recovery::Transport
    }

    /// Whether the window limits the sender (Linux `tcp_is_cwnd_limited`).
    #[inline]
    pub(super) fn is_window_limited(&self) -> bool {
        self.usage.is_limited(&self.window)
    }

    /// Restarts the time after which an unused window shrinks. This function is called when the window has changed, and
    /// for each ACK that may grow the window.
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

    /// Returns the slow-start threshold. Outside a reduction, the threshold is at least three quarters of the window
    /// (Linux `tcp_current_ssthresh`).
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

    /// Records whether the window limited the transmission that has just ended. Shrinks a window that was unused for a
    /// retransmission timeout (Linux `tcp_cwnd_validate`).
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

    /// Shrinks the window half-way to its used part (RFC 2861 section 3.1, as in Linux
    /// `tcp_cwnd_application_limited`).
    fn shrink_unused(&mut self, now: Time, state: State) {
        let used = self.usage.used().max(self.initial_segments);
        if state == State::Open && used < self.window.cwnd {
            self.window.ssthresh = self.kept_ssthresh();
            self.window.cwnd = (self.window.cwnd + used) / 2;
        }
        self.usage.restart(now);
    }

    /// Adapts the window before the first transmission after an idle time, by RFC 2861 (as in Linux) and by the
    /// controller's own rule.
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

    /// Returns the pacing rate in windows per srtt (Linux `tcp_update_pacing_rate`).
    pub(super) fn pacing_ratio(&self) -> f64 {
        if self.window.cwnd < self.window.ssthresh / 2 { PACING_SLOW_START } else { PACING_AVOIDANCE }
    }
}
