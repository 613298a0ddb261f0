//! The sender's timer. As in Linux, the retransmission timeout, the tail loss probe and RACK's reordering
//! timer share one timer.
//!
//! The flow's timer event calls `on_timer`. ACKs and transmissions set the timer by `arm`.

use narrows_control::congestion::State;
use narrows_control::units::{Span, Time};

use super::Io;
use super::sender::{Phase, Progress, Sender};
use super::timer::Timer;

/// SYNs before the sender gives up (Linux tcp_syn_retries 6).
const SYN_TRIES: u32 = 7;
/// Number of consecutive timeouts after which the sender gives up (Linux tcp_retries2 15).
const RETRIES: u32 = 15;
/// RFC 8985 section 7.2: worst-case delay of an ACK. Linux uses its RTO_MIN.
const PROBE_DELAYED_ACK: Span = super::rtt::RTO_MIN;
/// Additional wait of probes and of RACK's timer, so that ACKs arrive first: Linux TCP_TIMEOUT_MIN_US (6.1:
/// `tcp_schedule_loss_probe`, `tcp_rack_mark_lost`). Linux then rounds up to a jiffy; the simulator does not.
const SLACK: Span = Span::from_millis(2);

/// Shortest wait. In Linux the shortest wait is a microsecond, rounded up to a jiffy.
const MIN_WAIT: Span = Span::from_millis(1);

impl Sender {
    /// Time at which the sender's timer expires.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.timer.at()
    }

    /// Whether the timer is set for a tail loss probe.
    pub(super) fn has_pending_probe(&self) -> bool {
        matches!(self.timer, Timer::Probe(_))
    }

    /// Sets the timer after progress or a transmission (Linux `tcp_set_xmit_timer`, `tcp_rearm_rto`).
    pub(super) fn arm(&mut self, now: Time) {
        if let Timer::Reordering(at) = self.timer
            && at > now
            && self.board.packets_out() > 0
        {
            return;
        }
        if self.board.packets_out() == 0 {
            self.timer = Timer::Off;
            return;
        }
        let rto = now + self.rtt.rto();
        let may_probe = matches!(self.state, State::Open | State::Cwr)
            && self.board.sacked_out == 0
            && self.probe.is_none()
            && self.rtt.srtt > Span::ZERO;
        self.timer = if may_probe {
            let mut wait = self.rtt.srtt.scale(2, 1);
            wait += if self.board.packets_out() == 1 { PROBE_DELAYED_ACK } else { SLACK };
            Timer::Probe((now + wait).min(rto))
        } else {
            Timer::Retransmit(rto)
        };
    }

    /// Handles the timer. The caller has checked that the timer has expired.
    pub(crate) fn on_timer(&mut self, io: &mut Io<'_>) {
        match std::mem::replace(&mut self.timer, Timer::Off) {
            Timer::Off => {}
            Timer::Retransmit(_) if self.phase == Phase::SynSent => {
                if self.syn_tries() >= SYN_TRIES {
                    self.phase = Phase::Closed;
                } else {
                    self.connect(io);
                }
            }
            Timer::Retransmit(_) => self.on_timeout(io),
            Timer::Probe(_) => self.send_probe(io),
            Timer::Reordering(_) => self.on_reordering_timeout(io),
        }
    }

    /// Sets or clears RACK's timer. It replaces the other timers, but expires no later than a retransmission timeout.
    pub(super) fn arm_reordering(&mut self, now: Time, due: Option<Time>) {
        self.timer.set_reordering(due.map(|at| (at + SLACK).min(now + self.rtt.rto())));
    }

    /// Linux `tcp_rack_reo_timeout`: retransmits the lost segments. New data waits for an ACK.
    fn on_reordering_timeout(&mut self, io: &mut Io<'_>) {
        let in_flight = self.board.in_flight();
        self.find_losses(io.now, &mut Progress::default());
        if self.board.in_flight() != in_flight {
            if self.state != State::Recovery {
                self.enter_recovery_by_timer(io.now);
            }
            self.retransmit_lost(io);
        }
        if self.timer == Timer::Off {
            self.arm_since_first(io.now);
        }
    }

    /// Sets the retransmission timer, counted from the transmission of the first segment (Linux `tcp_rearm_rto` after
    /// RACK's timer).
    fn arm_since_first(&mut self, now: Time) {
        if let Some(first) = self.board.get(self.board.una) {
            self.timer = Timer::Retransmit((first.sent + self.rtt.rto()).max(now + MIN_WAIT));
        }
    }

    fn on_timeout(&mut self, io: &mut Io<'_>) {
        if self.board.packets_out() == 0 {
            return;
        }
        if self.rtt.backoffs() >= RETRIES {
            self.phase = Phase::Closed;
            return;
        }
        self.counters.timeouts += 1;
        self.enter_loss(io.now);
        self.rtt.back_off();
        self.retransmit_first(io);
        self.timer = Timer::Retransmit(io.now + self.rtt.rto());
    }

    /// RFC 8985 section 7.3: sends new data if available, otherwise retransmits the last segment.
    fn send_probe(&mut self, io: &mut Io<'_>) {
        if self.board.packets_out() == 0 {
            return;
        }
        let sent_new = self.transmit_one_new(io);
        if !sent_new {
            let last = self.board.nxt() - 1;
            self.retransmit(io, last);
        }
        self.probe = Some((self.board.nxt(), !sent_new));
        self.timer = Timer::Retransmit(io.now + self.rtt.rto());
    }
}
