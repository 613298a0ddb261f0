//! The sending end: the connection, and ACK processing in the order of Linux `tcp_ack()`.
//!
//! `Flow` calls the sender for each packet that travels from the receiver to the sender. Each part of the sender has
//! its own state:
//!
//! * `flight`: the segments and measurements of the path.
//! * `control`: the congestion controller and its window.
//! * `recovery`: the congestion states and the timer.
//! * `pacer`: the time of the next transmission.
//!
//! The methods that send packets are in the module `transmit`.

use narrows_control::congestion::{
    Ack, Connection, Controller, Departing, INFINITE_SSTHRESH, RateSample, State, Timestamps,
};
use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::header::{Echo, Header};
use narrows_control::units::{Rate, Span, Time};

use super::app::App;
use super::control::Control;
use super::flight::Flight;
use super::offer::Offer;
use super::pacer::Pacer;
use super::recovery::LossRecovery;
use super::rtt_stats::RttStats;
use super::sampler::Draft;
use super::timer::Timer;
use super::undo::Rexmit;
use super::{Io, before};
use crate::packet::{HEADER_BYTES, Packet, Template, flag};
use crate::probe::{AckRecorder, AckRow};

/// The constant parameters of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Header fields that all packets of the sender share.
    pub(crate) template: Template,
    pub(crate) mss: u16,
    /// Window of a new connection in segments. After a long idle time, the window is reduced to this value.
    pub(crate) initial_segments: u32,
    pub(crate) ecn: bool,
    pub(crate) pacing: bool,
    /// The receive window that the other end offers before any data has arrived there.
    pub(crate) offer: Offer,
    /// Seed for the random choices of the controller.
    pub(crate) seed: u64,
}

/// State of the connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    SynSent,
    Established,
    /// The connection has failed or is complete. It is complete when all data and the FIN are acknowledged and the
    /// receiver has sent its own FIN.
    Closed,
}

/// Counters of a sender since its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// Number of data segments sent, including retransmissions. `sent_bytes` is the number of their L3 bytes.
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) retransmits: u64,
    /// Number of duplicates that DSACKs have reported. These are spurious retransmissions, or duplicates made by the
    /// network.
    pub(crate) spurious: u64,
    pub(crate) timeouts: u64,
}

/// The number of SYNs sent, and the time of the last one.
#[derive(Clone, Debug, Default)]
pub(super) struct Handshake {
    pub(super) tries: u32,
    sent_at: Time,
}

/// The sending end of a connection.
pub(crate) struct Sender {
    pub(crate) config: Config,
    pub(crate) phase: Phase,
    pub(super) handshake: Handshake,
    pub(crate) app: App,
    /// If the sender waits for the application, the time at which the application has new data. Otherwise
    /// [`Time::NEVER`].
    pub(super) app_wait: Time,
    /// The receive window after the last processed ACK.
    pub(super) offer: Offer,
    pub(crate) flight: Flight,
    pub(crate) control: Control,
    pub(crate) recovery: LossRecovery,
    pub(super) pacer: Pacer,
    pub(super) last_sent: Time,
    /// The most recent rate from a switch. `option_at` is the earliest time at which another segment carries the rate
    /// option.
    pub(crate) feedback: Option<Rate>,
    pub(super) option_at: Time,
    /// Whether the flow's packets carry congestion headers.
    pub(super) uses_headers: bool,
    /// Whether the controller has a timer.
    pub(super) uses_timer: bool,
    /// The newest timestamp from the receiver. The sender's packets echo this timestamp.
    ts_recent: u32,
    fin_received: bool,
    pub(crate) counters: Counters,
    pub(crate) rtts: RttStats,
    /// Time at which the last byte was acknowledged, or [`Time::NEVER`]. An `Option<Time>` would need 8 more bytes per
    /// flow.
    completed_at: Time,
    /// Records each ACK; `None` if the plan does not record the ACKs of this flow.
    pub(crate) acks: Option<Box<AckRecorder>>,
}

