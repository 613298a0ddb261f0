//! Builds the bytes of a captured packet, with correct checksums. Payload bytes are zero, except in datagrams whose
//! contents a stack (such as QUIC) has written.
//!
//! This file writes the headers without a library, because captures must not slow the simulation down much. The tests
//! parse the headers with a library.

use std::net::Ipv4Addr;

use narrows_control::feedback::checksum::{self, fold};
use narrows_control::feedback::header::ECHO_BYTES;
use narrows_control::feedback::option::{EXID, KIND, LEN};
use narrows_sim::capture::{Captured, Custom, Header, Segment};

/// Number of the IPv4 option that contains a congestion header or its echo. RFC 4727 reserves this number for
/// experiments. The number also states that routers copy the option to all fragments.
const HEADER_OPTION: u8 = 158;
/// Bit in the kind of an option. The bit is set for an echo, and clear for a congestion header.
const ECHO: u8 = 0x80;
/// Maximum number of bytes of all options in an IPv4 header.
const IP_OPTION_BYTES_MAX: u16 = 40;
/// Numbers of the protocols (RFC 790).
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Bytes of the headers without options.
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
/// The bit "don't fragment" in the field of flags and fragment offset (RFC 791).
const DONT_FRAGMENT: u16 = 0x4000;
/// The receive window in the headers of all captured packets. Packets of the simulator have no receive window. The
/// simulator does not read this value, so the value never limits a flow.
const WINDOW: u16 = u16::MAX;
/// The window scale in the SYN and the SYN-ACK.
const WINDOW_SCALE: u8 = 7;
/// Linux's initial time to live.
const TTL: u8 = 64;

/// Returns the address of a node. The first node has the address 10.0.0.1.
pub(crate) fn address(node: u32) -> Ipv4Addr {
    // `narrows_sim::plan::check` allows far fewer nodes than 10.0.0.0/8 has addresses.
    Ipv4Addr::from(0x0a00_0001_u32.wrapping_add(node & 0x00ff_ffff))
}

/// Replaces the contents of `bytes` with the headers of a packet, followed by the contents that a stack has written.
/// Returns the length of the whole datagram. If the datagram is longer than `bytes`, its remaining bytes are zero.
pub fn datagram(p: &Captured<'_>, bytes: &mut Vec<u8>) -> usize {
    let size = p.size - excess(p);
    let mut out = Bytes::default();
    put_ip(&mut out, p, size);
    let transport = out.len;
    // Length of the TCP segment or the UDP datagram, including its header.
    let length = size.saturating_sub(transport as u16);
    match &p.segment {
        Some(segment) => {
            put_tcp(&mut out, p.ports, segment, p.payload);
            out.replace(transport + 16, !fold(pseudo_sum(p, TCP, length) + out.sum_from(transport)));
        }
        None => {
            out.put(p.ports.0.to_be_bytes());
            out.put(p.ports.1.to_be_bytes());
            out.put(length.to_be_bytes());
            out.put([0; 2]);
            let contents = u64::from(!checksum::compute(p.contents));
            let sum = !fold(pseudo_sum(p, UDP, length) + out.sum_from(transport) + contents);
            // In UDP, zero means "no checksum" (RFC 768).
            out.replace(transport + UDP_BYTES - 2, if sum == 0 { u16::MAX } else { sum });
        }
    }
    bytes.clear();
    bytes.extend_from_slice(out.as_slice());
    bytes.extend_from_slice(p.contents);
    usize::from(size).max(bytes.len())
}

/// Returns the number of bytes of another crate's header that do not fit into the options of IPv4. The captured packet
/// is shorter than the simulated packet by this number.
fn excess(p: &Captured<'_>) -> u16 {
    let length = p.copy.map_or(p.header.wire_bytes(), |copy| copy.echo_bytes());
    length.saturating_sub(IP_OPTION_BYTES_MAX)
}

/// Writes an IPv4 header, with a congestion header or an echo as its option (RFC 791).
fn put_ip(out: &mut Bytes, p: &Captured<'_>, size: u16) {
    let protocol = if p.segment.is_some() { TCP } else { UDP };
    out.put([0x40, p.ecn & 3]);
    out.put(size.to_be_bytes());
    out.put([0; 2]);
    out.put(DONT_FRAGMENT.to_be_bytes());
    out.put([TTL, protocol, 0, 0]);
    out.put(address(p.source).octets());
    out.put(address(p.destination).octets());
    put_congestion_header(out, p);
    // Length of the header in words of 32 bits. The length of each congestion header is a multiple of four bytes.
    out.bytes[0] |= (out.len / 4) as u8;
    out.replace(10, !fold(out.sum_from(0)));
}

