//! Transmission. The sender first retransmits lost segments, and then sends new data. The congestion window, the pacer
//! and the receive window limit both.
//!
//! The sender calls `send_after_ack` when it has processed an ACK. A Send event of the flow calls `transmit` when the
//! pacer or the application permits the next segment. A Timer event calls `on_timer`.

use narrows_control::congestion::State;
use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::header::Custom;
use narrows_control::units::{Bytes, Rate, Span, Time};

use super::Io;
use super::app::Chunk;
use super::flight::Flight;
use super::scoreboard::Segment;
use super::sender::{Phase, Sender};
use super::timer::Timer;
use super::undo::Rexmit;
use crate::packet::{RATE_OPTION_BYTES, flag};

/// Number of SYNs before the sender gives up (Linux tcp_syn_retries 6).
const SYN_TRIES: u32 = 7;
/// Number of consecutive timeouts after which the sender gives up (Linux tcp_retries2 15).
const RETRIES: u32 = 15;

impl Sender {
    /// Returns the time of the next Send event. At this time, the pacer or the application may allow a transmission, or
    /// the controller's timer expires.
    #[inline]
    pub(crate) fn send_at(&self, now: Time) -> Time {
        // A time in the past needs no event. If a segment could not be sent at that time, it must wait for an ACK.
        let ahead = |t: Time| if t > now { t } else { Time::NEVER };
        let at = ahead(self.pacer.next()).min(ahead(self.app_wait));
        if self.uses_timer { at.min(ahead(self.control.cc.next_timer())) } else { at }
    }

    /// Called at the time that [`send_at`](Sender::send_at) returned.
    pub(crate) fn on_send(&mut self, io: &mut Io<'_>) {
        if self.uses_timer && self.phase == Phase::Established && self.control.cc.next_timer() <= io.now {
            self.control.cc.on_timer(io.now, &mut self.control.window);
            self.control.window.cwnd = self.control.window.cwnd.max(1);
        }
        self.transmit(io);
    }

    /// Sends all segments that may be sent now.
    pub(crate) fn transmit(&mut self, io: &mut Io<'_>) {
        if self.phase != Phase::Established {
            return;
        }
        self.restart_after_idle(io.now);
        let sent_before = self.counters.sent;
        let mut limited_by_window = false;
        loop {
            if self.flight.board.in_flight() >= self.control.window.cwnd {
                limited_by_window = true;
                break;
            }
            if self.pacer.next() > io.now {
                break;
            }
            if let Some(seq) = self.flight.board.next_lost() {
                self.retransmit_and_arm(io, seq);
            } else if !self.transmit_one_new(io) {
                break;
            }
        }
        if self.counters.sent != sent_before {
            self.validate_window(io.now, limited_by_window);
            self.recovery.arm_after_transmission(io.now, &self.flight);
        } else if limited_by_window {
            self.validate_window(io.now, true);
        }
    }

