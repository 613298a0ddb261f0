//! The congestion header: fields that packets carry to routers on their path, and the echo in ACKs.
//!
//! XCP, RCP, BDR and OBP put a header between IP and TCP. The fields follow draft-falk-xcp-spec-03 for XCP, chapter 6
//! of Dukkipati's thesis for RCP, and the IP option of BDR-6 for BDR. The layout of OBP's header is unknown. This file
//! defines the layout of headers in memory: every header but a [`Custom`] one takes the same number of 32-bit words.
//!
//! A packet carries at most one header, which routers rewrite in place. The size of a packet includes the bytes of its
//! header. The receiver copies the routers' result into ACKs as one word ([`Echo`]).

pub use super::custom::Custom;
use crate::rate::bdr::{Recommendation, Report};
use crate::rate::xcp;
use crate::units::{Bytes, Rate, Span};

/// Number of words that a header takes in memory. [`Header::wire_bytes`] returns the size of a header on the wire.
pub const WORDS: usize = 5;

/// Number of bytes that an echo adds to an ACK: 4 for the kind, the length and a reserved field, and 4 for the value.
pub const ECHO_BYTES: u16 = 8;

/// The largest word. It means "no value yet" or "no limit".
const UNSET: u32 = u32::MAX;

const KIND_RCP: u32 = 1;
const KIND_XCP: u32 = 2;
const KIND_BDR: u32 = 3;
const KIND_MEMBER: u32 = 4;
const KIND_OBP: u32 = 5;
const KIND_CUSTOM: u32 = 6;

/// A congestion header.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub enum Header {
    /// The packet carries no header.
    #[default]
    None,
    /// The header of RCP (RCP-4).
    Rcp(Rcp),
    /// The header of XCP (XCP-1 to XCP-4).
    Xcp(xcp::Header),
    /// The header of a designated packet (BDR-6).
    Bdr(Bdr),
    /// A mark on the packets of a BDR flow that are not designated (BDR-42). The mark takes one bit of the IP header.
    Member,
    /// The header of OBP (OBP-1).
    Obp(Obp),
    /// A header that another crate defines.
    Custom(Custom),
}

/// The fields of RCP's header (RCP-4).
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Rcp {
    /// The smallest rate on the path so far, or [`Rate::MAX`] if no router has limited the rate.
    pub rate: Rate,
    /// The sender's RTT, or `None` before the first sample.
    pub rtt: Option<Span>,
}

/// The fields of OBP's header (OBP-1). The set of fields is our choice.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Obp {
    /// The sender's current rate, or `None` before the first rate from the network.
    pub own: Option<Rate>,
    /// The smallest unused bandwidth of any link on the path so far, or [`Rate::MAX`] before the first router.
    pub available: Rate,
    /// The smallest capacity on the path so far, or [`Rate::MAX`] before the first router.
    pub capacity: Rate,
    /// The sender's next rate, or [`Rate::MAX`] before the first router.
    pub rate: Rate,
}

/// The fields of a designated packet (BDR-6, BDR-20).
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Bdr {
    /// The report of the packet.
    pub report: Report,
    /// The routers' recommendation so far.
    pub advice: Option<Recommendation>,
}

/// The value that an ACK returns to the sender.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Echo {
    /// The rate of the path.
    Rate(Rate),
    /// A change of the sender's throughput, bytes/s (XCP-5).
    Change(i64),
    /// A change of the sender's window, packets (BDR-26, literal mode).
    Gain(i32),
}

impl Header {
    /// Returns the number of bytes that the header takes on the wire.
    pub const fn wire_bytes(&self) -> u16 {
        match self {
            Header::None | Header::Member => 0,
            // 4 bytes for the kind, the length and a reserved field, 4 for the rate, and 4 for the RTT.
            Header::Rcp(_) => 12,
            // The draft's standard format.
            Header::Xcp(_) => 20,
            // BDR-6: 13 bytes with the surrounding IP option, and padding.
            Header::Bdr(_) => 16,
            // 4 bytes for the kind, the length and a reserved field, and 16 for four rates.
            Header::Obp(_) => 20,
            Header::Custom(h) => h.wire_bytes(),
        }
    }

    /// Returns the header as words. For a [`Custom`] header, the words contain only the kind. Values saturate. Rates
    /// are in units of 8 bytes/s (up to 275 Gbit/s). Changes of a rate are in bytes/s (up to 17 Gbit/s). Times are in
    /// microseconds (up to an hour).
    pub fn to_words(self) -> [u32; WORDS] {
        match self {
            Header::None => [0; WORDS],
            Header::Member => [KIND_MEMBER, 0, 0, 0, 0],
            Header::Rcp(h) => [KIND_RCP, rate_word(h.rate), rtt_word(h.rtt), 0, 0],
            Header::Xcp(h) => [KIND_XCP, h.rtt, h.x, signed_word(h.delta), 0],
            Header::Obp(h) => {
                let own = h.own.map_or(UNSET, |rate| rate_word(rate).min(UNSET - 1));
                [KIND_OBP, own, rate_word(h.available), rate_word(h.capacity), rate_word(h.rate)]
            }
            Header::Custom(_) => [KIND_CUSTOM, 0, 0, 0, 0],
            Header::Bdr(Bdr { report, advice }) => {
                let (advice, value) = match advice {
                    None => (0, UNSET),
                    Some(Recommendation::Rate(rate)) => (1, rate_word(rate)),
                    Some(Recommendation::Gain(gain)) => (2, gain as u32),
                };
                let flags = u32::from(report.syn)
                    | u32::from(report.fin) << 1
                    | u32::from(report.first_data) << 2
                    | advice << 3;
                let packet = u32::try_from(report.packet_size.get()).unwrap_or(0xffff).min(0xffff);
                let size = packet | report.size_cwin.min(0xffff) << 16;
                [KIND_BDR | flags << 8, value, micros(report.t_rep), size, micros(report.time_per_cwin)]
            }
        }
    }

