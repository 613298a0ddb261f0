//! Congestion states and their transitions (Linux `tcp_fastretrans_alert()` and its callees; RFC 6675).
//!
//! Each ACK calls `update_state` before the window is updated, and `send_after_ack` at its end. The timers call `enter_loss`
//! and `enter_recovery_by_timer`.

use narrows_control::congestion::{Congestion, INFINITE_SSTHRESH, Recovery, Signal, State};
use narrows_control::units::Time;

use super::Io;
use super::sender::{Progress, Sender};
use super::undo::Rexmit;

impl Sender {
    /// Updates the congestion state after an ACK that may signal congestion or the end of a recovery.
    pub(super) fn update_state(&mut self, now: Time, progress: &mut Progress) -> Rexmit {
        if progress.ece {
            // A reduction by an ECN echo must not be undone.
            self.undo.prior_ssthresh = 0;
        }
        if self.state == State::Open {
            self.undo.retransmitted_at = None;
        } else if self.board.una >= self.high_seq {
            match self.state {
                State::Cwr if self.board.una > self.high_seq => self.end_reduction(now, State::Open),
                State::Recovery => {
                    self.try_undo(now, progress.ts_echo, State::Open);
                    if self.state == State::Recovery {
                        self.rack.on_recovered();
                        self.end_reduction(now, State::Open);
                    } else if self.cc.recovery() == Recovery::Transport {
                        // With SACK, Linux's tcp_try_undo_recovery() returns false, and tcp_end_cwnd_reduction() follows. As the
                        // undo has cleared the marker, the window stays, but the controller gets CA_EVENT_COMPLETE_CWR.
                        self.cc.on_recovered(now, &mut self.window);
                        self.window.cwnd = self.window.cwnd.max(1);
                    }
                }
                _ => {}
            }
        }
        match self.state {
            State::Recovery => {
                if progress.una_advanced
                    && self.ack_is_of_original(progress.ts_echo)
                    && self.undo.marker.is_some()
                {
                    // A partial ACK of an original transmission: the network reordered, and the segment was not lost (Linux
                    // tcp_try_undo_partial).
                    self.rack.reordering_seen = true;
                    if self.board.retrans_out > 0 {
                        return Rexmit::Nothing;
                    }
                    self.restore(now, true, State::Open);
                }
                self.try_undo_by_dsack(now);
                self.find_losses(now, progress);
                if self.state == State::Recovery {
                    return Rexmit::Lost;
                }
            }
            State::Loss => {
                let rexmit = self.process_loss(now, progress);
                self.find_losses(now, progress);
                if self.state != State::Open && !progress.retransmission_lost {
                    return rexmit;
                }
                // A lost retransmission is a new congestion event.
            }
            _ => {
                self.try_undo_by_dsack(now);
                self.find_losses(now, progress);
            }
        }
        if self.board.lost_out > 0 && self.state != State::Recovery {
            self.enter_recovery(now, progress.ece);
        } else {
            self.try_to_open(now, progress.ece);
        }
        Rexmit::Lost
    }

    /// Runs RACK's loss detection and sets its timer.
    pub(super) fn find_losses(&mut self, now: Time, progress: &mut Progress) {
        let retrans_before = self.board.retrans_out;
        let found = self.rack.detect(now, self.state, &mut self.board, &self.rtt, |segment| {
            self.cc.on_lost(&self.sampler.record_loss(now, segment), &self.window);
        });
        progress.retransmission_lost |= self.board.retrans_out < retrans_before;
        self.arm_reordering(now, found.timeout);
    }

    /// Linux `tcp_try_to_open`.
    fn try_to_open(&mut self, now: Time, ece: bool) {
        if !self.board.has_retransmissions() {
            self.undo.retransmitted_at = None;
        }
        if ece && self.state != State::Cwr {
            self.enter_cwr(now);
        }
        if self.state != State::Cwr {
            self.update_open_state();
        }
    }

    /// Linux `tcp_try_keep_open`: Disorder while segments are SACKed, lost or retransmitted, otherwise Open.
    fn update_open_state(&mut self) {
        let is_disordered =
            self.board.sacked_out + self.board.lost_out > 0 || self.board.has_retransmissions();
        let state = if is_disordered { State::Disorder } else { State::Open };
        if state != self.state {
            self.state = state;
            self.high_seq = self.board.nxt();
        }
    }