/// Writes a congestion header or an echo as an option of IPv4, if the packet has one.
///
/// The first four bytes are the number of the option, the length, the kind, and flags. The fields follow as 32-bit
/// words.
fn put_congestion_header(out: &mut Bytes, p: &Captured<'_>) {
    let length = p.header.wire_bytes();
    if let Some(echo) = p.echo {
        let (word, kind) = echo.to_word();
        out.put([HEADER_OPTION, ECHO_BYTES as u8, ECHO | kind, 0]);
        out.put(word.to_be_bytes());
    } else if let Some(copy) = &p.copy {
        put_custom(out, copy, ECHO, copy.echo_bytes());
    } else if let Header::Custom(header) = &p.header {
        put_custom(out, header, 0, length);
    } else if length > 0 {
        let [kind, fields @ ..] = p.header.to_words();
        out.put([HEADER_OPTION, length as u8, kind as u8, (kind >> 8) as u8]);
        for field in &fields[..usize::from(length / 4 - 1)] {
            out.put(field.to_be_bytes());
        }
    }
}

/// Writes the header of another crate. The fourth byte is the protocol of the header, and the words follow. Unused room
/// is filled with zeros.
fn put_custom(out: &mut Bytes, header: &Custom, direction: u8, length: u16) {
    let length = length.min(IP_OPTION_BYTES_MAX);
    let [kind, ..] = Header::Custom(*header).to_words();
    out.put([HEADER_OPTION, length as u8, direction | kind as u8, header.protocol()]);
    let words = header.words().iter().copied().chain(std::iter::repeat(0));
    for word in words.take(usize::from(length / 4 - 1)) {
        out.put(word.to_be_bytes());
    }
}

/// Writes a TCP header with the options of Linux, in Linux's order (RFC 9293). The checksum is zero.
fn put_tcp(out: &mut Bytes, ports: (u16, u16), segment: &Segment, payload: u16) {
    let start = out.len;
    out.put(ports.0.to_be_bytes());
    out.put(ports.1.to_be_bytes());
    out.put(segment.seq.to_be_bytes());
    out.put(segment.ack_number.to_be_bytes());
    let psh = segment.fin && payload > 0;
    let flags = [segment.fin, segment.syn, segment.rst, psh, segment.ack, false, segment.ece, segment.cwr];
    out.put([0, flags.iter().rev().fold(0, |bits, &flag| bits << 1 | u8::from(flag))]);
    out.put(WINDOW.to_be_bytes());
    // Checksum and urgent pointer.
    out.put([0; 4]);
    put_options(out, segment);
    // Length of the header in words of 32 bits. The length of all options together is a multiple of four bytes. It is
    // at most 40 bytes, as `Packet::SACKS_BESIDE_RATE` ensures.
    out.bytes[start + 12] = (((out.len - start) / 4) << 4) as u8;
}

fn put_options(out: &mut Bytes, segment: &Segment) {
    if let Some(code) = segment.rate_code {
        // The rate option precedes the other options (docs/reference/wire-format.md, "Inserting").
        out.put([1, 1, KIND, LEN as u8]);
        out.put(EXID.to_be_bytes());
        out.put(code.to_be_bytes());
    }
    if let Some(mss) = segment.mss {
        out.put([2, 4]);
        out.put(mss.to_be_bytes());
        out.put([4, 2]);
    } else {
        out.put([1, 1]);
    }
    let (value, echo) = segment.timestamps;
    out.put([8, 10]);
    out.put(value.to_be_bytes());
    out.put(echo.to_be_bytes());
    if segment.mss.is_some() {
        out.put([1, 3, 3, WINDOW_SCALE]);
    }
    if segment.sacks > 0 {
        out.put([1, 1, 5, 2 + 8 * segment.sacks]);
        for (start, end) in &segment.sack[..usize::from(segment.sacks)] {
            out.put(start.to_be_bytes());
            out.put(end.to_be_bytes());
        }
    }
}

/// The headers of a packet, in an array without heap memory.
struct Bytes {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Default for Bytes {
    fn default() -> Self {
        Bytes { bytes: [0; Self::MAX], len: 0 }
    }
}

impl Bytes {
    /// IPv4 and TCP headers with all their options.
    const MAX: usize = IP_BYTES + TCP_BYTES + 2 * 40;

    /// Adds the bytes if the array has room for all of them. Otherwise, adds none.
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + N) {
            room.copy_from_slice(&bytes);
            self.len += N;
        }
    }

    /// Writes a 16-bit number at an offset.
    fn replace(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns the sum of all 32-bit words from the offset `start` to the end. [`fold`] reduces this sum to 16 bits.
    fn sum_from(&self, start: usize) -> u64 {
        let (words, _) = self.bytes[start..self.len].as_chunks::<4>();
        words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum()
    }
}

/// Returns the sum of the pseudo header (RFC 9293, section 3.1). A payload of zeros does not change the sum. The caller
/// adds the contents that a stack has written.
fn pseudo_sum(p: &Captured<'_>, protocol: u8, length: u16) -> u64 {
    let ends = u64::from(address(p.source).to_bits()) + u64::from(address(p.destination).to_bits());
    ends + u64::from(protocol) + u64::from(length)
}
