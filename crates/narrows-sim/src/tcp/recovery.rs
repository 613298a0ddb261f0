//! Loss recovery: the timer, and the congestion states with their transitions (Linux `tcp_fastretrans_alert()` and the
//! functions that it calls; RFC 6675).
//!
//! If an ACK may signal congestion or the end of a recovery, the sender calls `update_state`. It then updates the
//! window. If the ACK restarts the timer, the sender finally calls `arm`. When the timer expires, `transmit` calls
//! `enter_loss` or `enter_by_timer`.

use narrows_control::congestion::{INFINITE_SSTHRESH, Signal, State};
use narrows_control::units::{Span, Time};

use super::before;
use super::control::Control;
use super::flight::Flight;
use super::prr::Prr;
use super::scoreboard::Scoreboard;
use super::sender::Progress;
use super::timer::Timer;
use super::undo::{Rexmit, Undo};

/// Worst-case delay of an ACK (RFC 8985 section 7.2). Linux uses its RTO_MIN.
const PROBE_DELAYED_ACK: Span = super::rtt::RTO_MIN;
/// Time that is added to the timers of probes and of RACK, so that ACKs can arrive before the timer expires. This is
/// TCP_TIMEOUT_MIN_US of Linux (6.1: `tcp_schedule_loss_probe`, `tcp_rack_mark_lost`). Linux rounds the resulting time
/// up to a jiffy. The simulator does not.
const SLACK: Span = Span::from_millis(2);
/// Shortest time until the timer expires. In Linux, this time is a microsecond, rounded up to a jiffy.
const MIN_WAIT: Span = Span::from_millis(1);

/// The state of loss recovery.
pub(crate) struct LossRecovery {
    pub(crate) state: State,
    /// The scoreboard's `nxt` when the current reduction, recovery or loss state began.
    pub(super) high_seq: u32,
    /// Whether F-RTO is testing whether the timeout was spurious.
    pub(super) frto: bool,
    /// The outstanding tail loss probe: the scoreboard's `nxt` after the probe was sent, and whether the probe was a
    /// retransmission.
    pub(super) probe: Option<(u32, bool)>,
    pub(super) timer: Timer,
    pub(super) prr: Prr,
    pub(super) undo: Undo,
    /// Whether the next new segment must carry the CWR flag, because the window was reduced (RFC 3168).
    pub(super) send_cwr: bool,
}

impl LossRecovery {
    pub(super) fn new() -> Self {
        LossRecovery {
            state: State::Open,
            high_seq: 0,
            frto: false,
            probe: None,
            timer: Timer::Off,
            prr: Prr::default(),
            undo: Undo::default(),
            send_cwr: false,
        }
    }