    fn signal(&mut self, now: Time, signal: Signal) {
        self.notify_controller(now, signal, false);
    }

    fn notify_controller(&mut self, now: Time, signal: Signal, again: bool) {
        let in_flight = self.board.in_flight();
        let mut event = Congestion::new(signal, now);
        event.in_flight = in_flight;
        event.srtt = self.rtt.srtt;
        event.again = again;
        self.cc.on_congestion(&event, &mut self.window);
        self.window.ssthresh = self.window.ssthresh.max(1);
    }

    /// Linux `tcp_current_ssthresh`: outside a reduction the threshold is at least three quarters of the window.
    fn current_ssthresh(&self) -> u32 {
        if matches!(self.state, State::Cwr | State::Recovery) {
            self.window.ssthresh
        } else {
            self.window.ssthresh.max(self.window.cwnd / 2 + self.window.cwnd / 4)
        }
    }

    fn begin_undo(&mut self) {
        self.undo.marker = Some(self.board.una);
        self.undo.outstanding = (self.board.retrans_out > 0).then_some(self.board.retrans_out);
    }

    fn enter_recovery(&mut self, now: Time, ece: bool) {
        let is_reducing = self.state == State::Cwr;
        self.begin_undo();
        if !is_reducing {
            self.undo.prior_ssthresh = if ece { 0 } else { self.current_ssthresh() };
            self.begin_reduction(now, Signal::Loss);
        }
        self.state = State::Recovery;
    }

    /// Enters recovery after RACK's timer has found a loss. There is no ACK for which PRR would set the window (Linux
    /// `tcp_rack_reo_timeout`).
    pub(super) fn enter_recovery_by_timer(&mut self, now: Time) {
        self.enter_recovery(now, false);
        if self.cc.recovery() == Recovery::Transport {
            let in_flight = self.board.in_flight();
            if let Some(cwnd) = self.prr.window(1, 0, false, in_flight, self.window.ssthresh) {
                self.window.cwnd = cwnd.max(1);
            }
        }
    }

    fn enter_cwr(&mut self, now: Time) {
        self.undo.prior_ssthresh = 0;
        self.undo.marker = None;
        self.begin_reduction(now, Signal::Ecn);
        self.state = State::Cwr;
    }

    /// Linux `tcp_init_cwnd_reduction`.
    fn begin_reduction(&mut self, now: Time, signal: Signal) {
        self.high_seq = self.board.nxt();
        self.probe = None;
        self.undo.prior_cwnd = self.window.cwnd;
        self.prr.start(self.window.cwnd);
        self.send_cwr = true;
        self.signal(now, signal);
    }

    /// Linux `tcp_end_cwnd_reduction`.
    fn end_reduction(&mut self, now: Time, next: State) {
        if self.cc.recovery() == Recovery::Transport && self.window.ssthresh < INFINITE_SSTHRESH {
            self.window.cwnd = self.window.ssthresh.max(1);
        }
        self.usage.postpone(now);
        // The marker stays, because the DSACKs of spurious retransmissions arrive an RTT later.
        self.state = next;
        self.cc.on_recovered(now, &mut self.window);
    }

    /// Handles a retransmission timeout (Linux `tcp_enter_loss`).
    pub(super) fn enter_loss(&mut self, now: Time) {
        let fresh = matches!(self.state, State::Open | State::Disorder);
        let repeated = self.state == State::Loss && self.rtt.backoffs() > 0 && self.board.una < self.high_seq;
        self.mark_all_lost(now);
        let reduced = matches!(self.state, State::Cwr | State::Recovery) || repeated;
        if reduced && self.board.una < self.high_seq {
            // The threshold is reduced only once per window, but the controller is notified of the timeout.
            let ssthresh = self.window.ssthresh;
            self.notify_controller(now, Signal::Timeout, true);
            self.window.ssthresh = ssthresh;
        } else {
            self.undo.prior_ssthresh = self.current_ssthresh();
            self.undo.prior_cwnd = self.window.cwnd;
            self.signal(now, Signal::Timeout);
            self.begin_undo();
        }
        self.window.cwnd = self.board.in_flight() + 1;
        self.usage.postpone(now);
        self.state = State::Loss;
        self.high_seq = self.board.nxt();
        self.frto = fresh || repeated;
        self.probe = None;
        self.send_cwr = true;
    }

