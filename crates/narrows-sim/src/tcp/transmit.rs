//! What goes out: retransmissions first, new data within the window, the pacer's pace and the receiver's window.

use narrows_control::congestion::{Recovery, State};
use narrows_control::feedback::code::RateCode;
use narrows_control::units::{Bytes, Rate, Span, Time};

use super::Io;
use super::app::Chunk;
use super::scoreboard::Segment;
use super::sender::{INITIAL_WINDOW, Phase, Sender};
use crate::packet::{RATE_OPTION, flag};

/// Linux pacing ratios (tcp_pacing_ss_ratio, tcp_pacing_ca_ratio), per cent of cwnd per srtt.
const PACING_SLOW_START: f64 = 2.0;
const PACING_AVOIDANCE: f64 = 1.2;

impl Sender {
    /// When the sender wants to be asked to send again, apart from ACKs and timers.
    #[inline]
    pub(crate) fn send_at(&self, now: Time) -> Time {
        // What is due by now and was not sent waits for an ACK, not for the clock.
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
            // A probe is due two RTTs after the last new segment, a timeout after the last ACK.
            if self.deadline() == Time::NEVER || self.probe_pending() {
                self.arm(io.now);
            }
        } else if limited_by_window {
            self.validate_window(io.now, true);
        }
    }

    /// Sends lost segments again, and nothing new (Linux `tcp_xmit_retransmit_queue`).
    pub(super) fn retransmit_lost(&mut self, io: &mut Io<'_>) {
        while self.board.in_flight() < self.window.cwnd && self.pace_at <= io.now {
            let Some(seq) = self.board.next_lost() else { break };
            self.retransmit_and_arm(io, seq);
        }
    }

    /// A retransmission of the first segment puts the timeout off.
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

    /// Linux `tcp_cwnd_validate`: remembers whether the window was what limited the last flight.
    fn validate_window(&mut self, now: Time, limited: bool) {
        let out = self.board.packets_out();
        if self.board.una >= self.usage_seq || limited || (!self.cwnd_limited && out > self.max_packets_out) {
            self.cwnd_limited = limited;
            self.max_packets_out = out;
            self.usage_seq = self.board.nxt();
        }
        if self.is_cwnd_limited() {
            (self.cwnd_used, self.cwnd_stamp) = (0, now);
            return;
        }
        self.cwnd_used = self.cwnd_used.max(out);
        let stale = now.since(self.cwnd_stamp) >= self.rtt.rto();
        if stale && self.cc.recovery() == Recovery::Transport {
            self.shrink_unused_window(now);
        }
    }

    /// RFC 2861 section 3.1 as Linux has it (`tcp_cwnd_application_limited`): half-way towards what was used.
    fn shrink_unused_window(&mut self, now: Time) {
        let used = self.cwnd_used.max(INITIAL_WINDOW);
        if self.state == State::Open && used < self.window.cwnd {
            self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd / 2 + self.window.cwnd / 4);
            self.window.cwnd = (self.window.cwnd + used) / 2;
        }
        (self.cwnd_used, self.cwnd_stamp) = (0, now);
    }

    /// First transmission after everything was acknowledged: RFC 2861 as Linux has it, and the controller's own rule.
    fn restart_after_idle(&mut self, now: Time) {
        if self.board.packets_out() > 0 || self.counters.sent == 0 || !self.app.has_data(now, self.config.mss)
        {
            return;
        }
        let idle = now.since(self.last_sent);
        let rto = self.rtt.rto();
        if self.cc.recovery() == Recovery::Transport && idle > rto {
            let restart = self.window.cwnd.min(INITIAL_WINDOW);
            (self.cwnd_used, self.cwnd_stamp) = (0, now);
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

    /// Linux `tcp_event_data_sent`: a transmission while nothing is in flight is a start (CA_EVENT_TX_START), also one behind segments that
    /// are SACKed or lost, such as the first after a timeout. Network controllers and BBR are told of idle times only: what a switch has to
    /// be forgiven is no loss, and Linux's BBR asks for an application limit as well.
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
        // BRF-100: once per RTT a segment gives up eight bytes to say that the flow is not limited by its application.
        let option = self.cc.wants_feedback() && io.now >= self.option_at && !self.sampler.is_app_limited();
        // A full packet is a full packet, whatever it carries: headers and options take their bytes from its payload.
        let header = if self.headers { self.cc.header_bytes() } else { 0 };
        let room = self.config.mss - header - if option { RATE_OPTION as u16 } else { 0 };
        let (len, fin) = match self.app.take(io.now, room) {
            Chunk::Data { len, last } => (len, last),
            Chunk::Wait(at) => {
                self.app_wait = at;
                self.note_app_limit();
                return false;
            }
            Chunk::Finished => {
                self.note_app_limit();
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

    /// BBR-5: nothing to send, room in the window, and no loss that waits for repair.
    fn note_app_limit(&mut self) {
        let in_flight = self.board.in_flight();
        if in_flight < self.window.cwnd && self.board.lost_out <= self.board.retrans_out {
            self.sampler.mark_app_limited(in_flight);
        }
    }

    /// Sends a segment again.
    pub(super) fn retransmit(&mut self, io: &mut Io<'_>, seq: u32) {
        self.start_from_empty_flight(io.now);
        let in_flight = self.board.in_flight() + 1;
        let Some(segment) = self.board.get_mut(seq) else { return };
        self.sampler.stamp(io.now, segment, false, in_flight);
        let (len, fin, option) = (segment.len, segment.is_fin(), segment.has_option());
        self.board.retransmit(io.now, seq);
        self.counters.retransmits += 1;
        self.undo.on_retransmit(io.timestamp());
        self.emit(io, seq, len, fin, option);
    }

    /// After a timeout the first segment goes at once, whatever the pacer says.
    pub(super) fn retransmit_first(&mut self, io: &mut Io<'_>) {
        let first = self.board.una;
        self.retransmit(io, first);
    }

    fn emit(&mut self, io: &mut Io<'_>, seq: u32, len: u16, fin: bool, option: bool) {
        let again = self.board.get(seq).is_some_and(|s| s.ever_retransmitted());
        let mut p = self.packet(io, flag::ACK);
        p.seq = seq;
        p.payload = len;
        p.size += len + if option { RATE_OPTION as u16 } else { 0 };
        if fin {
            p.flags |= flag::FIN;
        }
        if option {
            p.flags |= flag::RATE;
            p.rate_code = RateCode::UNLIMITED.to_bits();
        }
        // RFC 3168 section 6.1.5: no retransmission is ECN-capable (but RFC 8257's), and the CWR goes out with new data.
        if self.config.ecn && (!again || self.cc.exact_ce_echo()) {
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

    /// Moves the pacer on by one packet. A pacer that fell behind by less than a packet's time catches up
    /// (Linux credits half a packet); after a longer pause it starts afresh.
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

    /// The application has closed and all of its data was sent.
    pub(super) fn app_is_finished(&self) -> bool {
        self.app.is_finished()
    }
}
