//! Packets: small plain values in a slab. Data segments, ACKs and datagrams have the same type.
//!
//! Sequence numbers count segments, not bytes. Each segment has its own payload length. See LIMITATIONS.md.

use narrows_control::feedback::header::{ECHO_BYTES, Echo, Header};

/// IPv4 and TCP headers with the timestamp option (20 + 20 + 12).
pub(crate) const HEADER_BYTES: u32 = 52;
/// IPv4 and UDP headers.
pub(crate) const UDP_HEADER_BYTES: u32 = 28;
/// The rate option with its padding (BRF-9).
pub(crate) const RATE_OPTION_BYTES: u32 = 8;
/// Bytes that remain for other options in a TCP header with the timestamp option.
const OPTION_ROOM_BYTES: u32 = 40 - 12;

/// Segment numbers `[start, end)`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SackBlock {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The flags of the TCP header, the ECN bits of the IP header, and further bits that only the simulator uses.
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
    /// The packet travels from the receiver to the sender.
    pub(crate) const REVERSE: u16 = 1 << 9;
    /// The packet carries the rate option.
    pub(crate) const RATE: u16 = 1 << 10;
    /// The packet carries a congestion header or, in the reverse direction, an echo of one.
    pub(crate) const HEADER: u16 = 1 << 11;
    /// Position of the two bits that hold the kind of echo.
    pub(crate) const ECHO_SHIFT: u32 = 12;
    /// Position of two bits for a leaf number: the leaf in which the last controlled port counted the packet.
    pub(crate) const LEAF_SHIFT: u32 = 14;
}

/// A packet.
#[derive(Copy, Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Packet {
    /// Slot of the packet's flow.
    pub(crate) flow: u32,
    /// Position in the table of paths: the next link.
    pub(crate) hop: u32,
    /// Number of flows that have ended in this slot. This number distinguishes late packets of an ended flow from
    /// packets of the slot's next flow.
    pub(crate) generation: u16,
    /// [`flag`]s.
    pub(crate) flags: u16,
    /// Bytes of the IP datagram.
    pub(crate) size: u16,
    /// Bytes of payload.
    pub(crate) payload: u16,
    /// Segment number.
    pub(crate) seq: u32,
    /// Next expected segment (with [`flag::ACK`]).
    pub(crate) ack: u32,
    /// Timestamp value in milliseconds, plus one (`Timestamps::clock`).
    pub(crate) ts: u32,
    /// Timestamp echo, in the same unit as `ts`; 0 if there is no echo.
    pub(crate) ts_echo: u32,
    /// SACK blocks; the first `sacks` are valid. Data packets have no SACK blocks. They use this field for the
    /// congestion header, or for the index of a custom header (a congestion header that another crate defines).
    pub(crate) sack: [SackBlock; 3],
    /// Number of SACK blocks.
    pub(crate) sacks: u8,
    /// Class for priority and HTB queues.
    pub(crate) class: u8,
    /// The rate code of the option (with [`flag::RATE`]).
    pub(crate) rate_code: u16,
    /// In an ACK with [`flag::HEADER`]: the echo of a congestion header. If the kind of echo is 0, this field is one
    /// plus the index of a custom header. In a datagram: one plus the index of its contents, or 0 if it has no
    /// contents.
    pub(crate) echo: u32,
}

const _: () = assert!(size_of::<Packet>() == 64, "one cache line");

/// The fields that all packets of one end of a flow share.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Template {
    /// Slot of the flow. `generation` is the slot's generation (see [`Packet`]).
    pub(crate) flow: u32,
    pub(crate) generation: u16,
    /// [`flag`]s of every packet.
    pub(crate) flags: u16,
    /// Start of the path.
    pub(crate) hop: u32,
    pub(crate) class: u8,
}

