//! Reports the events of a flow to the controller.
//!
//! The program records a flow's beginning and end as flags and times. Controllers need an event for each packet that
//! opens or closes a flow, with its time.

use narrows_control::rate::aggregate::Aggregated;
use narrows_control::rate::{Action, FlowEvent, FlowKey, PortCounters, Segment, Side};
use narrows_control::units::{Span, Time};

use super::shadow::Shadow;
use super::table::{Flags, Tags, Tail};

/// Reports the events of one flow. Has the values that each report needs.
pub(super) struct Teller<'a> {
    pub(super) key: FlowKey,
    pub(super) tags: Tags,
    pub(super) controller: &'a mut dyn Aggregated,
    pub(super) counters: &'a PortCounters,
    pub(super) actions: &'a mut Vec<Action>,
}

impl Teller<'_> {
    fn event(&self, from: Side, segment: Segment, follows_rates: bool) -> FlowEvent {
        FlowEvent {
            key: self.key,
            from,
            segment,
            has_data: false,
            follows_rates,
            timestamps: None,
            vlan: self.tags.vlan,
            mark: self.tags.mark,
        }
    }

    fn report(&mut self, at: Time, event: &FlowEvent) {
        self.controller.on_event(at, event, self.counters, self.actions);
    }

    /// Reports a packet without data and without any sign that its sender applies rates.
    fn passed(&mut self, at: Time, from: Side, segment: Segment) {
        let event = self.event(from, segment, false);
        self.report(at, &event);
    }

    fn data(&mut self, at: Time, follows_rates: bool) {
        let event = FlowEvent { has_data: true, ..self.event(Side::Sender, Segment::Plain, follows_rates) };
        self.report(at, &event);
    }

    /// Reports that the flow has begun.
    pub(super) fn beginning(&mut self, now: Time, shadow: &Shadow, tail: &Tail) {
        let speaks = shadow.flags.has(Flags::RATED);
        if shadow.flags.has(Flags::GUESSED) {
            return self.data(now, speaks);
        }
        let by_receiver = shadow.flags.has(Flags::OPENED_BY_RECEIVER);
        let (half, _) = if by_receiver { tail.rtt_sender } else { tail.rtt_receiver };
        let syn_at = Time::from_nanos(now.as_nanos().saturating_sub(u64::from(half) * 1000));
        let opener = if by_receiver { Side::Receiver } else { Side::Sender };
        let syn = self.event(opener, Segment::Syn, speaks);
        let syn_ack = self.event(opener.other(), Segment::SynAck, speaks);
        if shadow.flags.has(Flags::ADOPTED) && !shadow.flags.has(Flags::CONFIRMED) && !by_receiver {
            // The SYN-ACK was not seen, so do not report it. Perhaps the ACKs take another path. In this case, the
            // switch on that path needs an advertisement (BRF-63).
            self.report(now, &syn);
            return self.data(now, speaks);
        }
        // If the SYN was repeated, or the SYN-ACK got no slot, the handshake gives no RTT. Report the SYN twice, so
        // that the controller takes no sample.
        let (_, samples) = if by_receiver { tail.rtt_sender } else { tail.rtt_receiver };
        let times = if shadow.flags.has(Flags::SYN_REPEATED) || samples == 0 { 2 } else { 1 };
        for _ in 0..times {
            self.report(syn_at, &syn);
        }
        self.report(now, &syn_ack);
    }

    /// Reports the events of the flags `news`.
    pub(super) fn events(&mut self, now: Time, shadow: &Shadow, news: Flags, tail: &Tail) {
        if news.has(Flags::RST) {
            return self.passed(now, Side::Sender, Segment::Rst);
        }
        let plain = self.event(Side::Sender, Segment::Plain, news.has(Flags::SPEAKS_BRF));
        let by_receiver = shadow.flags.has(Flags::OPENED_BY_RECEIVER);
        // The last packet of the handshake gives the RTT between the switch and the SYN's sender. Report it with the
        // time at which it passed.
        let completed = |(us, n): (u32, u16)| match n {
            0 => now,
            _ => (shadow.opened + Span::from_micros(u64::from(us))).min(now),
        };
        if news.has(Flags::SENDER_SEEN) {
            let at = if by_receiver { now } else { completed(tail.rtt_sender) };
            self.report(at, &plain);
        } else if news.has(Flags::SPEAKS_BRF) {
            self.report(now, &plain);
        }
        if news.has(Flags::RECEIVER_SEEN) {
            let at = if by_receiver { completed(tail.rtt_receiver) } else { now };
            self.passed(at, Side::Receiver, Segment::Plain);
        }
        if news.has(Flags::FIN_SENDER) {
            self.passed(now, Side::Sender, Segment::Fin);
        }
        if news.has(Flags::FIN_RECEIVER) {
            self.passed(now, Side::Receiver, Segment::Fin);
        }
    }

    /// Reports activity, so that a flow without data does not expire.
    pub(super) fn alive(&mut self, now: Time) {
        self.passed(now, Side::Sender, Segment::Plain);
    }
}
