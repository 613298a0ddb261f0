//! Builds the bytes of a captured packet, with correct checksums. Payload bytes are zero, except in datagrams whose
//! contents a stack (such as QUIC) has written.

use std::net::Ipv4Addr;

use etherparse::{IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4Header, Ipv4Options, TcpHeader, UdpHeader};
use narrows_control::feedback::checksum;
use narrows_control::feedback::header::ECHO_BYTES;
use narrows_control::feedback::option::{EXID, KIND, LEN};
use narrows_sim::capture::{Captured, Segment};

/// Type of the IPv4 option that carries a congestion header or its echo. RFC 4727 reserves this number for experiments.
/// Routers copy such options into every fragment.
const HEADER_OPTION: u8 = 158;
/// This bit of the option's kind marks an echo.
const ECHO: u8 = 0x80;
/// Bytes of a UDP header.
const UDP_BYTES: u16 = 8;
/// The receive window in every TCP header. The simulator has no receive windows, so the value is constant.
const WINDOW: u16 = u16::MAX;
/// The window scale in the SYN and the SYN-ACK.
const WINDOW_SCALE: u8 = 7;
/// Linux's initial time to live.
const TTL: u8 = 64;
/// Bytes of the pseudo header in checksums.
const PSEUDO_HEADER_BYTES: usize = 12;
/// Bytes of the longest TCP header.
const TCP_BYTES_MAX: usize = 60;

/// Returns the address of a node. The first node has the address 10.0.0.1.
pub(crate) fn address(node: u32) -> Ipv4Addr {
    // `narrows_sim::plan::check` allows far fewer nodes than 10.0.0.0/8 has addresses.
    Ipv4Addr::from(0x0a00_0001_u32.wrapping_add(node & 0x00ff_ffff))
}

/// Replaces `bytes` with the headers of a packet and any contents that its stack wrote. Returns the length of the whole
/// datagram. All later bytes of the datagram are zero.
pub fn datagram(p: &Captured<'_>, bytes: &mut Vec<u8>) -> usize {
    bytes.clear();
    let mut ip = Ipv4Header {
        dscp: IpDscp::ZERO,
        ecn: IpEcn::try_new(p.ecn & 3).unwrap_or_default(),
        total_len: p.size,
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: IpFragOffset::ZERO,
        time_to_live: TTL,
        protocol: if p.segment.is_some() { IpNumber::TCP } else { IpNumber::UDP },
        header_checksum: 0,
        source: address(p.source).octets(),
        destination: address(p.destination).octets(),
        options: congestion_header(p),
    };
    ip.header_checksum = ip.calc_header_checksum();
    bytes.extend_from_slice(&ip.to_bytes());
    let transport = bytes.len();
    let (offset, sum) = match &p.segment {
        Some(segment) => {
            bytes.extend_from_slice(&tcp(p, segment).to_bytes());
            (16, checksum(&ip, &bytes[transport..], p.payload))
        }
        None => {
            let length = p.size.saturating_sub(transport as u16);
            let header =
                UdpHeader { source_port: p.ports.0, destination_port: p.ports.1, length, checksum: 0 };
            bytes.extend_from_slice(&header.to_bytes());
            let sum = checksum(&ip, &bytes[transport..], length.saturating_sub(UDP_BYTES));
            let sum = checksum::update(sum, 0, !checksum::compute(p.contents));
            bytes.extend_from_slice(p.contents);
            // In UDP, zero means "no checksum" (RFC 768).
            (6, if sum == 0 { u16::MAX } else { sum })
        }
    };
    bytes[transport + offset..transport + offset + 2].copy_from_slice(&sum.to_be_bytes());
    usize::from(p.size).max(bytes.len())
}

