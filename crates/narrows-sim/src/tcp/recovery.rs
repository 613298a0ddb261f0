//! Congestion states and their changes (Linux `tcp_fastretrans_alert()` and what it calls; RFC 6675).

use narrows_control::congestion::{Congestion, INFINITE_SSTHRESH, Recovery, Signal, State};
use narrows_control::units::Time;

use super::Io;
use super::sender::{Progress, Sender};
use super::undo::Rexmit;

impl Sender {
    /// An ACK that may mean trouble, or the end of it.
    pub(super) fn react(&mut self, now: Time, progress: &mut Progress) -> Rexmit {
        if progress.ece {
            // An echo is not to be undone.
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
                        // Linux: tcp_try_undo_recovery() says "go on" with SACK, and tcp_end_cwnd_reduction() follows. With the
                        // marker gone it leaves the window, and tells the controller (CA_EVENT_COMPLETE_CWR).
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
                    // A partial ACK of an original: the network reorders, nothing was lost (Linux tcp_try_undo_partial).
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
                // A retransmission was lost: that is congestion anew.
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

    /// RACK's look at the scoreboard; its timer is armed with the others.
    pub(super) fn find_losses(&mut self, now: Time, progress: &mut Progress) {
        let retrans_before = self.board.retrans_out;
        let found = self.rack.detect(now, self.state, &mut self.board, &self.rtt, |segment| {
            self.cc.on_lost(&self.sampler.lose(now, segment), &self.window);
        });
        progress.retransmission_lost |= self.board.retrans_out < retrans_before;
        self.arm_reordering(now, found.timeout);
    }

    /// Linux `tcp_try_to_open`.
    fn try_to_open(&mut self, now: Time, ece: bool) {
        if !self.board.any_retransmitted() {
            self.undo.retransmitted_at = None;
        }
        if ece && self.state != State::Cwr {
            self.enter_cwr(now);
        }
        if self.state != State::Cwr {
            self.keep_open();
        }
    }

    /// Linux `tcp_try_keep_open`: Disorder while something is out of place.
    fn keep_open(&mut self) {
        let out_of_place = self.board.sacked_out + self.board.lost_out > 0 || self.board.any_retransmitted();
        let state = if out_of_place { State::Disorder } else { State::Open };
        if state != self.state {
            self.state = state;
            self.high_seq = self.board.nxt();
        }
    }

    fn signal(&mut self, now: Time, signal: Signal) {
        self.tell(now, signal, false);
    }

    fn tell(&mut self, now: Time, signal: Signal, again: bool) {
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
        let reducing = self.state == State::Cwr;
        self.begin_undo();
        if !reducing {
            self.undo.prior_ssthresh = if ece { 0 } else { self.current_ssthresh() };
            self.begin_reduction(now, Signal::Loss);
        }
        self.state = State::Recovery;
    }

    /// RACK's timer found a loss. No ACK comes with it that would let PRR set the window (Linux
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
        self.cwnd_stamp = now;
        // The marker stays: the DSACKs of needless retransmissions come an RTT later.
        self.state = next;
        self.cc.on_recovered(now, &mut self.window);
    }

    /// A retransmission timeout (Linux `tcp_enter_loss`).
    pub(super) fn enter_loss(&mut self, now: Time) {
        let fresh = matches!(self.state, State::Open | State::Disorder);
        let repeated = self.state == State::Loss && self.rtt.backoffs() > 0 && self.board.una < self.high_seq;
        self.mark_all_lost(now);
        let reduced = matches!(self.state, State::Cwr | State::Recovery) || repeated;
        if reduced && self.board.una < self.high_seq {
            // The threshold falls once in a window; the controller hears of the timeout all the same.
            let ssthresh = self.window.ssthresh;
            self.tell(now, Signal::Timeout, true);
            self.window.ssthresh = ssthresh;
        } else {
            self.undo.prior_ssthresh = self.current_ssthresh();
            self.undo.prior_cwnd = self.window.cwnd;
            self.signal(now, Signal::Timeout);
            self.begin_undo();
        }
        self.window.cwnd = self.board.in_flight() + 1;
        self.cwnd_stamp = now;
        self.state = State::Loss;
        self.high_seq = self.board.nxt();
        self.frto = fresh || repeated;
        self.probe = None;
        self.send_cwr = true;
    }

    /// Everything not SACKed is lost, but for what was sent so recently that RACK would still wait for it.
    fn mark_all_lost(&mut self, now: Time) {
        let window = narrows_control::units::Span::ZERO;
        let (una, nxt) = (self.board.una, self.board.nxt());
        for seq in una..nxt {
            let recent = self.board.get(seq).is_some_and(|s| !self.rack.overdue(now, s.sent, window));
            if (seq == una || !recent)
                && let Some(segment) = self.board.mark_lost(seq)
            {
                self.cc.on_lost(&self.sampler.lose(now, segment), &self.window);
            }
        }
        self.rack.touch();
    }

    /// After a timeout: was it needless (F-RTO, RFC 5682; Eifel), or is the loss repaired? Linux `tcp_process_loss`.
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

    /// Every retransmission turned out to be a duplicate.
    fn try_undo_by_dsack(&mut self, now: Time) {
        if self.undo.marker.is_some() && self.undo.outstanding == Some(0) {
            self.restore(now, false, State::Open);
        }
    }

    /// Linux `tcp_undo_cwnd_reduction`: the window as it was before.
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
        self.cwnd_stamp = now;
        self.rack.touch();
        self.state = next;
    }

    /// The ACK of a tail loss probe (RFC 8985 section 7.4; Linux `tcp_process_tlp_ack`).
    pub(super) fn on_probe_ack(&mut self, now: Time, ack: u32, progress: &Progress) {
        let Some((end, retransmitted)) = self.probe else { return };
        if ack < end {
            return;
        }
        if !retransmitted || progress.dsack {
            self.probe = None;
        } else if ack > end {
            // The probe repaired a loss: answer it once, without a recovery.
            self.probe = None;
            if matches!(self.state, State::Open | State::Disorder) {
                self.undo.marker = None;
                self.begin_reduction(now, Signal::Probe);
                self.state = State::Cwr;
                self.end_reduction(now, State::Open);
                self.keep_open();
            }
        } else if !progress.una_advanced && !progress.data_sacked {
            self.probe = None;
        }
    }

    /// After the window has answered: send what it allows.
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
