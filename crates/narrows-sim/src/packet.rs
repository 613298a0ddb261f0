//! The type of all packets: data segments, ACKs and datagrams. [`Packets`](crate::packets::Packets) stores the packets
//! of a run.
//!
//! Sequence numbers count segments, not bytes. Each segment has its own payload length. See LIMITATIONS.md.

use narrows_control::feedback::header::{ECHO_BYTES, Echo, Header};

/// Bytes of the IPv4 and TCP headers with the timestamp option (20 + 20 + 12).
pub(crate) const HEADER_BYTES: u32 = 52;
/// Bytes of the IPv4 and UDP headers.
pub(crate) const UDP_HEADER_BYTES: u32 = 28;
/// Bytes of the rate option with its padding (BRF-9).
pub(crate) const RATE_OPTION_BYTES: u32 = 8;
/// Bytes of a TCP header that remain for other options, if the header has the timestamp option.
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
    /// Position of the two bits that hold the kind of the echo; see `Packet::echo`.
    pub(crate) const ECHO_SHIFT: u32 = 12;
    /// Position of the two bits that hold a leaf number. A port with a rate controller counts packets by leaf, and
    /// writes the leaf number into each packet that it counts.
    pub(crate) const LEAF_SHIFT: u32 = 14;
}

/// A packet.
#[derive(Copy, Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Packet {
    /// Slot of the packet's flow.
    pub(crate) flow: u32,
    /// The packet's next link, given by a position in the table of paths.
    pub(crate) hop: u32,
    /// Number of flows that have ended in this slot. If the slot has a new flow, this number shows that a late packet
    /// belongs to an earlier flow.
    pub(crate) generation: u16,
    /// [`flag`]s.
    pub(crate) flags: u16,
    /// Bytes of the IP datagram.
    pub(crate) size: u16,
    /// Bytes of payload.
    pub(crate) payload: u16,
    /// Segment number.
    pub(crate) seq: u32,
    /// The next segment that the receiver expects. Valid only with [`flag::ACK`].
    pub(crate) ack: u32,
    /// Timestamp value in milliseconds, plus one (`Timestamps::clock`).
    pub(crate) ts: u32,
    /// Timestamp echo, in the same unit as `ts`; 0 if there is no echo.
    pub(crate) ts_echo: u32,
    /// SACK blocks. Only the first `sacks` blocks are valid. Data packets have no SACK blocks, so they store the
    /// congestion header in this field. If the header is a custom header (a congestion header that another crate
    /// defines), they store the header's index.
    pub(crate) sack: [SackBlock; 3],
    /// Number of SACK blocks.
    pub(crate) sacks: u8,
    /// Class of the packet in priority and HTB queues.
    pub(crate) class: u8,
    /// The rate in the rate option. Valid only with [`flag::RATE`].
    pub(crate) rate_code: u16,
    /// The meaning of this field depends on the packet:
    ///
    /// * ACK with [`flag::HEADER`]: the echo of a congestion header. If the bits at [`flag::ECHO_SHIFT`] are 0, the ACK
    ///   has a copy of a custom header instead. The field is then the index of the copy plus 1.
    /// * Datagram: the index of the datagram's contents plus 1, or 0 without contents.
    pub(crate) echo: u32,
}

const _: () = assert!(size_of::<Packet>() == 64, "one cache line");

/// The fields that all packets of one end of a flow share.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Template {
    /// The flow's slot. `generation` is the number of flows that have ended in this slot.
    pub(crate) flow: u32,
    pub(crate) generation: u16,
    /// [`flag`]s that every packet has.
    pub(crate) flags: u16,
    /// Position of the path's first link in the table of paths.
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

    /// Returns the congestion header. Returns [`Header::None`] if the packet has no congestion header, has a custom
    /// header, or travels in the reverse direction.
    pub(crate) fn header(&self) -> Header {
        if self.flags & (flag::HEADER | flag::REVERSE) != flag::HEADER {
            return Header::None;
        }
        let [a, b, c] = self.sack;
        Header::from_words([a.start, a.end, b.start, b.end, c.start])
    }

    /// Writes the congestion header. Any existing congestion header is replaced. The caller adds the header's bytes to
    /// the size.
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

    /// Returns the echo of a congestion header, or `None` if the packet has no echo. The receiver of a congestion
    /// header sends the echo in an ACK.
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

    /// Returns the number of bytes that the packet carries for rate control: the congestion header or its echo, and the
    /// rate option. The bytes of a custom header are not included.
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

    /// Returns the leaf number that the last port with a rate controller wrote into the packet.
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
