//! The receiving end. It reassembles the data, sends delayed ACKs after an initial quick-ACK phase, and reports SACKs
//! and DSACKs (RFC 2018, 2883) and ECN marks.
//!
//! `Flow` calls the receiver for each packet that travels from the sender to the receiver, and when the receiver's
//! timer expires.

use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::header::{Custom, Echo, Header};
use narrows_control::units::{Span, Time};

use super::Io;
use super::offer::Opening;
use crate::engine::Ring;
use crate::packet::{HEADER_BYTES, Packet, RATE_OPTION_BYTES, SackBlock, Template, flag, sack_bytes};

/// Delay of a delayed ACK (Linux TCP_DELACK_MIN).
const DELAYED_ACK: Span = Span::from_millis(40);
/// Number of ACKs without delay in a quick-ACK phase (Linux TCP_MAX_QUICKACKS).
const QUICK_ACKS: u32 = 16;
/// Number of full segments that a delayed ACK covers.
const SEGMENTS_PER_ACK: u32 = 2;
/// Number of SACK blocks that the receiver stores (Linux selective_acks).
const BLOCKS: usize = 4;
/// Number of transmissions of a SYN-ACK or FIN before the receiver gives up.
const TRIES: u32 = 8;

/// State of the connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Listen,
    SynReceived,
    Established,
    /// All data and the FIN have arrived. The receiver has sent its own FIN, but has not got an ACK for it yet.
    LastAck,
    Closed,
}

/// The response to received congestion headers, which an ACK carries to the sender.
#[derive(Default)]
enum Answer {
    #[default]
    Nothing,
    /// The echo of a congestion header that `narrows-control` defines.
    Echo(Echo),
    /// A copy of the newest custom header (a congestion header that another crate defines).
    Copy(Box<Custom>),
    /// The copy was sent. Its memory is kept for the next copy.
    Sent(Box<Custom>),
}

impl Answer {
    /// Writes the response into an ACK, and adds the response's bytes to the ACK's size.
    #[inline(never)]
    fn write(&self, io: &mut Io<'_>, ack: &mut Packet) {
        match self {
            Answer::Nothing | Answer::Sent(_) => {}
            Answer::Echo(echo) => ack.set_echo(*echo),
            Answer::Copy(header) => io.packets.add_copy(ack, **header),
        }
    }

    /// Returns the new state after the response was sent.
    fn after_sending(self) -> Self {
        match self {
            Answer::Nothing | Answer::Echo(_) => Answer::Nothing,
            Answer::Copy(memory) | Answer::Sent(memory) => Answer::Sent(memory),
        }
    }

    /// Returns a response with a copy of this header.
    fn copy(self, header: &Custom) -> Self {
        let memory = match self {
            Answer::Copy(memory) | Answer::Sent(memory) => Some(memory),
            Answer::Nothing | Answer::Echo(_) => None,
        };
        let Some(mut memory) = memory else { return Answer::Copy(Box::new(*header)) };
        *memory = *header;
        Answer::Copy(memory)
    }
}

/// The receiving end of a connection.
pub(crate) struct Receiver {
    /// Header fields that all packets of the receiver share.
    template: Template,
    pub(crate) phase: Phase,
    ecn: bool,
    /// Whether the receiver echoes the CE mark of each packet exactly (RFC 8257). If not, a CE mark makes the receiver
    /// set ECE in all ACKs until the sender sets CWR.
    exact_ce: bool,
    /// Whether the sender has requested rates. If it has, the SYN-ACK carries the rate option.
    rate_option: bool,
    /// Whether ACKs after the SYN-ACK also carry the rate option.
    rate_in_acks: bool,
    /// The response to received congestion headers, which the next ACK carries.
    answer: Answer,
    /// The next segment that the receiver expects.
    next: u32,
    /// One element for each segment from `next` on. The element is 0 if the segment is missing. Otherwise it is the
    /// segment's payload in bytes plus 1.
    out_of_order: Ring<u16>,
    /// SACK blocks, most recent first.
    blocks: [SackBlock; BLOCKS],
    block_count: usize,
    duplicate: Option<SackBlock>,
    fin_at: Option<u32>,
    /// The window, in segments.
    pub(crate) window: Opening,
    /// Number of segments received since the receiver last sent an ACK.
    unacked: u32,
    /// Number of ACKs that the receiver will still send without delay.
    quick: u32,
    ack_at: Time,
    last_acked: u32,
    ts_recent: u32,
    echo_ce: bool,
    last_data: Time,
    /// The retransmission timeout of the SYN-ACK and the FIN. It is computed from the RTT of the handshake. Before the
    /// handshake, it is the initial timeout of RFC 6298.
    rto: Span,
    syn_ack_at: Time,
    tries: u32,
    retry_at: Time,
    /// Number of application bytes delivered in order so far.
    pub(crate) delivered: u64,
    /// Number of L3 bytes received, including duplicates.
    pub(crate) received_bytes: u64,
    /// Time at which the last byte arrived. `None` while the stream is incomplete.
    pub(crate) completed_at: Option<Time>,
}