    /// Returns the header in these words. Invalid words give [`Header::None`].
    pub fn from_words(words: [u32; WORDS]) -> Header {
        let [kind, a, b, c, d] = words;
        match kind & 0xff {
            KIND_MEMBER => Header::Member,
            KIND_RCP => Header::Rcp(Rcp { rate: word_rate(a), rtt: word_rtt(b) }),
            KIND_XCP => Header::Xcp(xcp::Header { rtt: a, x: b, delta: word_signed(c) }),
            KIND_BDR => {
                let flag = |bit: u32| kind >> (8 + bit) & 1 != 0;
                let advice = match kind >> 11 & 3 {
                    1 => Some(Recommendation::Rate(word_rate(a))),
                    2 => Some(Recommendation::Gain(a as i32)),
                    _ => None,
                };
                let report = Report {
                    syn: flag(0),
                    fin: flag(1),
                    first_data: flag(2),
                    t_rep: Span::from_micros(u64::from(b)),
                    size_cwin: c >> 16,
                    time_per_cwin: Span::from_micros(u64::from(d)),
                    packet_size: Bytes::new(u64::from(c & 0xffff)),
                };
                Header::Bdr(Bdr { report, advice })
            }
            KIND_OBP => Header::Obp(Obp {
                own: (a != UNSET).then(|| word_rate(a)),
                available: word_rate(b),
                capacity: word_rate(c),
                rate: word_rate(d),
            }),
            _ => Header::None,
        }
    }

    /// Returns the echo that a receiver must send after this packet. `unsent` is the echo of earlier packets that no
    /// ACK has carried yet. XCP's changes are added up over the packets of one ACK. For rates, the newest echo is sent.
    /// A [`Custom`] header has no echo, because the receiver copies the whole header into the ACK.
    pub fn echo(&self, unsent: Option<Echo>) -> Option<Echo> {
        match self {
            Header::None | Header::Member | Header::Custom(_) => unsent,
            Header::Rcp(Rcp { rate, .. }) | Header::Obp(Obp { rate, .. }) => Some(Echo::Rate(*rate)),
            Header::Xcp(h) => {
                let earlier = if let Some(Echo::Change(change)) = unsent { change } else { 0 };
                Some(Echo::Change(earlier.saturating_add(h.delta)))
            }
            Header::Bdr(h) => match h.advice {
                None => unsent,
                Some(Recommendation::Rate(rate)) => Some(Echo::Rate(rate)),
                Some(Recommendation::Gain(gain)) => Some(Echo::Gain(gain)),
            },
        }
    }

    /// Returns whether the receiver must send the ACK at once (BDR-50). If so, this ACK is the only one that carries
    /// the echo. A [`Custom`] header is returned at once, too, because an ACK has room for the words of one packet
    /// only.
    pub const fn is_urgent(&self) -> bool {
        matches!(self, Header::Bdr(_) | Header::Custom(_))
    }
}

impl Echo {
    /// Returns the echo as a word, and the kind of the echo (2 bits).
    pub fn to_word(self) -> (u32, u8) {
        match self {
            Echo::Rate(rate) => (rate_word(rate), 1),
            Echo::Change(change) => (signed_word(change), 2),
            Echo::Gain(gain) => (gain as u32, 3),
        }
    }

    /// Returns the echo with this word and this kind.
    pub fn from_word(word: u32, kind: u8) -> Option<Echo> {
        match kind & 3 {
            1 => Some(Echo::Rate(word_rate(word))),
            2 => Some(Echo::Change(word_signed(word))),
            3 => Some(Echo::Gain(word as i32)),
            _ => None,
        }
    }
}

/// Returns the rate in units of 8 bytes/s.
fn rate_word(rate: Rate) -> u32 {
    u32::try_from(rate.as_bytes_per_sec() / 8).unwrap_or(UNSET)
}

fn word_rate(word: u32) -> Rate {
    if word == UNSET { Rate::MAX } else { Rate::from_bytes_per_sec(u64::from(word) * 8) }
}

/// Returns a change of a rate as a word, in bytes/s. Changes per packet are small. With a coarser unit, the rounding
/// errors would add up.
fn signed_word(value: i64) -> u32 {
    value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32 as u32
}

fn word_signed(word: u32) -> i64 {
    i64::from(word as i32)
}

fn micros(span: Span) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(UNSET)
}

/// Returns the RTT in microseconds, or 0 if the RTT is unknown.
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
        fn arbitrary_words_decode_to_a_header_that_encodes_to_itself(words in any::<[u32; WORDS]>()) {
            let header = Header::from_words(words);
            prop_assert_eq!(Header::from_words(header.to_words()), header);
            prop_assert!(header.wire_bytes() as usize <= 4 * WORDS);
        }

        #[test]
        fn an_arbitrary_word_decodes_to_an_echo_that_encodes_to_itself(word: u32, kind in 1u8..4) {
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
        let xcp = |delta| Header::Xcp(xcp::Header { rtt: 0, x: 0, delta });
        assert_eq!(xcp(-80).echo(xcp(800).echo(None)), Some(Echo::Change(720)));
        let rcp = |rate| Header::Rcp(Rcp { rate: Rate::from_bytes_per_sec(rate), rtt: None });
        assert_eq!(rcp(80).echo(rcp(800).echo(None)), Some(Echo::Rate(Rate::from_bytes_per_sec(80))));
        assert_eq!(Header::None.echo(rcp(8).echo(None)), rcp(8).echo(None));
    }
}
