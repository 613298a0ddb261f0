//! The congestion header: what a flow's packets say to the routers on their path, and what comes back in ACKs.
//!
//! XCP, RCP and BDR put a header of their own between IP and TCP (XCP: draft-falk-xcp-spec-03; RCP: Dukkipati's thesis, chapter
//! 6; BDR: an IP option, BDR-6). Here they are one type with a fixed layout of 32-bit words, so that a packet can carry any
//! of them, routers rewrite them in place, and the bytes they cost are counted. The layout is ours; the fields are theirs.
//! A router writes into the header of a data packet, the receiver copies its answer into ACKs as one word ([`Echo`]).

use crate::units::{Rate, Span};

/// Words that a header takes in memory; on the wire it takes [`Header::wire_bytes`].
pub const WORDS: usize = 5;

/// Bytes that an echo costs an ACK: kind, length and reserved (4), the value (4).
pub const ECHO_BYTES: u16 = 8;

/// "None yet", "no limit": as much as a word can say.
const UNSET: u32 = u32::MAX;

const KIND_RCP: u32 = 1;
const KIND_XCP: u32 = 2;
const KIND_BDR: u32 = 3;

/// A congestion header.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub enum Header {
    /// The packet carries none.
    #[default]
    None,
    /// RCP-4.
    Rcp(Rcp),
    /// Section 4 of the PACEC specification.
    Xcp(Xcp),
    /// BDR-6: a designated packet.
    Bdr(Bdr),
}

/// What RCP's packets carry (RCP-4).
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Rcp {
    /// The least rate on the path so far; [`Rate::MAX`]: nobody has limited it yet.
    pub rate: Rate,
    /// The sender's RTT; `None` while it knows none.
    pub rtt: Option<Span>,
}

/// What XCP's packets carry.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Xcp {
    /// The sender's RTT; `None` while it knows none (XCP-4).
    pub rtt: Option<Span>,
    /// X: time between two packets of the flow (XCP-1).
    pub spacing: Span,
    /// Delta_Throughput: the change that is asked for, then granted, bytes/s.
    pub change: i64,
}

/// What a designated packet carries (BDR-6, BDR-20).
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Bdr {
    /// The flow begins with this packet.
    pub syn: bool,
    /// The flow ends with this packet.
    pub fin: bool,
    /// The first data packet that is designated.
    pub first_data: bool,
    /// Time since the flow's previous designated packet was sent (BDR-20); in the literal mode time_per_cwin (BDR-2).
    pub elapsed: Span,
    /// size_cwin: packets sent since the previous one.
    pub packets: u32,
    /// L3 bytes of a full packet.
    pub packet_bytes: u16,
    /// What routers recommend.
    pub advice: Advice,
}

/// A recommendation of BDR's routers.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub enum Advice {
    /// None yet.
    #[default]
    None,
    /// This rate at most (BDR-25).
    Rate(Rate),
    /// This many packets more, or less (BDR-26, literal).
    Gain(i32),
}

/// What an ACK brings back.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Echo {
    /// The path's rate.
    Rate(Rate),
    /// A change of the sender's throughput, bytes/s (XCP-5).
    Change(i64),
    /// A change of the sender's window, packets (BDR-26, literal).
    Gain(i32),
}

impl Header {
    /// Bytes that it takes on the wire.
    pub const fn wire_bytes(&self) -> u16 {
        match self {
            Header::None => 0,
            // Kind, length and reserved (4), rate (4), RTT (4).
            Header::Rcp(_) => 12,
            // The draft's standard format.
            Header::Xcp(_) => 20,
            // BDR-6: 13 bytes with those of an IP option around them, padded.
            Header::Bdr(_) => 16,
        }
    }

    /// As words. Figures beyond what a word can say become the most it can: rates are in units of 8 bytes/s (up to 275 Gbit/s),
    /// changes of a rate in bytes/s (up to 17 Gbit/s), times in microseconds (up to an hour).
    pub fn to_words(self) -> [u32; WORDS] {
        match self {
            Header::None => [0; WORDS],
            Header::Rcp(h) => [KIND_RCP, rate_word(h.rate), rtt_word(h.rtt), 0, 0],
            Header::Xcp(h) => {
                let spacing = u32::try_from(h.spacing.as_nanos()).unwrap_or(UNSET);
                [KIND_XCP, rtt_word(h.rtt), spacing, signed_word(h.change), 0]
            }
            Header::Bdr(h) => {
                let (advice, value) = match h.advice {
                    Advice::None => (0, UNSET),
                    Advice::Rate(rate) => (1, rate_word(rate)),
                    Advice::Gain(gain) => (2, gain as u32),
                };
                let flags =
                    u32::from(h.syn) | u32::from(h.fin) << 1 | u32::from(h.first_data) << 2 | advice << 3;
                let size = u32::from(h.packet_bytes) | h.packets.min(0xffff) << 16;
                [KIND_BDR | flags << 8, value, micros(h.elapsed), size, 0]
            }
        }
    }