/// The effects of the ACK that is being processed.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) una_advanced: bool,
    pub(super) data_sacked: bool,
    /// Whether the ACK newly reports a segment below `LossRecovery::high_seq` that was never retransmitted (for F-RTO).
    pub(super) original_sacked: bool,
    pub(super) dsack: bool,
    pub(super) ece: bool,
    lost_before: u64,
    /// Timestamp of the ACK. `ts_echo` is the timestamp that the ACK echoes.
    ts: u32,
    pub(super) ts_echo: u32,
    draft: Draft,
    rtt: Option<Span>,
    /// RTTs of the first and the last segment among the newly SACKed segments that were never retransmitted.
    sack_rtt: Option<(Span, Span)>,
}

impl Sender {
    pub(crate) fn new(config: Config, app: App, cc: Box<dyn Controller>, measure_from: Time) -> Self {
        let uses_headers = cc.header_bytes() > 0;
        let uses_timer = cc.uses_timer();
        Sender {
            offer: config.offer,
            control: Control::new(cc, config.initial_segments),
            config,
            phase: Phase::SynSent,
            handshake: Handshake::default(),
            app,
            app_wait: Time::NEVER,
            flight: Flight::new(),
            recovery: LossRecovery::new(),
            pacer: Pacer::new(Time::ZERO),
            last_sent: Time::ZERO,
            feedback: None,
            option_at: Time::ZERO,
            uses_headers,
            uses_timer,
            ts_recent: 0,
            fin_received: false,
            counters: Counters::default(),
            rtts: RttStats::new(measure_from),
            completed_at: Time::NEVER,
            acks: None,
        }
    }

    /// Sends or retransmits the SYN.
    pub(crate) fn connect(&mut self, io: &mut Io<'_>) {
        self.handshake.tries += 1;
        self.handshake.sent_at = io.now;
        let mut syn = self.packet(io, flag::SYN);
        syn.size = 60;
        if self.control.cc.wants_feedback() {
            syn.flags |= flag::RATE;
            let by_message = self.control.cc.is_fed_by_messages();
            let code = if by_message { RateCode::BY_MESSAGE } else { RateCode::UNASSIGNED };
            syn.rate_code = code.to_bits();
            syn.size += crate::packet::RATE_OPTION_BYTES as u16;
        }
        if self.config.ecn {
            syn.flags |= flag::ECE | flag::CWR;
        }
        self.add_header(io, &mut syn, false);
        io.send(syn);
        let wait = super::rtt::RTO_INITIAL.scale(1 << (self.handshake.tries - 1).min(6), 1);
        self.recovery.timer = Timer::Retransmit(io.now + wait);
    }

    /// Handles a packet from the receiver.
    pub(crate) fn on_packet(&mut self, io: &mut Io<'_>, p: &Packet) {
        if p.is(flag::RST) {
            self.phase = Phase::Closed;
            return;
        }
        if self.phase == Phase::Closed {
            // In TIME_WAIT, a repeated FIN shows that the sender's last ACK was lost. The sender sends this ACK again.
            if p.is(flag::FIN) {
                let ack = self.packet(io, flag::ACK | flag::FIN);
                io.send(ack);
            }
            return;
        }
        if self.phase == Phase::SynSent {
            if p.is(flag::SYN) {
                self.on_syn_ack(io, p);
            }
            return;
        }
        if p.is(flag::SYN) {
            // A repeated SYN-ACK shows that the last ACK of the handshake was lost. The sender sends this ACK again.
            let ack = self.packet(io, flag::ACK);
            io.send(ack);
            return;
        }
        self.ts_recent = p.ts;
        self.on_ack(io, p);
        if p.is(flag::FIN) {
            self.fin_received = true;
            let mut ack = self.packet(io, flag::ACK | flag::FIN);
            self.add_header(io, &mut ack, false);
            io.send(ack);
        }
        if self.fin_received && self.completed_at().is_some() {
            self.phase = Phase::Closed;
        }
    }