    /// Handles the timer. The caller must check that the timer has expired. As in Linux, the retransmission timeout,
    /// the tail loss probe and RACK's reordering timer share one timer.
    pub(crate) fn on_timer(&mut self, io: &mut Io<'_>) {
        match std::mem::replace(&mut self.recovery.timer, Timer::Off) {
            Timer::Off => {}
            Timer::Retransmit(_) if self.phase == Phase::SynSent => {
                if self.handshake.tries >= SYN_TRIES {
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

    /// Handles the expiry of RACK's timer. Retransmits the segments that RACK now considers lost. New data is sent only
    /// after the next ACK (Linux `tcp_rack_reo_timeout`).
    fn on_reordering_timeout(&mut self, io: &mut Io<'_>) {
        let in_flight = self.flight.board.in_flight();
        self.recovery.find_losses(io.now, &mut self.flight, &mut self.control);
        if self.flight.board.in_flight() != in_flight {
            if self.recovery.state != State::Recovery {
                self.recovery.enter_by_timer(io.now, &self.flight, &mut self.control);
            }
            self.retransmit_lost(io);
        }
        if self.recovery.timer == Timer::Off {
            self.recovery.arm_since_first(io.now, &self.flight);
        }
    }

    fn on_timeout(&mut self, io: &mut Io<'_>) {
        if self.flight.board.packets_out() == 0 {
            return;
        }
        if self.flight.rtt.backoffs() >= RETRIES {
            self.phase = Phase::Closed;
            return;
        }
        self.counters.timeouts += 1;
        self.recovery.enter_loss(io.now, &mut self.flight, &mut self.control);
        self.flight.rtt.back_off();
        // The pacer does not delay this retransmission of the first unacknowledged segment.
        self.retransmit(io, self.flight.board.una);
        self.recovery.timer = Timer::Retransmit(io.now + self.flight.rtt.rto());
    }

    /// Sends a tail loss probe. The probe is new data if there is some. Otherwise it is a retransmission of the last
    /// segment (RFC 8985 section 7.3). While a probe is outstanding, no other probe is sent.
    fn send_probe(&mut self, io: &mut Io<'_>) {
        if self.flight.board.packets_out() == 0 {
            return;
        }
        if self.recovery.probe.is_some() {
            self.recovery.arm_since_first(io.now, &self.flight);
            return;
        }
        let sent_new = self.transmit_one_new(io);
        if !sent_new {
            let last = self.flight.board.nxt() - 1;
            self.retransmit(io, last);
        }
        self.recovery.probe = Some((self.flight.board.nxt(), !sent_new));
        self.recovery.timer = Timer::Retransmit(io.now + self.flight.rtt.rto());
    }

    /// Sends the segments that the window allows after an ACK has updated it.
    pub(super) fn send_after_ack(&mut self, io: &mut Io<'_>, rexmit: Rexmit) {
        if rexmit == Rexmit::New {
            self.transmit_new(io);
            if self.flight.board.nxt() > self.recovery.high_seq {
                return;
            }
            self.recovery.frto = false;
        }
        if rexmit == Rexmit::Nothing {
            self.transmit_new(io);
        } else {
            self.transmit(io);
        }
    }

    /// Retransmits lost segments, but sends no new data (Linux `tcp_xmit_retransmit_queue`).
    fn retransmit_lost(&mut self, io: &mut Io<'_>) {
        while self.flight.board.in_flight() < self.control.window.cwnd && self.pacer.next() <= io.now {
            let Some(seq) = self.flight.board.next_lost() else { break };
            self.retransmit_and_arm(io, seq);
        }
    }

    /// Retransmits a segment. If this is the first unacknowledged segment, sets the timer again.
    fn retransmit_and_arm(&mut self, io: &mut Io<'_>, seq: u32) {
        self.retransmit(io, seq);
        if seq == self.flight.board.una {
            self.recovery.arm(io.now, &self.flight);
        }
    }

    /// Sends only new data.
    fn transmit_new(&mut self, io: &mut Io<'_>) {
        while self.flight.board.in_flight() < self.control.window.cwnd
            && self.pacer.next() <= io.now
            && self.transmit_one_new(io)
        {}
    }

    fn validate_window(&mut self, now: Time, limited: bool) {
        let Flight { board, rtt, .. } = &self.flight;
        self.control.validate(now, limited, self.recovery.state, board, rtt);
    }

    /// Adapts the window, if the next transmission is the first one after an idle time.
    fn restart_after_idle(&mut self, now: Time) {
        let is_idle = self.flight.board.packets_out() == 0 && self.counters.sent != 0;
        if is_idle && self.app.has_data(now, self.config.mss) {
            let idle = now.since(self.last_sent);
            let app_limited = self.flight.sampler.is_app_limited();
            self.control.restart_after_idle(now, idle, self.flight.rtt.rto(), app_limited);
        }
    }

    /// Called before each transmission. Notifies the controller of a restart if no segment is in flight, but SACKed or
    /// lost segments are outstanding, for example after a timeout. Linux also treats this transmission as a start
    /// (`tcp_event_data_sent`, CA_EVENT_TX_START).
    ///
    /// Controllers that set the window themselves are notified only after idle times. These are the controllers of
    /// rate-controlled flows, and BBR. For rate-controlled flows, the reason is that switches need no information about
    /// losses. For BBR, the reason is that Linux's BBR reacts to a start only if the application has limited the flow.
    fn start_from_empty_flight(&mut self, now: Time) {
        if self.flight.board.packets_out() > 0
            && self.flight.board.in_flight() == 0
            && self.control.is_window_of_transport()
        {
            let idle = now.since(self.last_sent);
            self.control.cc.on_restart(
                now,
                idle,
                self.flight.sampler.is_app_limited(),
                &mut self.control.window,
            );
        }
    }

    /// Sends one new segment if the application has data and the receiver's window allows it.
    fn transmit_one_new(&mut self, io: &mut Io<'_>) -> bool {
        if self.app_wait > io.now && self.app_wait != Time::NEVER {
            return false;
        }
        self.app_wait = Time::NEVER;
        if self.flight.board.nxt() >= self.offer.edge() {
            return false;
        }
        // BRF-100: once per RTT, a segment carries the rate option. This option takes eight bytes. It reports that the
        // application does not limit the flow.
        let option = self.control.cc.wants_feedback()
            && io.now >= self.option_at
            && !self.flight.sampler.is_app_limited();
        // Headers and options reduce the payload, so that all full packets have the same size.
        let header =
            if self.uses_headers { self.control.cc.header_bytes().min(Custom::MAX_BYTES) } else { 0 };
        let room = self.config.mss - header - if option { RATE_OPTION_BYTES as u16 } else { 0 };
        let (len, fin) = match self.app.take(io.now, room) {
            Chunk::Data { len, last } => (len, last),
            Chunk::Wait(at) => {
                self.app_wait = at;
                self.record_app_limit();
                return false;
            }
            Chunk::Finished => {
                self.record_app_limit();
                return false;
            }
        };
        if option {
            self.option_at = io.now + self.flight.rtt.srtt;
        }
        self.start_from_empty_flight(io.now);
        let nothing_in_flight = self.flight.board.packets_out() == 0;
        let seq = self.flight.board.nxt();
        let mut segment = Segment::new(io.now, len, fin, option);
        let in_flight = self.flight.board.in_flight() + 1;
        self.flight.sampler.stamp(io.now, &mut segment, nothing_in_flight, in_flight);
        self.flight.board.push(segment);
        self.emit(io, seq, len, fin, option);
        true
    }

    /// BBR-5: called when the application has no data. Marks the flow as application-limited, if the window has room
    /// and no lost segment waits for its retransmission.
    fn record_app_limit(&mut self) {
        let in_flight = self.flight.board.in_flight();
        if in_flight < self.control.window.cwnd && self.flight.board.lost_out <= self.flight.board.retrans_out
        {
            self.flight.sampler.mark_app_limited(in_flight);
        }
    }

    /// Retransmits a segment.
    fn retransmit(&mut self, io: &mut Io<'_>, seq: u32) {
        self.start_from_empty_flight(io.now);
        let in_flight = self.flight.board.in_flight() + 1;
        let Some(segment) = self.flight.board.get_mut(seq) else { return };
        self.flight.sampler.stamp(io.now, segment, false, in_flight);
        let (len, fin, option) = (segment.len, segment.is_fin(), segment.has_option());
        self.flight.board.record_retransmission(io.now, seq);
        self.counters.retransmits += 1;
        self.recovery.undo.on_retransmit(io.timestamp());
        self.emit(io, seq, len, fin, option);
    }

    fn emit(&mut self, io: &mut Io<'_>, seq: u32, len: u16, fin: bool, option: bool) {
        let again = self.flight.board.get(seq).is_some_and(|s| s.was_retransmitted());
        let mut p = self.packet(io, flag::ACK);
        p.seq = seq;
        p.payload = len;
        p.size += len + if option { RATE_OPTION_BYTES as u16 } else { 0 };
        if fin {
            p.flags |= flag::FIN;
        }
        if option {
            p.flags |= flag::RATE;
            p.rate_code = RateCode::UNLIMITED.to_bits();
        }
        // By RFC 3168 section 6.1.5, retransmissions are not ECN-capable, and only new data carries the CWR flag. DCTCP
        // is an exception: by RFC 8257, its retransmissions are ECN-capable.
        if self.config.ecn && (!again || self.control.cc.needs_exact_ce_echo()) {
            p.flags |= flag::ECT;
            if !again && std::mem::take(&mut self.recovery.send_cwr) {
                p.flags |= flag::CWR;
            }
        }
        self.add_header(io, &mut p, again);
        self.counters.sent += 1;
        self.counters.sent_bytes += p.size as u64;
        self.recovery.prr.out += 1;
        self.last_sent = io.now;
        self.pace(io.now, p.size as u32);
        io.send(p);
    }

    /// Advances the pacer after one packet.
    fn pace(&mut self, now: Time, size: u32) {
        let rate = match self.control.window.pacing_rate {
            Some(rate) => rate,
            None if self.config.pacing && self.flight.rtt.srtt > Span::ZERO => self.window_pacing_rate(),
            None => return,
        };
        self.pacer.charge(now, size, rate);
    }

    /// Computes the pacing rate from the window (Linux `tcp_update_pacing_rate`).
    fn window_pacing_rate(&self) -> Rate {
        let segments = self.control.window.cwnd.max(self.flight.board.packets_out());
        let window = segments as u64 * (self.config.mss as u64 + 52);
        Rate::of(Bytes::new(window), self.flight.rtt.srtt).mul_f64(self.control.pacing_ratio())
    }
}