    /// Marks all segments as lost that are not SACKed, except segments that RACK would still wait for.
    fn mark_all_lost(&mut self, now: Time) {
        let window = narrows_control::units::Span::ZERO;
        let (una, nxt) = (self.board.una, self.board.nxt());
        for seq in una..nxt {
            let is_recent = self.board.get(seq).is_some_and(|s| !self.rack.is_overdue(now, s.sent, window));
            if (seq == una || !is_recent)
                && let Some(segment) = self.board.mark_lost(seq)
            {
                self.cc.on_lost(&self.sampler.record_loss(now, segment), &self.window);
            }
        }
        self.rack.restart_scan();
    }

    /// Handles an ACK after a timeout: undoes a spurious timeout (F-RTO, RFC 5682; Eifel), or leaves the Loss state after
    /// the repair. Linux `tcp_process_loss`.
    fn process_loss(&mut self, now: Time, progress: &Progress) -> Rexmit {
        let recovered = self.board.una >= self.high_seq;
        if progress.una_advanced && self.may_undo(progress.ts_echo) {
            self.restore(now, true, State::Open);
            return Rexmit::Lost;
        }
        if self.frto {
            if progress.original_sacked {
                self.restore(now, true, State::Open);
                return Rexmit::Lost;
            }
            if self.board.nxt() > self.high_seq {
                if progress.data_sacked || !progress.una_advanced {
                    self.frto = false;
                }
            } else if progress.una_advanced && !recovered {
                self.high_seq = self.board.nxt();
                return Rexmit::New;
            }
        }
        if recovered {
            self.state = State::Open;
            self.rack.on_recovered();
            self.cc.on_recovered(now, &mut self.window);
        }
        Rexmit::Lost
    }

    fn may_undo(&self, ts_echo: u32) -> bool {
        self.undo.marker.is_some() && (self.undo.outstanding == Some(0) || self.ack_is_of_original(ts_echo))
    }

    fn try_undo(&mut self, now: Time, ts_echo: u32, next: State) {
        if self.may_undo(ts_echo) {
            self.restore(now, false, next);
        }
    }

    /// Undoes the reduction if DSACKs have reported every retransmission as a duplicate.
    fn try_undo_by_dsack(&mut self, now: Time) {
        if self.undo.marker.is_some() && self.undo.outstanding == Some(0) {
            self.restore(now, false, State::Open);
        }
    }

    /// Restores the window before the reduction (Linux `tcp_undo_cwnd_reduction`).
    fn restore(&mut self, now: Time, unmark: bool, next: State) {
        if unmark {
            self.board.unmark_lost();
        }
        if self.undo.prior_ssthresh > 0 {
            self.window.cwnd = self.window.cwnd.max(self.undo.prior_cwnd);
            if self.undo.prior_ssthresh > self.window.ssthresh {
                self.window.ssthresh = self.undo.prior_ssthresh;
                self.send_cwr = false;
            }
            self.cc.on_undo(now, &mut self.window);
        }
        self.undo.marker = None;
        self.frto = false;
        self.usage.postpone(now);
        self.rack.restart_scan();
        self.state = next;
    }

    /// Handles the ACK of a tail loss probe (RFC 8985 section 7.4; Linux `tcp_process_tlp_ack`).
    pub(super) fn on_probe_ack(&mut self, now: Time, ack: u32, progress: &Progress) {
        let Some((end, retransmitted)) = self.probe else { return };
        if ack < end {
            return;
        }
        if !retransmitted || progress.dsack {
            self.probe = None;
        } else if ack > end {
            // The probe repaired a loss: reduce the window once, without a recovery.
            self.probe = None;
            if matches!(self.state, State::Open | State::Disorder) {
                self.undo.marker = None;
                self.begin_reduction(now, Signal::Probe);
                self.state = State::Cwr;
                self.end_reduction(now, State::Open);
                self.update_open_state();
            }
        } else if !progress.una_advanced && !progress.data_sacked {
            self.probe = None;
        }
    }

    /// Sends the segments that the updated window allows.
    pub(super) fn send_after_ack(&mut self, io: &mut Io<'_>, rexmit: Rexmit) {
        if rexmit == Rexmit::New {
            self.transmit_new(io);
            if self.board.nxt() > self.high_seq {
                return;
            }
            self.frto = false;
        }
        if rexmit == Rexmit::Nothing {
            self.transmit_new(io);
        } else {
            self.transmit(io);
        }
    }
}