    /// Handles a notice, which is a separate message with a rate for this flow (PAC-3b).
    pub(crate) fn on_rate(&mut self, io: &mut Io<'_>, rate: Rate) {
        if self.phase == Phase::Closed {
            return;
        }
        self.feedback = Some(rate);
        if self.phase == Phase::Established {
            self.control.cc.on_feedback(io.now, rate, &mut self.control.window);
            self.control.window.cwnd = self.control.window.cwnd.max(1);
            self.transmit(io);
        }
    }

    /// Gets the congestion header of this packet from the controller.
    fn header_for(&mut self, now: Time, p: &Packet, again: bool) -> Header {
        let mut departing = Departing::new(now, u64::from(p.seq), self.config.mss as u32 + HEADER_BYTES);
        departing.syn = p.is(flag::SYN);
        departing.fin = p.is(flag::FIN) && p.payload == 0;
        departing.again = again;
        departing.srtt = self.flight.rtt.srtt;
        departing.min_rtt = self.flight.rtt.min;
        departing.rto = self.flight.rtt.rto();
        self.control.cc.header(&departing, &self.control.window)
    }

    #[inline]
    pub(super) fn add_header(&mut self, io: &mut Io<'_>, p: &mut Packet, again: bool) {
        if !self.uses_headers {
            return;
        }
        let header = self.header_for(io.now, p, again);
        if header != Header::None {
            io.packets.add_header(p, header);
        }
    }

    /// Passes a custom header to the congestion controller, if the ACK carries a copy of one. A custom header is a
    /// congestion header that another crate defines.
    #[inline(never)]
    fn pass_header(&mut self, io: &Io<'_>) {
        if let Some(header) = io.packets.arrived() {
            self.control.cc.on_header(io.now, header);
        }
    }

