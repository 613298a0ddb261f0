//! The life of a TCP flow at a port, from its handshake to its end (BRF-12 to BRF-17).
//!
//! A SYN opens a handshake, its SYN-ACK creates a record, and the next packet of the opener confirms that the flow is
//! genuine. If the handshake was not seen or created no record, a later packet creates the record.
//! `HalfOpenTable::step` determines the role of a packet. According to this role, each port updates its own records.

use super::half_open::{HalfOpen, HalfOpenTable};
use super::rtt::RttEstimate;
use crate::rate::{FlowEvent, FlowIdentity, Segment, Side};
use crate::units::Time;

/// Number of unconfirmed flows, which were seen from one side only, that every table may hold. A table with more
/// confirmed flows than this number may hold as many unconfirmed flows as confirmed flows. So a restarted switch
/// rebuilds its table within a few RTTs, but a flood of forged packets can create only a limited number of records
/// (BRF-104, BRF-105).
pub const UNCONFIRMED_MIN: usize = 64;

/// Returns whether a table with these numbers of records accepts another flow that was seen from one side only.
pub(in crate::rate) fn accepts_unconfirmed((unconfirmed, confirmed): (usize, usize)) -> bool {
    unconfirmed < confirmed.max(UNCONFIRMED_MIN)
}

/// The role of a packet in the life of its flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::rate) enum Step {
    /// A SYN. A known flow stays unchanged. The answer will show whether this is a new flow or a forgery.
    Opens,
    /// The SYN-ACK of this handshake. If there is a record with the same key, it belongs to an earlier flow.
    Answers(HalfOpen),
    /// A SYN-ACK that belongs to no open handshake. It is a retransmission.
    Repeats,
    /// RST.
    Ends,
    /// Any other packet.
    Continues,
}

impl<K: FlowIdentity> HalfOpenTable<K> {
    /// Updates the handshakes for a packet, and returns the role of the packet. A handshake stays in this table until
    /// the flow has a record, or until the handshake expires.
    pub(in crate::rate) fn step(&mut self, now: Time, event: &FlowEvent<K>) -> Step {
        match event.segment {
            Segment::Plain | Segment::Fin => Step::Continues,
            Segment::Syn => {
                self.insert(now, event.key, event.from, event.follows_rates);
                Step::Opens
            }
            Segment::SynAck => match self.get_mut(&event.key).filter(|half| half.opener != event.from) {
                Some(half) => {
                    half.answered = Some(now);
                    Step::Answers(*half)
                }
                None => Step::Repeats,
            },
            Segment::Rst => {
                self.remove(&event.key);
                Step::Ends
            }
        }
    }
}

/// The part of a flow's record that depends on the packets that begin, confirm and end the flow.
#[derive(Clone, Debug)]
pub(in crate::rate) struct Life {
    /// Whether this switch did not see the handshake. If so, later packets of the flow show whether it follows rates.
    pub(in crate::rate) guessed: bool,
    /// The side whose next packet confirms that the flow is genuine; `None` if the flow is confirmed.
    pub(in crate::rate) awaited: Option<Side>,
    /// The time at which the SYN-ACK passed, if the last packet of the handshake is still expected.
    pub(in crate::rate) syn_ack_at: Option<Time>,
    pub(in crate::rate) rtt: RttEstimate,
    pub(in crate::rate) last_data: Time,
    pub(in crate::rate) last_seen: Time,
    /// Whether the sender and the receiver have sent FIN.
    pub(in crate::rate) fin: (bool, bool),
}

impl Life {
    /// Returns the state of a flow that begins now. `awaited` is the side whose packet must confirm the flow.
    pub(in crate::rate) fn new(now: Time, awaited: Option<Side>) -> Self {
        Life {
            guessed: false,
            awaited,
            syn_ack_at: None,
            rtt: RttEstimate::default(),
            last_data: now,
            last_seen: now,
            fin: (false, false),
        }
    }

    /// Returns the state of a flow whose SYN-ACK passes now.
    pub(in crate::rate) fn answered(now: Time, half: &HalfOpen) -> Self {
        let mut life = Life { syn_ack_at: Some(now), ..Life::new(now, Some(half.opener)) };
        if !half.repeated {
            life.sample(now, half.opener.other(), half.syn_at);
        }
        life
    }

    /// Returns the state of a flow whose SYN-ACK created no record. The next packet of the opener confirms the flow.
    pub(in crate::rate) fn late(now: Time, half: &HalfOpen) -> Self {
        Life { syn_ack_at: half.answered, ..Life::new(now, Some(half.opener)) }
    }

    /// Returns the state of a flow whose first known packet is data. Its SYN-ACK took another path, or the flow began
    /// before this switch started.
    pub(in crate::rate) fn unseen(now: Time, half: Option<&HalfOpen>) -> Self {
        Life { guessed: half.is_none(), ..Life::new(now, Some(Side::Receiver)) }
    }