/// Returns the checksum of a TCP or UDP header. The payload is all zeros and does not change the sum.
fn checksum(ip: &Ipv4Header, header: &[u8], payload: u16) -> u16 {
    let mut bytes = [0; PSEUDO_HEADER_BYTES + TCP_BYTES_MAX];
    bytes[..4].copy_from_slice(&ip.source);
    bytes[4..8].copy_from_slice(&ip.destination);
    bytes[9] = ip.protocol.0;
    bytes[10..12].copy_from_slice(&(header.len() as u16).wrapping_add(payload).to_be_bytes());
    let end = PSEUDO_HEADER_BYTES + header.len();
    bytes[PSEUDO_HEADER_BYTES..end].copy_from_slice(header);
    checksum::compute(&bytes[..end])
}

/// Returns a TCP header with the options of Linux, in Linux's order.
fn tcp(p: &Captured<'_>, segment: &Segment) -> TcpHeader {
    let mut header = TcpHeader::new(p.ports.0, p.ports.1, segment.seq, WINDOW);
    header.acknowledgment_number = segment.ack_number;
    header.syn = segment.syn;
    header.ack = segment.ack;
    header.fin = segment.fin;
    header.rst = segment.rst;
    header.ece = segment.ece;
    header.cwr = segment.cwr;
    header.psh = segment.fin && p.payload > 0;
    let options = options(segment);
    // All options together have at most 40 bytes, as `Packet::SACKS_BESIDE_RATE` ensures.
    let _ = header.set_options_raw(options.as_slice());
    header
}

/// The options of a header, in an array without heap memory.
#[derive(Default)]
struct Options {
    bytes: [[u8; 8]; 5],
    len: usize,
}

impl Options {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let flat = self.bytes.as_flattened_mut();
        if let Some(room) = flat.get_mut(self.len..self.len + N) {
            room.copy_from_slice(&bytes);
            self.len += N;
        }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes.as_flattened()[..self.len]
    }
}

fn options(segment: &Segment) -> Options {
    let mut options = Options::default();
    if let Some(code) = segment.rate_code {
        // The rate option precedes the other options (docs/reference/wire-format.md, "Inserting").
        options.put([1, 1, KIND, LEN as u8]);
        options.put(EXID.to_be_bytes());
        options.put(code.to_be_bytes());
    }
    if let Some(mss) = segment.mss {
        options.put([2, 4]);
        options.put(mss.to_be_bytes());
        options.put([4, 2]);
    } else {
        options.put([1, 1]);
    }
    let (value, echo) = segment.timestamps;
    options.put([8, 10]);
    options.put(value.to_be_bytes());
    options.put(echo.to_be_bytes());
    if segment.mss.is_some() {
        options.put([1, 3, 3, WINDOW_SCALE]);
    }
    if segment.sacks > 0 {
        options.put([1, 1, 5, 2 + 8 * segment.sacks]);
        for (start, end) in &segment.sack[..usize::from(segment.sacks)] {
            options.put(start.to_be_bytes());
            options.put(end.to_be_bytes());
        }
    }
    options
}

/// Returns the IPv4 option with the congestion header or its echo. The options are empty if the packet has neither.
///
/// The option begins with four bytes: type, length, kind and flags. The fields follow as 32-bit words.
fn congestion_header(p: &Captured<'_>) -> Ipv4Options {
    let mut options = Options::default();
    let length = p.header.wire_bytes();
    if let Some(echo) = p.echo {
        let (word, kind) = echo.to_word();
        options.put([HEADER_OPTION, ECHO_BYTES as u8, ECHO | kind, 0]);
        options.put(word.to_be_bytes());
    } else if length > 0 {
        let [kind, fields @ ..] = p.header.to_words();
        options.put([HEADER_OPTION, length as u8, kind as u8, (kind >> 8) as u8]);
        for field in &fields[..usize::from(length / 4 - 1)] {
            options.put(field.to_be_bytes());
        }
    } else {
        return Ipv4Options::default();
    }
    // The length of a congestion header is a multiple of four, and at most 20 bytes.
    Ipv4Options::try_from(options.as_slice()).unwrap_or_default()
}