    /// From words; what makes no sense is no header.
    pub fn from_words(words: [u32; WORDS]) -> Header {
        let [kind, a, b, c, _] = words;
        match kind & 0xff {
            KIND_RCP => Header::Rcp(Rcp { rate: word_rate(a), rtt: word_rtt(b) }),
            KIND_XCP => Header::Xcp(Xcp {
                rtt: word_rtt(a),
                spacing: Span::from_nanos(u64::from(b)),
                change: word_signed(c),
            }),
            KIND_BDR => {
                let flag = |bit: u32| kind >> (8 + bit) & 1 != 0;
                let advice = match kind >> 11 & 3 {
                    1 => Advice::Rate(word_rate(a)),
                    2 => Advice::Gain(a as i32),
                    _ => Advice::None,
                };
                Header::Bdr(Bdr {
                    syn: flag(0),
                    fin: flag(1),
                    first_data: flag(2),
                    elapsed: Span::from_micros(u64::from(b)),
                    packets: c >> 16,
                    packet_bytes: (c & 0xffff) as u16,
                    advice,
                })
            }
            _ => Header::None,
        }
    }

    /// What a receiver has to send back after this packet, with what it has not sent yet. XCP's changes add up over the packets
    /// that one ACK answers; of rates the newest counts.
    pub fn echo(&self, unsent: Option<Echo>) -> Option<Echo> {
        match self {
            Header::None => unsent,
            Header::Rcp(h) => Some(Echo::Rate(h.rate)),
            Header::Xcp(h) => {
                let earlier = if let Some(Echo::Change(change)) = unsent { change } else { 0 };
                Some(Echo::Change(earlier.saturating_add(h.change)))
            }
            Header::Bdr(h) => match h.advice {
                Advice::None => unsent,
                Advice::Rate(rate) => Some(Echo::Rate(rate)),
                Advice::Gain(gain) => Some(Echo::Gain(gain)),
            },
        }
    }

    /// Whether the ACK must not be delayed (BDR-50), and the echo is sent once only.
    pub const fn is_urgent(&self) -> bool {
        matches!(self, Header::Bdr(_))
    }
}

impl Echo {
    /// As a word, and what kind of echo it is (2 bits).
    pub fn to_word(self) -> (u32, u8) {
        match self {
            Echo::Rate(rate) => (rate_word(rate), 1),
            Echo::Change(change) => (signed_word(change), 2),
            Echo::Gain(gain) => (gain as u32, 3),
        }
    }

    /// From a word and its kind.
    pub fn from_word(word: u32, kind: u8) -> Option<Echo> {
        match kind & 3 {
            1 => Some(Echo::Rate(word_rate(word))),
            2 => Some(Echo::Change(word_signed(word))),
            3 => Some(Echo::Gain(word as i32)),
            _ => None,
        }
    }
}

/// Units of 8 bytes/s.
fn rate_word(rate: Rate) -> u32 {
    u32::try_from(rate.as_bytes_per_sec() / 8).unwrap_or(UNSET)
}

fn word_rate(word: u32) -> Rate {
    if word == UNSET { Rate::MAX } else { Rate::from_bytes_per_sec(u64::from(word) * 8) }
}

/// Bytes/s: changes for a single packet are small, and rounding them would add up.
fn signed_word(value: i64) -> u32 {
    value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32 as u32
}

fn word_signed(word: u32) -> i64 {
    i64::from(word as i32)
}

fn micros(span: Span) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(UNSET)
}

/// 0: unknown.
fn rtt_word(rtt: Option<Span>) -> u32 {
    rtt.map_or(0, |rtt| micros(rtt).max(1))
}

fn word_rtt(word: u32) -> Option<Span> {
    (word != 0).then(|| Span::from_micros(u64::from(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_words_are_a_header_that_stays_itself(words in any::<[u32; WORDS]>()) {
            let header = Header::from_words(words);
            prop_assert_eq!(Header::from_words(header.to_words()), header);
            prop_assert!(header.wire_bytes() as usize <= 4 * WORDS);
        }

        #[test]
        fn any_word_is_an_echo_that_stays_itself(word: u32, kind in 1u8..4) {
            let echo = Echo::from_word(word, kind).unwrap();
            prop_assert_eq!(echo.to_word(), (word, kind));
        }

        #[test]
        fn rates_lose_less_than_eight_bytes_per_second(rate in 0u64..30_000_000_000) {
            let there_and_back = word_rate(rate_word(Rate::from_bytes_per_sec(rate))).as_bytes_per_sec();
            prop_assert!(there_and_back <= rate && rate - there_and_back < 8);
        }
    }

    #[test]
    fn changes_add_up_and_rates_do_not() {
        let xcp = |change| Header::Xcp(Xcp { rtt: None, spacing: Span::ZERO, change });
        assert_eq!(xcp(-80).echo(xcp(800).echo(None)), Some(Echo::Change(720)));
        let rcp = |rate| Header::Rcp(Rcp { rate: Rate::from_bytes_per_sec(rate), rtt: None });
        assert_eq!(rcp(80).echo(rcp(800).echo(None)), Some(Echo::Rate(Rate::from_bytes_per_sec(80))));
        assert_eq!(Header::None.echo(rcp(8).echo(None)), rcp(8).echo(None));
    }
}