    /// Returns the time at which the timer expires.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.timer.at()
    }

    /// Whether the timer is set for a tail loss probe.
    pub(super) fn has_pending_probe(&self) -> bool {
        matches!(self.timer, Timer::Probe(_))
    }

    /// Whether PRR currently sets the window.
    #[inline]
    pub(super) fn uses_prr(&self, control: &Control) -> bool {
        matches!(self.state, State::Cwr | State::Recovery) && control.is_window_of_transport()
    }

    /// Updates the congestion state after an ACK that may signal congestion or the end of a recovery.
    pub(super) fn update_state(
        &mut self,
        now: Time,
        progress: &Progress,
        flight: &mut Flight,
        control: &mut Control,
    ) -> Rexmit {
        if progress.ece {
            // If an ACK has an ECN echo, the current reduction must not be undone.
            self.undo.prior_ssthresh = 0;
        }
        if self.state == State::Open {
            self.undo.retransmitted_at = None;
        } else if flight.board.una >= self.high_seq {
            match self.state {
                State::Cwr if flight.board.una > self.high_seq => self.end_reduction(now, control),
                State::Recovery => {
                    self.try_undo(now, progress.ts_echo, flight, control);
                    if self.state == State::Recovery {
                        flight.rack.on_recovered();
                        self.end_reduction(now, control);
                    } else if control.is_window_of_transport() {
                        // With SACK, Linux's tcp_try_undo_recovery() returns false, so Linux also calls
                        // tcp_end_cwnd_reduction(). This call does not change the window, because the undo has cleared
                        // the marker. Its only effect is that the controller receives CA_EVENT_COMPLETE_CWR.
                        control.cc.on_recovered(now, &mut control.window);
                        control.window.cwnd = control.window.cwnd.max(1);
                    }
                }
                _ => {}
            }
        }
        match self.state {
            State::Recovery => {
                if progress.una_advanced
                    && self.is_of_original(progress.ts_echo)
                    && self.undo.marker.is_some()
                {
                    // This partial ACK is for an original transmission. The segment was therefore not lost, but the
                    // network has reordered packets (Linux tcp_try_undo_partial).
                    flight.rack.reordering_seen = true;
                    if flight.board.retrans_out > 0 {
                        return Rexmit::Nothing;
                    }
                    self.restore(now, true, flight, control);
                }
                self.try_undo_by_dsack(now, flight, control);
                self.find_losses(now, flight, control);
                if self.state == State::Recovery {
                    return Rexmit::Lost;
                }
            }
            State::Loss => {
                let rexmit = self.process_loss(now, progress, flight, control);
                let retransmission_lost = self.find_losses(now, flight, control);
                if self.state != State::Open && !retransmission_lost {
                    return rexmit;
                }
                // A lost retransmission is a new congestion event.
            }
            _ => {
                self.try_undo_by_dsack(now, flight, control);
                self.find_losses(now, flight, control);
            }
        }
        if flight.board.lost_out > 0 && self.state != State::Recovery {
            self.enter_recovery(now, progress.ece, flight, control);
        } else {
            self.try_to_open(now, progress.ece, flight, control);
        }
        Rexmit::Lost
    }

    /// Runs loss detection and sets RACK's timer. Returns whether a retransmission was lost.
    pub(super) fn find_losses(&mut self, now: Time, flight: &mut Flight, control: &mut Control) -> bool {
        let found = flight.find_losses(now, self.state, control);
        // RACK's timer replaces the other timers. It expires at most one retransmission timeout from now.
        self.timer.set_reordering(found.timeout.map(|at| (at + SLACK).min(now + flight.rtt.rto())));
        found.retransmission
    }

    /// Updates the state if it is Open, Disorder or CWR. An ECN echo changes the state to CWR (Linux
    /// `tcp_try_to_open`).
    fn try_to_open(&mut self, now: Time, ece: bool, flight: &Flight, control: &mut Control) {
        if !flight.board.has_retransmissions() {
            self.undo.retransmitted_at = None;
        }
        if ece && self.state != State::Cwr {
            self.enter_cwr(now, flight, control);
        }
        if self.state != State::Cwr {
            self.update_open_state(&flight.board);
        }
    }

    /// Sets the state to Disorder if segments are SACKed, lost or retransmitted. Otherwise sets it to Open (Linux
    /// `tcp_try_keep_open`).
    fn update_open_state(&mut self, board: &Scoreboard) {
        let is_disordered = board.sacked_out + board.lost_out > 0 || board.has_retransmissions();
        let state = if is_disordered { State::Disorder } else { State::Open };
        if state != self.state {
            self.state = state;
            self.high_seq = board.nxt();
        }
    }

    fn begin_undo(&mut self, board: &Scoreboard) {
        self.undo.marker = Some(board.una);
        self.undo.outstanding = (board.retrans_out > 0).then_some(board.retrans_out);
    }

    fn enter_recovery(&mut self, now: Time, ece: bool, flight: &Flight, control: &mut Control) {
        let is_reducing = self.state == State::Cwr;
        self.begin_undo(&flight.board);
        if !is_reducing {
            self.undo.prior_ssthresh = if ece { 0 } else { control.current_ssthresh(self.state) };
            self.begin_reduction(now, Signal::Loss, flight, control);
        }
        self.state = State::Recovery;
    }

    /// Enters recovery because RACK's timer has found a loss. Also sets the window by PRR. Without an ACK, nothing else
    /// would set the window (Linux `tcp_rack_reo_timeout`).
    pub(super) fn enter_by_timer(&mut self, now: Time, flight: &Flight, control: &mut Control) {
        self.enter_recovery(now, false, flight, control);
        if control.is_window_of_transport() {
            let in_flight = flight.board.in_flight();
            if let Some(cwnd) = self.prr.window(1, 0, false, in_flight, control.window.ssthresh) {
                control.window.cwnd = cwnd.max(1);
            }
        }
    }

    fn enter_cwr(&mut self, now: Time, flight: &Flight, control: &mut Control) {
        self.undo.prior_ssthresh = 0;
        self.undo.marker = None;
        self.begin_reduction(now, Signal::Ecn, flight, control);
        self.state = State::Cwr;
    }

    /// Begins a reduction of the window, and notifies the controller (Linux `tcp_init_cwnd_reduction`).
    fn begin_reduction(&mut self, now: Time, signal: Signal, flight: &Flight, control: &mut Control) {
        self.high_seq = flight.board.nxt();
        self.probe = None;
        self.undo.prior_cwnd = control.window.cwnd;
        self.prr.start(control.window.cwnd);
        self.send_cwr = true;
        control.signal(now, signal, false, flight.board.in_flight(), flight.rtt.srtt);
    }

    /// Ends a reduction of the window, and notifies the controller. If the transport sets the window, the window
    /// becomes the slow-start threshold (Linux `tcp_end_cwnd_reduction`).
    fn end_reduction(&mut self, now: Time, control: &mut Control) {
        if control.is_window_of_transport() && control.window.ssthresh < INFINITE_SSTHRESH {
            control.window.cwnd = control.window.ssthresh.max(1);
        }
        control.postpone_shrinking(now);
        // The undo marker stays set, because DSACKs of spurious retransmissions arrive one RTT later.
        self.state = State::Open;
        control.cc.on_recovered(now, &mut control.window);
    }

    /// Handles a retransmission timeout (Linux `tcp_enter_loss`).
    pub(super) fn enter_loss(&mut self, now: Time, flight: &mut Flight, control: &mut Control) {
        let fresh = matches!(self.state, State::Open | State::Disorder);
        let repeated =
            self.state == State::Loss && flight.rtt.backoffs() > 0 && flight.board.una < self.high_seq;
        flight.mark_all_lost(now, control);
        let reduced = matches!(self.state, State::Cwr | State::Recovery) || repeated;
        if reduced && flight.board.una < self.high_seq {
            // The controller is notified of each timeout, but the threshold is reduced only once per window.
            let ssthresh = control.window.ssthresh;
            control.signal(now, Signal::Timeout, true, flight.board.in_flight(), flight.rtt.srtt);
            control.window.ssthresh = ssthresh;
        } else {
            self.undo.prior_ssthresh = control.current_ssthresh(self.state);
            self.undo.prior_cwnd = control.window.cwnd;
            control.signal(now, Signal::Timeout, false, flight.board.in_flight(), flight.rtt.srtt);
            self.begin_undo(&flight.board);
        }
        control.window.cwnd = flight.board.in_flight() + 1;
        control.postpone_shrinking(now);
        self.state = State::Loss;
        self.high_seq = flight.board.nxt();
        self.frto = fresh || repeated;
        self.probe = None;
        self.send_cwr = true;
    }

    /// Handles an ACK in the Loss state (Linux `tcp_process_loss`). If the timeout was spurious, undoes it (F-RTO, RFC
    /// 5682; Eifel). If all losses are repaired, leaves the Loss state.
    fn process_loss(
        &mut self,
        now: Time,
        progress: &Progress,
        flight: &mut Flight,
        control: &mut Control,
    ) -> Rexmit {
        let recovered = flight.board.una >= self.high_seq;
        if progress.una_advanced && self.may_undo(progress.ts_echo) {
            self.restore(now, true, flight, control);
            return Rexmit::Lost;
        }
        if self.frto {
            if progress.original_sacked {
                self.restore(now, true, flight, control);
                return Rexmit::Lost;
            }
            if flight.board.nxt() > self.high_seq {
                if progress.data_sacked || !progress.una_advanced {
                    self.frto = false;
                }
            } else if progress.una_advanced && !recovered {
                self.high_seq = flight.board.nxt();
                return Rexmit::New;
            }
        }
        if recovered {
            self.state = State::Open;
            flight.rack.on_recovered();
            control.cc.on_recovered(now, &mut control.window);
        }
        Rexmit::Lost
    }

    fn may_undo(&self, ts_echo: u32) -> bool {
        self.undo.marker.is_some() && (self.undo.outstanding == Some(0) || self.is_of_original(ts_echo))
    }

    fn try_undo(&mut self, now: Time, ts_echo: u32, flight: &mut Flight, control: &mut Control) {
        if self.may_undo(ts_echo) {
            self.restore(now, false, flight, control);
        }
    }

    /// Undoes the reduction if DSACKs have reported that all retransmissions were duplicates.
    fn try_undo_by_dsack(&mut self, now: Time, flight: &mut Flight, control: &mut Control) {
        if self.undo.marker.is_some() && self.undo.outstanding == Some(0) {
            self.restore(now, false, flight, control);
        }
    }

    /// Restores the window to its size before the reduction (Linux `tcp_undo_cwnd_reduction`).
    fn restore(&mut self, now: Time, unmark: bool, flight: &mut Flight, control: &mut Control) {
        if unmark {
            flight.board.unmark_lost();
        }
        if self.undo.prior_ssthresh > 0 {
            control.window.cwnd = control.window.cwnd.max(self.undo.prior_cwnd);
            if self.undo.prior_ssthresh > control.window.ssthresh {
                control.window.ssthresh = self.undo.prior_ssthresh;
                self.send_cwr = false;
            }
            control.cc.on_undo(now, &mut control.window);
        }
        self.undo.marker = None;
        self.frto = false;
        control.postpone_shrinking(now);
        flight.rack.restart_scan();
        self.state = State::Open;
    }

    /// Handles the ACK of a tail loss probe (RFC 8985 section 7.4; Linux `tcp_process_tlp_ack`).
    pub(super) fn on_probe_ack(
        &mut self,
        now: Time,
        ack: u32,
        progress: &Progress,
        flight: &Flight,
        control: &mut Control,
    ) {
        let Some((end, retransmitted)) = self.probe else { return };
        if ack < end {
            return;
        }
        if !retransmitted || progress.dsack {
            self.probe = None;
        } else if ack > end {
            // The probe has repaired a loss. The window is reduced once, but the sender does not enter Recovery.
            self.probe = None;
            if matches!(self.state, State::Open | State::Disorder) {
                self.undo.marker = None;
                self.begin_reduction(now, Signal::Probe, flight, control);
                self.state = State::Cwr;
                self.end_reduction(now, control);
                self.update_open_state(&flight.board);
            }
        } else if !progress.una_advanced && !progress.data_sacked {
            self.probe = None;
        }
    }

    /// Whether the ACK is for an original transmission that was considered lost. This is the case if its timestamp echo
    /// is older than the first retransmission (Eifel), or if nothing was retransmitted (Linux `tcp_packet_delayed`).
    fn is_of_original(&self, ts_echo: u32) -> bool {
        self.undo.retransmitted_at.is_none_or(|at| ts_echo != 0 && before(ts_echo, at))
    }

    /// Sets the timer after an ACK with progress (Linux `tcp_set_xmit_timer`).
    pub(super) fn arm(&mut self, now: Time, flight: &Flight) {
        self.set_timer(now, flight, now + flight.rtt.rto());
    }

    /// Sets the timer after a transmission. A probe is sent no later than the timeout of the first segment, unless this
    /// time has passed. If the state does not permit a probe, this function does not change a retransmission timer that
    /// is already running (Linux `tcp_event_new_data_sent`, `tcp_write_xmit`).
    pub(super) fn arm_after_transmission(&mut self, now: Time, flight: &Flight) {
        if self.timer == Timer::Off || self.has_pending_probe() || self.may_probe(flight) {
            let latest = timeout_of_first(flight).filter(|&at| at > now);
            self.set_timer(now, flight, latest.unwrap_or(Time::NEVER));
        }
    }

    /// Sets the timer for a probe. The timer expires no later than at `latest`. If the state does not permit a probe,
    /// sets the timer for a retransmission (Linux `tcp_schedule_loss_probe`).
    fn set_timer(&mut self, now: Time, flight: &Flight, latest: Time) {
        let out = flight.board.packets_out();
        if let Timer::Reordering(at) = self.timer
            && at > now
            && out > 0
        {
            return;
        }
        if out == 0 {
            self.timer = Timer::Off;
        } else if self.may_probe(flight) {
            let mut wait = flight.rtt.srtt.scale(2, 1);
            wait += if out == 1 { PROBE_DELAYED_ACK } else { SLACK };
            self.timer = Timer::Probe((now + wait).min(latest));
        } else if self.has_pending_probe() {
            self.arm_since_first(now, flight);
        } else {
            self.timer = Timer::Retransmit(now + flight.rtt.rto());
        }
    }

    /// Whether the timer may be set for a probe. An earlier probe that is still outstanding does not prevent this. When
    /// the timer then expires, no second probe is sent. Instead, the retransmission timer is set, and its timeout is
    /// counted from the first segment.
    fn may_probe(&self, flight: &Flight) -> bool {
        matches!(self.state, State::Open | State::Cwr)
            && flight.board.sacked_out == 0
            && flight.rtt.srtt > Span::ZERO
    }

    /// Sets the retransmission timer. The timeout begins at the last transmission of the first unacknowledged segment.
    /// Called after the timer of RACK or of a probe has expired, or was replaced (Linux `tcp_rearm_rto`).
    pub(super) fn arm_since_first(&mut self, now: Time, flight: &Flight) {
        if let Some(timeout) = timeout_of_first(flight) {
            self.timer = Timer::Retransmit(timeout.max(now + MIN_WAIT));
        }
    }
}

/// Returns the time at which the first unacknowledged segment times out, counted from its last transmission (Linux
/// `tcp_rto_delta_us`). `None` if no segment is unacknowledged.
fn timeout_of_first(flight: &Flight) -> Option<Time> {
    flight.board.get(flight.board.una).map(|first| first.sent + flight.rtt.rto())
}