    /// Takes an RTT sample from this side's answer in the handshake. The packet that this answer acknowledges passed at
    /// `at`.
    fn sample(&mut self, now: Time, from: Side, at: Time) {
        match from {
            Side::Sender => self.rtt.sender_half(now.since(at)),
            Side::Receiver => self.rtt.receiver_half(now.since(at)),
        }
    }

    /// Updates the record for a packet, and returns whether the packet confirms the flow. The caller's table must
    /// change `awaited`, because the table counts unconfirmed flows.
    pub(in crate::rate) fn hear<K>(&mut self, now: Time, event: &FlowEvent<K>) -> bool {
        self.last_seen = now;
        if event.has_data {
            self.last_data = now;
        }
        match (event.from, event.timestamps) {
            (Side::Sender, Some(stamps)) if event.has_data => self.rtt.on_data(now, stamps),
            (Side::Receiver, Some(stamps)) => self.rtt.on_reverse(now, stamps),
            _ => {}
        }
        let fin = event.segment == Segment::Fin;
        match event.from {
            Side::Sender => self.fin.0 |= fin,
            Side::Receiver => self.fin.1 |= fin,
        }
        let confirms = self.awaited == Some(event.from) && event.segment != Segment::SynAck;
        if confirms && let Some(at) = self.syn_ack_at.take() {
            self.sample(now, event.from, at);
        }
        confirms
    }

    /// Returns whether the sender has sent FIN. A sender that has sent FIN has sent all of its data at least once.
    pub(in crate::rate) fn has_sent_all(&self) -> bool {
        self.fin.0
    }

    /// Returns whether both sides have sent FIN.
    pub(in crate::rate) fn is_closed(&self) -> bool {
        self.fin == (true, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::kit::testing::{ACK, FIN, RST, SYN, SYN_ACK, key, ms, packet};
    use crate::rate::{FlowKey, RateOption, TcpFlags};
    use crate::units::Span;

    fn event(from: Side, flags: TcpFlags) -> FlowEvent<FlowKey> {
        FlowEvent::of(&packet(1, 0, flags, RateOption::Unassigned), from)
    }

    fn handshakes() -> HalfOpenTable<FlowKey> {
        HalfOpenTable::new(10, Span::from_secs(3))
    }

    #[test]
    fn only_the_side_that_was_asked_answers_a_handshake() {
        for opener in [Side::Sender, Side::Receiver] {
            let mut half_open = handshakes();
            assert_eq!(half_open.step(ms(0), &event(opener.other(), SYN_ACK)), Step::Repeats);
            assert_eq!(half_open.step(ms(0), &event(opener, SYN)), Step::Opens);
            assert_eq!(half_open.step(ms(1), &event(opener, SYN_ACK)), Step::Repeats, "forged");
            let answer = half_open.step(ms(2), &event(opener.other(), SYN_ACK));
            assert!(matches!(answer, Step::Answers(half) if half.opener == opener && half.permitted));
            for flags in [ACK, FIN] {
                assert_eq!(half_open.step(ms(3), &event(opener, flags)), Step::Continues);
            }
            assert_eq!(half_open.get(&key(1)).and_then(|half| half.answered), Some(ms(2)));
            assert_eq!(half_open.step(ms(4), &event(opener, RST)), Step::Ends);
            assert_eq!(half_open.get(&key(1)), None);
        }
    }

    /// The SYN passes at 0 ms, the SYN-ACK at 20 ms and the ACK at 25 ms. After a repeated SYN, the SYN-ACK gives no
    /// RTT sample (Karn).
    #[test]
    fn a_handshake_measures_both_halves_and_confirms_the_flow() {
        for (opener, syns, expected) in [(Side::Sender, 1, 25), (Side::Receiver, 1, 25), (Side::Sender, 2, 5)]
        {
            let mut half_open = handshakes();
            (0..syns).for_each(|_| assert_eq!(half_open.step(ms(0), &event(opener, SYN)), Step::Opens));
            let Step::Answers(half) = half_open.step(ms(20), &event(opener.other(), SYN_ACK)) else {
                panic!()
            };
            let mut life = Life::answered(ms(20), &half);
            assert!(!life.hear(ms(20), &event(opener.other(), SYN_ACK)), "the SYN-ACK itself");
            assert!(
                !life.hear(ms(21), &event(opener.other(), ACK)),
                "a packet from the same side does not confirm the flow"
            );
            assert!(life.hear(ms(25), &event(opener, ACK)));
            assert_eq!(life.rtt.get(), Some(Span::from_millis(expected)));
        }
    }

    #[test]
    fn a_flow_is_closed_when_both_sides_have_sent_fin() {
        let mut life = Life::new(ms(0), None);
        for (from, closed) in [(Side::Sender, false), (Side::Sender, false), (Side::Receiver, true)] {
            life.hear(ms(1), &event(from, FIN));
            assert_eq!(life.is_closed(), closed);
        }
    }

    #[test]
    fn unconfirmed_flows_are_at_most_as_many_as_confirmed_ones() {
        let accepted = [(63, 0), (64, 0), (64, 65), (99, 100), (100, 100)].map(accepts_unconfirmed);
        assert_eq!(accepted, [true, false, true, true, false]);
    }
}