    /// Returns the time at which the sender's timer expires.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.recovery.deadline()
    }

    fn on_syn_ack(&mut self, io: &mut Io<'_>, p: &Packet) {
        if p.is(flag::HEADER) {
            self.pass_header(io);
        }
        self.phase = Phase::Established;
        self.ts_recent = p.ts;
        // With timestamps, the handshake gives an RTT sample even if the SYN was retransmitted. The timestamp echo
        // shows which SYN was answered.
        let is_first = self.handshake.tries == 1;
        let rtt = if is_first {
            Some(io.now.since(self.handshake.sent_at))
        } else {
            echo_rtt(io.timestamp(), p.ts_echo)
        };
        if let Some(rtt) = rtt {
            self.take_rtt(io.now, rtt);
        }
        self.config.ecn &= p.is(flag::ECE);
        // If the SYN-ACK has no rate, the rate from an earlier notice stays valid.
        self.feedback = read_rate(p).or(self.feedback);
        let mut connection = Connection::new(io.now, self.config.mss as u32 + HEADER_BYTES, rtt);
        connection.feedback = self.feedback;
        connection.feedback_possible = p.is(flag::RATE) || self.feedback.is_some();
        connection.echo = p.echo();
        connection.seed = self.config.seed;
        self.control.cc.on_established(&connection, &mut self.control.window);
        self.recovery.timer = Timer::Off;
        self.pacer = Pacer::new(io.now);
        let ack = self.packet(io, flag::ACK);
        io.send(ack);
        self.transmit(io);
    }

    /// Creates a packet with the header fields that all packets of the sender share.
    pub(super) fn packet(&self, io: &Io<'_>, flags: u16) -> Packet {
        let mut p = self.config.template.packet(HEADER_BYTES as u16);
        p.flags |= flags;
        p.seq = self.flight.board.nxt();
        p.ts = io.timestamp();
        p.ts_echo = self.ts_recent;
        p
    }

    fn on_ack(&mut self, io: &mut Io<'_>, p: &Packet) {
        if p.ack > self.flight.board.nxt() {
            return;
        }
        if p.is(flag::HEADER) {
            self.pass_header(io);
        }
        let prior_in_flight = self.flight.board.in_flight();
        let prior_delivered = self.flight.sampler.delivered;
        let mut progress = Progress {
            una_advanced: p.ack > self.flight.board.una,
            ece: self.config.ecn && p.is(flag::ECE),
            lost_before: self.flight.sampler.lost,
            ts: p.ts,
            ts_echo: p.ts_echo,
            ..Progress::default()
        };
        let feedback = read_rate(p);
        if feedback.is_some() {
            self.feedback = feedback;
        }

        self.flight.rack.begin_ack();
        if p.sacks > 0 {
            self.take_sacks(io.now, p, &mut progress);
        }
        self.take_cumulative(io, p.ack, &mut progress);
        if progress.una_advanced {
            self.flight.rtt.reset_backoff();
        }
        self.flight.rack.adapt_window(self.flight.board.una, self.flight.board.nxt());
        if self.recovery.probe.is_some() {
            self.recovery.on_probe_ack(io.now, p.ack, &progress, &self.flight, &mut self.control);
        }

        // As in Linux tcp_ack_is_dubious().
        let is_alert = progress.data_sacked || progress.ece || progress.dsack;
        let is_dubious = !progress.una_advanced || is_alert || self.recovery.state != State::Open;
        let delivered_now = (self.flight.sampler.delivered - prior_delivered) as u32;
        // The sender computes the receive window from the segments that the ACK reports.
        self.offer.on_ack(self.flight.board.una, self.flight.board.sacked_out, delivered_now);
        let rexmit = if is_dubious {
            self.recovery.update_state(io.now, &progress, &mut self.flight, &mut self.control)
        } else {
            Rexmit::Lost
        };

        let rate = self.flight.sampler.finish(io.now, &progress.draft, self.flight.rtt.min);
        self.update_window(io.now, &progress, delivered_now, prior_in_flight, rate, (feedback, p.echo()));
        if self.acks.is_some() {
            self.record_ack(io.now, &progress, delivered_now, &rate);
        }
        // A SACK postpones the timeout only if it reports a segment that was sent before the last transmission of the
        // first unacknowledged segment. Otherwise SACKs of later segments could postpone the timeout forever, and a
        // lost retransmission would never time out (Linux tcp_clean_rtx_queue).
        let head_sent = self.flight.board.get(self.flight.board.una).map(|s| s.sent);
        let before_head = |(first, _): (Span, Span)| head_sent.is_some_and(|t| first > io.now.since(t));
        if progress.una_advanced
            || progress.sack_rtt.is_some_and(before_head)
            || progress.data_sacked && self.recovery.has_pending_probe()
            || self.deadline() == Time::NEVER
        {
            self.recovery.arm(io.now, &self.flight);
        }
        if self.flight.board.packets_out() == 0 && self.app.is_finished() && self.completed_at == Time::NEVER
        {
            self.completed_at = io.now;
        }
        self.send_after_ack(io, rexmit);
    }

    /// Returns the time at which the last byte was acknowledged.
    pub(crate) fn completed_at(&self) -> Option<Time> {
        Some(self.completed_at).filter(|at| *at < Time::NEVER)
    }

    /// Adds a row to the log of ACKs. `acked` is the number of segments that the ACK has newly delivered.
    #[cold]
    fn record_ack(&mut self, now: Time, progress: &Progress, acked: u32, rate: &RateSample) {
        let Some(recorder) = &mut self.acks else { return };
        let window = &self.control.window;
        let mut phase = None;
        self.control.cc.trace(&mut |name, value| {
            if name == "phase" {
                phase = Some(value);
            }
        });
        let payload_bits = f64::from(rate.delivered) * f64::from(self.config.mss) * 8.0;
        let is_valid = rate.delivered > 0 && rate.interval > Span::ZERO;
        recorder.add(AckRow {
            at: now,
            acked,
            lost: (self.flight.sampler.lost - progress.lost_before) as u32,
            rtt: progress.rtt,
            srtt: self.flight.rtt.srtt,
            delivery: is_valid.then(|| payload_bits / rate.interval.as_secs_f64()),
            app_limited: rate.app_limited,
            in_flight: self.flight.board.in_flight(),
            cwnd: window.cwnd,
            ssthresh: Some(window.ssthresh).filter(|s| *s < INFINITE_SSTHRESH),
            pacing: window.pacing_rate.map(|rate| rate.as_bits_per_sec()),
            state: self.recovery.state as u32,
            phase,
        });
    }

    /// Marks the segments that the SACK blocks report, and detects a DSACK (RFC 2883).
    fn take_sacks(&mut self, now: Time, p: &Packet, progress: &mut Progress) {
        let blocks = &p.sack[..p.sacks as usize];
        let mut first = 0;
        if let Some(&d) = blocks.first() {
            let inside = blocks.get(1).is_some_and(|b| d.start >= b.start && d.end <= b.end);
            if d.end <= p.ack || inside {
                progress.dsack = true;
                self.counters.spurious += 1;
                // If DSACKs have reported more duplicates than there were retransmissions, the network duplicates
                // packets. In this case, a DSACK does not show a spurious retransmission (Linux tcp_dsack_seen).
                if self.counters.spurious <= self.counters.retransmits {
                    self.recovery.undo.on_dsack(d, p.ack);
                    self.flight.rack.on_dsack();
                }
                first = 1;
            }
        }
        for &block in &blocks[first..] {
            for part in self.flight.board.new_parts(block) {
                for seq in part.start.max(self.flight.board.una)..part.end.min(self.flight.board.nxt()) {
                    if let Some(segment) = self.flight.board.sack(seq) {
                        progress.data_sacked = true;
                        if !segment.was_retransmitted() {
                            progress.original_sacked |= seq < self.recovery.high_seq;
                            let rtt = now.since(segment.sent);
                            progress.sack_rtt = Some((progress.sack_rtt.map_or(rtt, |r| r.0), rtt));
                        }
                        self.flight.deliver(now, seq, &segment, &mut progress.draft);
                    }
                }
            }
        }
        self.flight.board.store_blocks(&blocks[first..]);
    }

    /// Removes acknowledged segments from the scoreboard, and takes the RTT sample of the ACK (Linux
    /// `tcp_clean_rtx_queue`).
    #[inline]
    fn take_cumulative(&mut self, io: &Io<'_>, ack: u32, progress: &mut Progress) {
        let now = io.now;
        let mut acked: Option<(Span, Span)> = None;
        let mut retransmitted = false;
        while self.flight.board.una < ack {
            let seq = self.flight.board.una;
            let Some(segment) = self.flight.board.pop() else { break };
            retransmitted |= segment.was_retransmitted();
            if segment.is_sacked() {
                continue;
            }
            if !segment.was_retransmitted() {
                let rtt = now.since(segment.sent);
                acked = Some((acked.map_or(rtt, |r| r.0), rtt));
                // For F-RTO (RFC 5682): the ACK delivers a segment that was sent before the timeout and never
                // retransmitted.
                progress.original_sacked |= seq < self.recovery.high_seq;
            } else if progress.ts_echo != 0 && before(progress.ts_echo, Timestamps::clock(segment.sent)) {
                // The ACK echoes a time before the retransmission, so it is for an earlier transmission. It gives RACK
                // no information about the retransmission (Linux `tcp_skb_spurious_retrans`).
                self.flight.sampler.deliver(&segment, &mut progress.draft);
                continue;
            }
            self.flight.deliver(now, seq, &segment, &mut progress.draft);
        }
        // Karn's rule: a cumulative ACK that covers a retransmission gives no RTT sample. In this case, the SACKs give
        // the RTT. If there is no RTT from SACKs, the timestamp echo gives the RTT.
        let acked = acked.filter(|_| !retransmitted);
        let echo = || {
            let rtt = echo_rtt(io.timestamp(), progress.ts_echo).filter(|_| progress.una_advanced)?;
            Some((rtt, rtt))
        };
        // As in Linux, the RTT of the first segment that an ACK covers updates srtt. The RTT of the last segment is
        // passed to the controller.
        let Some((first, _)) = acked.or(progress.sack_rtt).or_else(echo) else { return };
        let last = progress.sack_rtt.or(acked).map_or(first, |r| r.1);
        progress.rtt = Some(last);
        self.flight.rtt.min = self.flight.rtt.min.min(last);
        self.take_rtt(now, first);
    }

    fn take_rtt(&mut self, now: Time, rtt: Span) {
        self.flight.rtt.sample(rtt);
        self.rtts.add(now, rtt);
    }

    /// Updates the window (Linux `tcp_cong_control`).
    fn update_window(
        &mut self,
        now: Time,
        progress: &Progress,
        acked: u32,
        prior_in_flight: u32,
        rate: RateSample,
        (feedback, echo): (Option<Rate>, Option<Echo>),
    ) {
        let lost = (self.flight.sampler.lost - progress.lost_before) as u32;
        let by_prr = self.recovery.uses_prr(&self.control);
        let mut ack = Ack::new(now, acked);
        ack.lost = lost;
        ack.delivered = self.flight.sampler.delivered;
        ack.total_lost = self.flight.sampler.lost;
        ack.snd_una = self.flight.board.una as u64;
        ack.snd_nxt = self.flight.board.nxt() as u64;
        ack.prior_in_flight = prior_in_flight;
        ack.in_flight = self.flight.board.in_flight();
        ack.rtt = progress.rtt;
        ack.srtt = self.flight.rtt.srtt;
        ack.min_rtt = self.flight.rtt.min;
        ack.rate = rate;
        ack.state = self.recovery.state;
        ack.cwnd_limited = self.control.is_window_limited();
        // `delayed` means that the ACK is for the only segment in flight. The receiver may have delayed such an ACK.
        // Linux sets this flag only if the segment is shorter than the MSS, but the simulator sets it for any length.
        ack.delayed = acked == 1 && prior_in_flight == 1 && progress.una_advanced;
        ack.ece = progress.ece;
        ack.feedback = feedback;
        ack.echo = echo;
        ack.timestamps = read_timestamps(progress.ts, progress.ts_echo);
        self.control.cc.on_sample(&ack);
        if by_prr {
            let in_flight = self.flight.board.in_flight();
            let w = self.recovery.prr.window(
                acked,
                lost,
                progress.una_advanced,
                in_flight,
                self.control.window.ssthresh,
            );
            self.control.window.cwnd = w.unwrap_or(self.control.window.cwnd).max(1);
            return;
        }
        // As in Linux tcp_may_raise_cwnd: if no reordering was seen, the window grows only after an ACK that advances
        // `una`.
        let progressed = progress.una_advanced || (self.flight.rack.reordering_seen && acked > 0);
        if !progressed && self.control.is_window_of_transport() {
            return;
        }
        self.control.cc.on_ack(&ack, &mut self.control.window);
        self.control.window.cwnd = self.control.window.cwnd.max(1);
        if self.control.is_window_of_transport() {
            // As in Linux `tcp_cong_avoid`: an unused window does not shrink while ACKs arrive.
            self.control.postpone_shrinking(now);
        }
    }
}

/// Returns the timestamps of an ACK; `None` without an echo.
fn read_timestamps(ts: u32, ts_echo: u32) -> Option<Timestamps> {
    (ts_echo != 0).then_some(Timestamps { value: ts, echo: ts_echo })
}

/// Returns the RTT that the timestamp echo gives. It is at least one tick (RFC 7323, RTTM).
fn echo_rtt(now: u32, ts_echo: u32) -> Option<Span> {
    (ts_echo != 0 && !before(now, ts_echo))
        .then(|| Timestamps::TICK.scale(now.wrapping_sub(ts_echo).max(1).into(), 1))
}

/// Returns the rate in a packet's rate option. If there is none, returns the rate in the packet's echo of a congestion
/// header.
pub(super) fn read_rate(p: &Packet) -> Option<Rate> {
    if p.is(flag::RATE)
        && let Some(rate) = RateCode::from_bits(p.rate_code).decode()
    {
        return Some(rate);
    }
    match p.echo() {
        Some(Echo::Rate(rate)) => Some(rate),
        _ => None,
    }
}
