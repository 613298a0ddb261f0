//! Reports a flow's events to the controller as packets.
//!
//! The program records a flow's beginning and end as flags and times, but controllers expect packets. So the few
//! packets that open and close a flow, and the times at which they passed, are reconstructed from the flags and times.

use narrows_control::feedback::header::Header;
use narrows_control::rate::aggregate::Aggregated;
use narrows_control::rate::{Action, FlowKey, PacketInfo, PortCounters, RateOption, TcpFlags};
use narrows_control::units::{Bytes, Span, Time};

use super::shadow::Shadow;
use super::table::{Flags, Tags, Tail};

const SYN: TcpFlags = TcpFlags { syn: true, ack: false, fin: false, rst: false };
const SYN_ACK: TcpFlags = TcpFlags { syn: true, ack: true, fin: false, rst: false };
const ACK: TcpFlags = TcpFlags { syn: false, ack: true, fin: false, rst: false };
const FIN: TcpFlags = TcpFlags { syn: false, ack: true, fin: true, rst: false };
const RST: TcpFlags = TcpFlags { syn: false, ack: false, fin: false, rst: true };

/// A controller, and the arguments of a call.
pub(super) struct Teller<'a> {
    pub(super) key: FlowKey,
    pub(super) tags: Tags,
    pub(super) controller: &'a mut dyn Aggregated,
    pub(super) counters: &'a PortCounters,
    pub(super) actions: &'a mut Vec<Action>,
}

impl Teller<'_> {
    fn packet(&self, flags: TcpFlags, speaks: bool) -> PacketInfo {
        PacketInfo {
            key: self.key,
            size: Bytes::ZERO,
            payload: Bytes::ZERO,
            flags,
            option: if speaks { RateOption::Unassigned } else { RateOption::Absent },
            unlimited: None,
            seq: 0,
            timestamps: None,
            header: Header::None,
            vlan: self.tags.vlan,
            mark: self.tags.mark,
        }
    }

    fn sent(&mut self, at: Time, packet: &PacketInfo) {
        self.controller.on_data(at, packet, self.counters, self.actions);
    }

    fn returned(&mut self, at: Time, packet: &PacketInfo) {
        // The rate in its answer is read separately.
        self.controller.on_reverse(at, packet, self.actions);
    }

    /// Reports that the flow has begun.
    pub(super) fn beginning(&mut self, now: Time, shadow: &Shadow, tail: &Tail) {
        let speaks = shadow.flags.has(Flags::RATED);
        if shadow.flags.has(Flags::GUESSED) {
            let mut data = self.packet(ACK, speaks);
            data.payload = Bytes::new(1);
            return self.sent(now, &data);
        }
        let by_receiver = shadow.flags.has(Flags::OPENED_BY_RECEIVER);
        let (half, _) = if by_receiver { tail.rtt_sender } else { tail.rtt_receiver };
        let syn_at = Time::from_nanos(now.as_nanos().saturating_sub(u64::from(half) * 1000));
        let (syn, syn_ack) = (self.packet(SYN, speaks), self.packet(SYN_ACK, speaks));
        if shadow.flags.has(Flags::ADOPTED) && !shadow.flags.has(Flags::CONFIRMED) && !by_receiver {
            // The SYN-ACK was not seen, and never will be if ACKs take another path: those need an
            // advertisement (BRF-63).
            self.sent(now, &syn);
            let mut data = self.packet(ACK, speaks);
            data.payload = Bytes::new(1);
            return self.sent(now, &data);
        }
        // A SYN that was seen twice gives no RTT, nor does one whose SYN-ACK got no slot.
        let (_, samples) = if by_receiver { tail.rtt_sender } else { tail.rtt_receiver };
        let times = if shadow.flags.has(Flags::SYN_REPEATED) || samples == 0 { 2 } else { 1 };
        for _ in 0..times {
            if by_receiver { self.returned(syn_at, &syn) } else { self.sent(syn_at, &syn) }
        }
        if by_receiver { self.sent(now, &syn_ack) } else { self.returned(now, &syn_ack) }
    }

    /// Reports new flags.
    pub(super) fn events(&mut self, now: Time, shadow: &Shadow, news: Flags, tail: &Tail) {
        let plain = self.packet(ACK, news.has(Flags::SPEAKS_BRF));
        if news.has(Flags::RST) {
            let reset = self.packet(RST, false);
            return self.sent(now, &reset);
        }
        let by_receiver = shadow.flags.has(Flags::OPENED_BY_RECEIVER);
        // The packet that completes the handshake gives the RTT of the opener's side, if it is reported with
        // its own time.
        let completed = |(us, n): (u32, u16)| match n {
            0 => now,
            _ => (shadow.opened + Span::from_micros(u64::from(us))).min(now),
        };
        if news.has(Flags::SENDER_SEEN) {
            let at = if by_receiver { now } else { completed(tail.rtt_sender) };
            self.sent(at, &plain);
        } else if news.has(Flags::SPEAKS_BRF) {
            self.sent(now, &plain);
        }
        if news.has(Flags::RECEIVER_SEEN) {
            let at = if by_receiver { completed(tail.rtt_receiver) } else { now };
            let ack = self.packet(ACK, false);
            self.returned(at, &ack);
        }
        if news.has(Flags::FIN_SENDER) {
            let fin = self.packet(FIN, false);
            self.sent(now, &fin);
        }
        if news.has(Flags::FIN_RECEIVER) {
            let fin = self.packet(FIN, false);
            self.returned(now, &fin);
        }
    }

    /// Reports that packets passed, so that a flow without data does not expire.
    pub(super) fn alive(&mut self, now: Time) {
        let ack = self.packet(ACK, false);
        self.sent(now, &ack);
    }
}
