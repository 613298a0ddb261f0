//! Transmission: retransmissions first, then new data, as the congestion window, the pacer and the receiver's window allow.
//!
//! It runs at the end of an ACK, when the pacer or the application permits the next segment, and for timers.

use narrows_control::congestion::{Recovery, State};
use narrows_control::feedback::code::RateCode;
use narrows_control::units::{Bytes, Rate, Span, Time};

use super::Io;
use super::app::Chunk;
use super::scoreboard::Segment;
use super::sender::{INITIAL_WINDOW_SEGMENTS, Phase, Sender};
use crate::packet::{RATE_OPTION_BYTES, flag};

/// Linux pacing ratios (tcp_pacing_ss_ratio, tcp_pacing_ca_ratio), as multiples of cwnd per srtt.
const PACING_SLOW_START: f64 = 2.0;
const PACING_AVOIDANCE: f64 = 1.2;

impl Sender {
    /// The next time at which the pacer or the application may allow a transmission.
    #[inline]
    pub(crate) fn send_at(&self, now: Time) -> Time {
        // A segment that was permitted by now but not sent waits for an ACK, not for a time.
        let ahead = |t: Time| if t > now { t } else { Time::NEVER };
        ahead(self.pace_at).min(ahead(self.app_wait))
    }

    /// Sends all that may be sent now.
    pub(crate) fn transmit(&mut self, io: &mut Io<'_>) {
        if self.phase != Phase::Established {
            return;
        }
        self.restart_after_idle(io.now);
        let sent_before = self.counters.sent;
        let mut limited_by_window = false;
        loop {
            if self.board.in_flight() >= self.window.cwnd {
                limited_by_window = true;
                break;
            }
            if self.pace_at > io.now {
                break;
            }
            if let Some(seq) = self.board.next_lost() {
                self.retransmit_and_arm(io, seq);
            } else if !self.transmit_one_new(io) {
                break;
            }
        }
        if self.counters.sent != sent_before {
            self.validate_window(io.now, limited_by_window);
            // The probe timer counts from the last new segment, the retransmission timer from the last ACK.
            if self.deadline() == Time::NEVER || self.has_pending_probe() {
                self.arm(io.now);
            }
        } else if limited_by_window {
            self.validate_window(io.now, true);
        }
    }

    /// Retransmits lost segments, without new data (Linux `tcp_xmit_retransmit_queue`).
    pub(super) fn retransmit_lost(&mut self, io: &mut Io<'_>) {
        while self.board.in_flight() < self.window.cwnd && self.pace_at <= io.now {
            let Some(seq) = self.board.next_lost() else { break };
            self.retransmit_and_arm(io, seq);
        }
    }

    /// Retransmits a segment. If the first segment is retransmitted, the timer is set again.
    fn retransmit_and_arm(&mut self, io: &mut Io<'_>, seq: u32) {
        self.retransmit(io, seq);
        if seq == self.board.una {
            self.arm(io.now);
        }
    }

    /// Sends new data only (F-RTO).
    pub(super) fn transmit_new(&mut self, io: &mut Io<'_>) {
        while self.board.in_flight() < self.window.cwnd && self.pace_at <= io.now && self.transmit_one_new(io)
        {
        }
    }

    /// Linux `tcp_cwnd_validate`: records whether the window limited the last flight.
    fn validate_window(&mut self, now: Time, limited: bool) {
        let out = self.board.packets_out();
        self.usage.record(self.board.una, self.board.nxt(), out, limited);
        if self.usage.is_limited(&self.window) {
            self.usage.restart(now);
            return;
        }
        if self.usage.is_stale(now, out, self.rtt.rto()) && self.cc.recovery() == Recovery::Transport {
            self.shrink_unused_window(now);
        }
    }