impl Template {
    /// Creates a packet of `size` bytes with the fields of the template. All other fields are zero.
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
    /// Whether any of these flags is set.
    #[inline]
    pub(crate) fn is(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Returns the congestion header. Returns [`Header::None`] if the packet has no such header, has a custom header,
    /// or travels in the reverse direction.
    pub(crate) fn header(&self) -> Header {
        if self.flags & (flag::HEADER | flag::REVERSE) != flag::HEADER {
            return Header::None;
        }
        let [a, b, c] = self.sack;
        Header::from_words([a.start, a.end, b.start, b.end, c.start])
    }

    /// Writes the congestion header, and replaces an existing header. The caller adds the header's bytes to the size.
    pub(crate) fn set_header(&mut self, header: Header) {
        let [a, b, c, d, e] = header.to_words();
        let block = |start, end| SackBlock { start, end };
        self.sack = [block(a, b), block(c, d), block(e, 0)];
        self.flags |= flag::HEADER;
    }

    /// Returns the index of the packet's custom header in [`Packets`](crate::packets::Packets).
    #[inline]
    pub(crate) fn custom(&self) -> Option<u32> {
        if !self.is(flag::HEADER) {
            None
        } else if !self.is(flag::REVERSE) {
            self.sack[2].end.checked_sub(1)
        } else if self.flags >> flag::ECHO_SHIFT & 3 == 0 {
            self.echo.checked_sub(1)
        } else {
            None
        }
    }

    /// Sets the index of the packet's custom header. The caller sets [`flag::HEADER`].
    pub(crate) fn set_custom(&mut self, at: u32) {
        if self.is(flag::REVERSE) {
            self.echo = at + 1;
        } else {
            self.sack[2].end = at + 1;
        }
    }

    /// Returns the index of a datagram's contents in [`Packets`](crate::packets::Packets).
    pub(crate) fn contents(&self) -> Option<u32> {
        if self.is(flag::UDP) { self.echo.checked_sub(1) } else { None }
    }

    /// Sets the index of a datagram's contents.
    pub(crate) fn set_contents(&mut self, at: u32) {
        self.echo = at + 1;
    }

    /// Returns the echo of a congestion header, which a receiver sends back; `None` if the packet has no echo.
    pub(crate) fn echo(&self) -> Option<Echo> {
        if self.flags & (flag::HEADER | flag::REVERSE) != flag::HEADER | flag::REVERSE {
            return None;
        }
        Echo::from_word(self.echo, (self.flags >> flag::ECHO_SHIFT) as u8)
    }

    /// Writes an echo of a congestion header into the packet, and adds the echo's bytes to the size.
    pub(crate) fn set_echo(&mut self, echo: Echo) {
        let (word, kind) = echo.to_word();
        self.echo = word;
        self.flags |= flag::HEADER | u16::from(kind & 3) << flag::ECHO_SHIFT;
        self.size += ECHO_BYTES;
    }

    /// Returns the number of bytes that serve rate control. The bytes of a custom header are not included.
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
        header + self.option_bytes()
    }

    /// Returns the number of bytes of the rate option.
    #[inline]
    pub(crate) fn option_bytes(&self) -> u16 {
        if self.is(flag::RATE) { RATE_OPTION_BYTES as u16 } else { 0 }
    }

    /// Returns the leaf in which the last controlled port counted the packet.
    pub(crate) fn leaf(&self) -> usize {
        (self.flags >> flag::LEAF_SHIFT) as usize & 3
    }

    pub(crate) fn set_leaf(&mut self, leaf: usize) {
        self.flags = self.flags & !(3 << flag::LEAF_SHIFT) | (leaf as u16 & 3) << flag::LEAF_SHIFT;
    }

    /// Number of SACK blocks that fit into a TCP header in addition to the rate option.
    pub(crate) const SACKS_BESIDE_RATE: usize = ((OPTION_ROOM_BYTES - RATE_OPTION_BYTES - 4) / 8) as usize;
}

/// Returns the length in bytes of a padded SACK option with this many blocks (RFC 2018).
pub(crate) fn sack_bytes(blocks: usize) -> u32 {
    if blocks == 0 { 0 } else { 4 + 8 * blocks as u32 }
}
