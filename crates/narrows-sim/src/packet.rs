//! What travels: a small plain value in a slab, the same for data, ACKs and datagrams.
//!
//! Sequence numbers count segments, not bytes (each segment keeps its own payload length); see LIMITATIONS.md.

use narrows_control::feedback::header::{ECHO_BYTES, Echo, Header};

/// Bytes of IPv4 and TCP headers with the timestamp option (20 + 20 + 12).
pub(crate) const HEADER: u32 = 52;
/// Bytes of IPv4 and UDP headers.
pub(crate) const UDP_HEADER: u32 = 28;
/// Bytes of the rate option with its padding (BRF-9).
pub(crate) const RATE_OPTION: u32 = 8;
/// Bytes of options that fit a TCP header beside the timestamps.
const OPTION_ROOM: u32 = 40 - 12;

/// Segment numbers `[start, end)`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SackBlock {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// TCP header flags, and bits that a simulator may carry for free.
pub(crate) mod flag {
    pub(crate) const SYN: u16 = 1;
    pub(crate) const ACK: u16 = 1 << 1;
    pub(crate) const FIN: u16 = 1 << 2;
    pub(crate) const RST: u16 = 1 << 3;
    /// ECN echo.
    pub(crate) const ECE: u16 = 1 << 4;
    /// Congestion window reduced.
    pub(crate) const CWR: u16 = 1 << 5;
    /// IP: ECN-capable transport.
    pub(crate) const ECT: u16 = 1 << 6;
    /// IP: congestion experienced.
    pub(crate) const CE: u16 = 1 << 7;
    /// UDP datagram.
    pub(crate) const UDP: u16 = 1 << 8;
    /// Travels against the data.
    pub(crate) const REVERSE: u16 = 1 << 9;
    /// Carries the rate option.
    pub(crate) const RATE: u16 = 1 << 10;
    /// Carries a congestion header; against the data, its echo.
    pub(crate) const HEADER: u16 = 1 << 11;
    /// Two bits: what kind of echo.
    pub(crate) const ECHO_AT: u32 = 12;
    /// Two bits: the leaf that the last controlled port counted it in.
    pub(crate) const LEAF_AT: u32 = 14;
}

/// A packet.
#[derive(Copy, Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Packet {
    /// Slot of its flow.
    pub(crate) flow: u32,
    /// Position in the table of paths: the link that it takes next.
    pub(crate) hop: u32,
    /// Use count of the flow's slot: a late packet of an ended flow is recognised by it.
    pub(crate) generation: u16,
    /// [`flag`]s.
    pub(crate) flags: u16,
    /// Bytes of the IP datagram.
    pub(crate) size: u16,
    /// Bytes of payload.
    pub(crate) payload: u16,
    /// Segment number.
    pub(crate) seq: u32,
    /// Next segment expected (with ACK).
    pub(crate) ack: u32,
    /// Timestamp value: ticks of a millisecond, plus one (`Timestamps::clock`).
    pub(crate) ts: u32,
    /// Timestamp echo, likewise; 0: none.
    pub(crate) ts_echo: u32,
    /// SACK blocks, the first `sacks` of them. Data has none: there the congestion header is in here.
    pub(crate) sack: [SackBlock; 3],
    /// Number of SACK blocks.
    pub(crate) sacks: u8,
    /// Class for priority and HTB queues.
    pub(crate) class: u8,
    /// The rate code of the option (with [`flag::RATE`]).
    pub(crate) rate_code: u16,
    /// The echo of a congestion header (with [`flag::HEADER`], against the data).
    pub(crate) echo: u32,
}

const _: () = assert!(size_of::<Packet>() == 64, "one cache line");

/// What all packets of one end of a flow have in common.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Template {
    /// Slot of the flow and its use count.
    pub(crate) flow: u32,
    pub(crate) generation: u16,
    /// [`flag`]s that every packet has.
    pub(crate) flags: u16,
    /// Start of the path.
    pub(crate) hop: u32,
    pub(crate) class: u8,
}

impl Template {
    /// A packet of `size` bytes without anything in it.
    #[inline]
    pub(crate) fn packet(&self, size: u16) -> Packet {
        Packet {
            flow: self.flow,
            hop: self.hop,
            generation: self.generation,
            flags: self.flags,
            size,
            payload: 0,
            seq: 0,
            ack: 0,
            ts: 0,
            ts_echo: 0,
            sack: [SackBlock::default(); 3],
            sacks: 0,
            class: self.class,
            rate_code: 0,
            echo: 0,
        }
    }
}

impl Packet {
    #[inline]
    pub(crate) fn is(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// The congestion header of a packet of the data direction.
    pub(crate) fn header(&self) -> Header {
        if self.flags & (flag::HEADER | flag::REVERSE) != flag::HEADER {
            return Header::None;
        }
        let [a, b, c] = self.sack;
        Header::from_words([a.start, a.end, b.start, b.end, c.start])
    }

    /// Writes the congestion header, over the one that is there if any. The caller counts its bytes.
    pub(crate) fn set_header(&mut self, header: Header) {
        let [a, b, c, d, e] = header.to_words();
        let block = |start, end| SackBlock { start, end };
        self.sack = [block(a, b), block(c, d), block(e, 0)];
        self.flags |= flag::HEADER;
    }

    /// What a receiver sends back.
    pub(crate) fn echo(&self) -> Option<Echo> {
        if self.flags & (flag::HEADER | flag::REVERSE) != flag::HEADER | flag::REVERSE {
            return None;
        }
        Echo::from_word(self.echo, (self.flags >> flag::ECHO_AT) as u8)
    }

    /// Adds an echo, with its bytes.
    pub(crate) fn set_echo(&mut self, echo: Echo) {
        let (word, kind) = echo.to_word();
        self.echo = word;
        self.flags |= flag::HEADER | u16::from(kind & 3) << flag::ECHO_AT;
        self.size += ECHO_BYTES;
    }

    /// Bytes of it that are there for rate control: the congestion header or its echo, the rate option (MET-82).
    #[inline]
    pub(crate) fn signal_bytes(&self) -> u16 {
        if !self.is(flag::HEADER | flag::RATE) {
            return 0;
        }
        let header = match (self.is(flag::HEADER), self.is(flag::REVERSE)) {
            (false, _) => 0,
            (true, false) => self.header().wire_bytes(),
            (true, true) => ECHO_BYTES,
        };
        header + if self.is(flag::RATE) { RATE_OPTION as u16 } else { 0 }
    }

    /// The leaf that the last controlled port counted it in.
    pub(crate) fn leaf(&self) -> usize {
        (self.flags >> flag::LEAF_AT) as usize & 3
    }

    pub(crate) fn set_leaf(&mut self, leaf: usize) {
        self.flags = self.flags & !(3 << flag::LEAF_AT) | (leaf as u16 & 3) << flag::LEAF_AT;
    }

    /// SACK blocks that fit a header beside the rate option.
    pub(crate) const SACKS_BESIDE_RATE: usize = ((OPTION_ROOM - RATE_OPTION - 4) / 8) as usize;
}

/// Bytes of a SACK option with this many blocks, padded (RFC 2018).
pub(crate) fn sack_bytes(blocks: usize) -> u32 {
    if blocks == 0 { 0 } else { 4 + 8 * blocks as u32 }
}