impl Receiver {
    pub(crate) fn new(template: Template, ecn: bool, exact_ce: bool, window: Opening) -> Self {
        Receiver {
            template,
            phase: Phase::Listen,
            ecn,
            exact_ce,
            rate_option: false,
            rate_in_acks: false,
            answer: Answer::Nothing,
            next: 0,
            out_of_order: Ring::new(),
            blocks: [SackBlock::default(); BLOCKS],
            block_count: 0,
            duplicate: None,
            fin_at: None,
            window,
            unacked: 0,
            quick: QUICK_ACKS,
            ack_at: Time::NEVER,
            last_acked: 0,
            ts_recent: 0,
            echo_ce: false,
            last_data: Time::ZERO,
            rto: super::rtt::RTO_INITIAL,
            syn_ack_at: Time::ZERO,
            tries: 0,
            retry_at: Time::NEVER,
            delivered: 0,
            received_bytes: 0,
            completed_at: None,
        }
    }

    /// Returns the header fields that all packets of the receiver share.
    pub(crate) fn template(&self) -> &Template {
        &self.template
    }

    /// Whether the connection is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Returns the time at which the receiver's timer expires.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.ack_at.min(self.retry_at)
    }

    pub(crate) fn on_packet(&mut self, io: &mut Io<'_>, p: &Packet) {
        if p.is(flag::SYN) {
            self.on_syn(io, p);
            return;
        }
        if self.phase == Phase::SynReceived {
            self.phase = Phase::Established;
            self.retry_at = Time::NEVER;
            self.tries = 0;
            self.rto = super::rtt::RTO_MIN + io.now.since(self.syn_ack_at);
            self.answer = Answer::Nothing;
        }
        if self.phase == Phase::LastAck && p.payload == 0 && p.is(flag::FIN) && p.seq > self.next - 1 {
            self.phase = Phase::Closed;
            self.retry_at = Time::NEVER;
            self.ack_at = Time::NEVER;
            return;
        }
        if p.payload > 0 || p.is(flag::FIN) {
            self.on_data(io, p);
        }
    }

    fn on_syn(&mut self, io: &mut Io<'_>, p: &Packet) {
        if !matches!(self.phase, Phase::Listen | Phase::SynReceived) {
            return;
        }
        self.phase = Phase::SynReceived;
        self.ts_recent = p.ts;
        self.rate_option = p.is(flag::RATE);
        self.rate_in_acks = self.rate_option && RateCode::from_bits(p.rate_code) != RateCode::BY_MESSAGE;
        self.answer = Answer::Nothing;
        self.read_header(io, p);
        self.ecn &= p.is(flag::ECE);
        self.send_syn_ack(io);
    }

    /// Writes the response to received congestion headers into an ACK. Only the check for a response is inlined. An ACK
    /// without a response therefore needs no call.
    #[inline]
    fn write_answer(&mut self, io: &mut Io<'_>, ack: &mut Packet) {
        if !matches!(self.answer, Answer::Nothing) {
            self.send_answer(io, ack);
        }
    }

    #[inline(never)]
    fn send_answer(&mut self, io: &mut Io<'_>, ack: &mut Packet) {
        self.answer.write(io, ack);
        self.answer = std::mem::take(&mut self.answer).after_sending();
    }

    /// Stores the response to the congestion header of a packet, for the next ACK.
    #[inline(never)]
    fn read_header(&mut self, io: &Io<'_>, p: &Packet) {
        let header = io.packets.arrived().map_or_else(|| p.header(), |custom| Header::Custom(*custom));
        self.answer = match &header {
            Header::Custom(custom) => std::mem::take(&mut self.answer).copy(custom),
            header => {
                let unsent = if let Answer::Echo(echo) = self.answer { Some(echo) } else { None };
                header.echo(unsent).map_or(Answer::Nothing, Answer::Echo)
            }
        };
        if header.is_urgent() {
            self.quick = self.quick.max(1);
        }
    }

    fn send_syn_ack(&mut self, io: &mut Io<'_>) {
        let mut p = self.packet(io, flag::SYN | flag::ACK);
        p.size = 60;
        if self.rate_option {
            p.flags |= flag::RATE;
            p.rate_code = RateCode::UNASSIGNED.to_bits();
            p.size += RATE_OPTION_BYTES as u16;
        }
        if self.ecn {
            p.flags |= flag::ECE;
        }
        // The response is kept, because the SYN-ACK may have to be retransmitted.
        self.answer.write(io, &mut p);
        io.send(p);
        self.syn_ack_at = io.now;
        self.schedule_retry(io.now);
    }

    fn schedule_retry(&mut self, now: Time) {
        self.retry_at = now + self.rto.scale(1 << self.tries.min(6), 1);
        self.tries += 1;
    }

    #[inline]
    fn on_data(&mut self, io: &mut Io<'_>, p: &Packet) {
        self.received_bytes += p.size as u64;
        if io.now.since(self.last_data) > self.rto {
            // After a pause, the sender may restart with a small window. The receiver therefore does not delay the next
            // ACKs (Linux tcp_event_data_recv).
            self.quick = self.quick.max(QUICK_ACKS);
        }
        self.last_data = io.now;
        if self.ecn && self.exact_ce {
            let ce = p.is(flag::CE);
            if ce != self.echo_ce {
                // The CE mark of this packet differs from that of the earlier segments. The receiver first acknowledges
                // the earlier segments and echoes their mark (RFC 8257 section 3.2). As in Linux, it then acknowledges
                // this packet without delay and echoes this packet's mark.
                if self.unacked > 0 {
                    self.send_ack(io);
                }
                self.echo_ce = ce;
                self.quick = self.quick.max(1);
            }
        } else if self.ecn {
            if p.is(flag::CWR) {
                self.echo_ce = false;
                self.quick = self.quick.max(1);
            }
            if p.is(flag::CE) && !self.echo_ce {
                // Send the ACK without delay, because the sender's window may be very small (Linux __tcp_ecn_check_ce).
                self.echo_ce = true;
                self.quick = self.quick.max(2);
            }
        }
        if p.is(flag::HEADER) {
            self.read_header(io, p);
        }
        // RFC 7323 section 4.3: echo the timestamp of the first segment that the next ACK acknowledges.
        if p.seq <= self.last_acked && !super::before(p.ts, self.ts_recent) {
            self.ts_recent = p.ts;
        }
        if p.is(flag::FIN) {
            self.fin_at = Some(p.seq);
        }
        if p.seq == self.next {
            let in_order = self.out_of_order.is_empty();
            self.grow_window();
            self.accept(p.payload);
            if !in_order {
                self.out_of_order.pop_front();
                self.drain();
            }
            self.unacked += 1;
            self.finish_if_complete(io);
            if self.phase == Phase::LastAck {
                return;
            }
            if in_order && self.quick == 0 && self.unacked < SEGMENTS_PER_ACK {
                if self.ack_at == Time::NEVER {
                    self.ack_at = io.now + DELAYED_ACK;
                }
                return;
            }
        } else if p.seq < self.next {
            self.duplicate = Some(SackBlock { start: p.seq, end: p.seq + 1 });
            self.quick = self.quick.max(QUICK_ACKS);
        } else {
            self.store(p.seq, p.payload);
        }
        self.send_ack(io);
    }

    /// Enlarges the window. While the window grows, the receiver acknowledges each segment without delay (Linux
    /// tcp_grow_window).
    fn grow_window(&mut self) {
        if self.window.grow(1) {
            self.quick |= 1;
        }
    }

    fn accept(&mut self, payload: u16) {
        self.next += 1;
        self.delivered += payload as u64;
    }

    /// Removes the stored segments that are in order now.
    fn drain(&mut self) {
        while let Some(&stored) = self.out_of_order.front() {
            if stored == 0 {
                break;
            }
            self.out_of_order.pop_front();
            self.accept(stored - 1);
        }
        while self.out_of_order.back() == Some(&0) {
            self.out_of_order.pop_back();
        }
        let next = self.next;
        self.keep_blocks(|b| b.end > next);
    }

    /// Stores an out-of-order segment and reports it in the first SACK block.
    fn store(&mut self, seq: u32, payload: u16) {
        let at = (seq - self.next) as usize;
        if at >= self.out_of_order.len() {
            self.out_of_order.resize(at + 1, 0);
        }
        if self.out_of_order[at] != 0 {
            self.duplicate = Some(SackBlock { start: seq, end: seq + 1 });
            return;
        }
        self.out_of_order[at] = payload + 1;
        self.grow_window();
        // As in Linux tcp_sack_new_ofo_skb: extend an adjacent block, merge blocks, and move the block to the front.
        let mut block = SackBlock { start: seq, end: seq + 1 };
        for b in &self.blocks[..self.block_count] {
            if b.start <= block.end && block.start <= b.end {
                block = SackBlock { start: b.start.min(block.start), end: b.end.max(block.end) };
            }
        }
        self.keep_blocks(|b| b.end < block.start || block.end < b.start);
        let keep = self.block_count.min(BLOCKS - 1);
        self.blocks.copy_within(0..keep, 1);
        self.blocks[0] = block;
        self.block_count = keep + 1;
    }

    fn keep_blocks(&mut self, keep: impl Fn(&SackBlock) -> bool) {
        let mut n = 0;
        for i in 0..self.block_count {
            if keep(&self.blocks[i]) {
                self.blocks[n] = self.blocks[i];
                n += 1;
            }
        }
        self.block_count = n;
    }

    fn finish_if_complete(&mut self, io: &mut Io<'_>) {
        if self.fin_at.is_some_and(|fin| self.next > fin) && self.completed_at.is_none() {
            self.completed_at = Some(io.now);
            self.phase = Phase::LastAck;
            self.send_fin(io);
        }
    }

    fn send_fin(&mut self, io: &mut Io<'_>) {
        self.ack_at = Time::NEVER;
        let mut p = self.packet(io, flag::ACK | flag::FIN);
        self.write_answer(io, &mut p);
        io.send(p);
        self.schedule_retry(io.now);
    }

    fn send_ack(&mut self, io: &mut Io<'_>) {
        self.quick = self.quick.saturating_sub(1);
        self.unacked = 0;
        self.ack_at = Time::NEVER;
        let mut p = self.packet(io, flag::ACK);
        if self.echo_ce {
            p.flags |= flag::ECE;
        }
        let duplicate = self.duplicate.take();
        let all = duplicate.iter().chain(&self.blocks[..self.block_count]);
        // A TCP header with the rate option has room for only two SACK blocks. At 10 % loss, every ACK has more than
        // two blocks to report. The third block is left out and the option is kept. Without the option, the sender
        // would assume that its switch has failed. (BRF-11 leaves the choice open.)
        let room = if self.rate_in_acks { Packet::SACKS_BESIDE_RATE } else { p.sack.len() };
        let mut n = 0;
        for (slot, &block) in p.sack.iter_mut().zip(all).take(room) {
            *slot = block;
            n += 1;
        }
        p.sacks = n as u8;
        p.size += sack_bytes(n) as u16;
        if self.rate_in_acks {
            p.flags |= flag::RATE;
            p.rate_code = RateCode::UNASSIGNED.to_bits();
            p.size += RATE_OPTION_BYTES as u16;
        }
        self.write_answer(io, &mut p);
        io.send(p);
    }

    #[inline]
    fn packet(&mut self, io: &Io<'_>, flags: u16) -> Packet {
        let mut p = self.template.packet(HEADER_BYTES as u16);
        p.flags |= flags;
        p.ack = self.next;
        p.ts = io.timestamp();
        p.ts_echo = self.ts_recent;
        self.last_acked = self.next;
        p
    }

    /// Handles the timer. The caller must check that the timer has expired.
    pub(crate) fn on_timer(&mut self, io: &mut Io<'_>) {
        if self.ack_at <= io.now {
            self.send_ack(io);
        }
        if self.retry_at <= io.now {
            self.retry_at = Time::NEVER;
            match self.phase {
                _ if self.tries >= TRIES => self.phase = Phase::Closed,
                Phase::SynReceived => self.send_syn_ack(io),
                Phase::LastAck => self.send_fin(io),
                _ => {}
            }
        }
    }
}