    /// RFC 2861 section 3.1 as in Linux (`tcp_cwnd_application_limited`): the window shrinks half-way to its used part.
    fn shrink_unused_window(&mut self, now: Time) {
        let used = self.usage.used().max(INITIAL_WINDOW_SEGMENTS);
        if self.state == State::Open && used < self.window.cwnd {
            self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd / 2 + self.window.cwnd / 4);
            self.window.cwnd = (self.window.cwnd + used) / 2;
        }
        self.usage.restart(now);
    }

    /// Prepares the first transmission after an idle time: RFC 2861 as in Linux, and the controller's own rule.
    fn restart_after_idle(&mut self, now: Time) {
        if self.board.packets_out() > 0 || self.counters.sent == 0 || !self.app.has_data(now, self.config.mss)
        {
            return;
        }
        let idle = now.since(self.last_sent);
        let rto = self.rtt.rto();
        if self.cc.recovery() == Recovery::Transport && idle > rto {
            let restart = self.window.cwnd.min(INITIAL_WINDOW_SEGMENTS);
            self.usage.restart(now);
            let keep = self.window.cwnd / 2 + self.window.cwnd / 4;
            self.window.ssthresh = self.window.ssthresh.max(keep);
            let mut left = idle - rto;
            while left > Span::ZERO && self.window.cwnd > restart {
                self.window.cwnd /= 2;
                left -= rto;
            }
            self.window.cwnd = self.window.cwnd.max(restart);
        }
        self.cc.on_restart(now, idle, self.sampler.is_app_limited(), &mut self.window);
    }

    /// Linux `tcp_event_data_sent`: a transmission with nothing in flight is a start
    /// (CA_EVENT_TX_START), even if SACKed or lost segments are outstanding. An example is the
    /// first transmission after a timeout. Network controllers and BBR are notified only after idle
    /// times. A switch does not need to know of losses, and Linux's BBR reacts to a start only if
    /// the application limited the flow.
    fn start_from_empty_flight(&mut self, now: Time) {
        if self.board.packets_out() > 0
            && self.board.in_flight() == 0
            && self.cc.recovery() == Recovery::Transport
        {
            let idle = now.since(self.last_sent);
            self.cc.on_restart(now, idle, self.sampler.is_app_limited(), &mut self.window);
        }
    }

    /// Sends one new segment if the application has one and the receiver has room.
    pub(super) fn transmit_one_new(&mut self, io: &mut Io<'_>) -> bool {
        if self.app_wait > io.now && self.app_wait != Time::NEVER {
            return false;
        }
        self.app_wait = Time::NEVER;
        if self.board.nxt() >= self.offer.edge() {
            return false;
        }
        // BRF-100: once per RTT a segment uses eight bytes to report that the flow is not limited by its application.
        let option = self.cc.wants_feedback() && io.now >= self.option_at && !self.sampler.is_app_limited();
        // Full packets all have the same size: headers and options take their bytes from the payload.
        let header = if self.uses_headers { self.cc.header_bytes() } else { 0 };
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
            self.option_at = io.now + self.rtt.srtt;
        }
        self.start_from_empty_flight(io.now);
        let nothing_in_flight = self.board.packets_out() == 0;
        let seq = self.board.nxt();
        let mut segment = Segment::new(io.now, len, fin, option);
        let in_flight = self.board.in_flight() + 1;
        self.sampler.stamp(io.now, &mut segment, nothing_in_flight, in_flight);
        self.board.push(segment);
        self.emit(io, seq, len, fin, option);
        true
    }

    /// BBR-5: the flow is application-limited if it has no data, room in the window, and no loss to repair.
    fn record_app_limit(&mut self) {
        let in_flight = self.board.in_flight();
        if in_flight < self.window.cwnd && self.board.lost_out <= self.board.retrans_out {
            self.sampler.mark_app_limited(in_flight);
        }
    }

    /// Retransmits a segment.
    pub(super) fn retransmit(&mut self, io: &mut Io<'_>, seq: u32) {
        self.start_from_empty_flight(io.now);
        let in_flight = self.board.in_flight() + 1;
        let Some(segment) = self.board.get_mut(seq) else { return };
        self.sampler.stamp(io.now, segment, false, in_flight);
        let (len, fin, option) = (segment.len, segment.is_fin(), segment.has_option());
        self.board.record_retransmission(io.now, seq);
        self.counters.retransmits += 1;
        self.undo.on_retransmit(io.timestamp());
        self.emit(io, seq, len, fin, option);
    }

    /// Retransmits the first segment after a timeout, without pacing.
    pub(super) fn retransmit_first(&mut self, io: &mut Io<'_>) {
        let first = self.board.una;
        self.retransmit(io, first);
    }

    fn emit(&mut self, io: &mut Io<'_>, seq: u32, len: u16, fin: bool, option: bool) {
        let again = self.board.get(seq).is_some_and(|s| s.was_retransmitted());
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
        // RFC 3168 section 6.1.5: retransmissions are not ECN-capable, and the CWR is sent with new data. With RFC 8257,
        // retransmissions are ECN-capable.
        if self.config.ecn && (!again || self.cc.needs_exact_ce_echo()) {
            p.flags |= flag::ECT;
            if !again && std::mem::take(&mut self.send_cwr) {
                p.flags |= flag::CWR;
            }
        }
        self.add_header(io.now, &mut p, again);
        self.counters.sent += 1;
        self.counters.sent_bytes += p.size as u64;
        self.prr.out += 1;
        self.last_sent = io.now;
        self.pace(io.now, p.size as u32);
        io.send(p);
    }

    /// Advances the pacer by one packet. If the pacer is late by less than the time of a packet, it
    /// catches up (Linux credits half a packet). After a longer pause it restarts.
    fn pace(&mut self, now: Time, size: u32) {
        let rate = match self.window.pacing_rate {
            Some(rate) => rate,
            None if self.config.pacing && self.rtt.srtt > Span::ZERO => self.window_pacing_rate(),
            None => return,
        };
        let gap = rate.time_for(Bytes::new(size as u64));
        let base = if now.since(self.pace_at) < gap { self.pace_at.max(now - gap) } else { now };
        self.pace_at = base + gap;
    }

    /// Linux `tcp_update_pacing_rate`.
    fn window_pacing_rate(&self) -> Rate {
        let slow_start = self.window.cwnd < self.window.ssthresh / 2;
        let ratio = if slow_start { PACING_SLOW_START } else { PACING_AVOIDANCE };
        let window = self.window.cwnd.max(self.board.packets_out()) as u64 * (self.config.mss as u64 + 52);
        Rate::of(Bytes::new(window), self.rtt.srtt).mul_f64(ratio)
    }

    /// Whether the application has closed and all of its data was sent.
    pub(super) fn app_is_finished(&self) -> bool {
        self.app.is_finished()
    }
}
