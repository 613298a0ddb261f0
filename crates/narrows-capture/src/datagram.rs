//! The bytes of a captured packet. Payload bytes are zero, and all checksums are right.

use std::net::Ipv4Addr;

use etherparse::{IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4Header, Ipv4Options, TcpHeader, UdpHeader};
use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::header::ECHO_BYTES;
use narrows_control::feedback::option::{EXID, KIND, LEN};
use narrows_sim::capture::{Captured, Segment};

/// IPv4 option of a congestion header and of its echo: for experiments, copied to fragments (RFC 4727).
pub const HEADER_OPTION: u8 = 158;
/// Bit of the kind of an echo, which tells it from a congestion header.
const ECHO: u8 = 0x80;
/// Bytes of an IPv4 header without options, and of a UDP header.
const IPV4_BYTES: u16 = 20;
const UDP_BYTES: u16 = 8;
/// Receive windows are not part of packets in the simulator. This window never limits a flow.
const WINDOW: u16 = u16::MAX;
/// The window scale of both SYNs.
const WINDOW_SCALE: u8 = 7;
/// Linux's initial time to live.
const TTL: u8 = 64;
/// The longest payload of a datagram, all zero.
static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];

/// Returns the address of a node: 10.0.0.1 for the first one.
pub fn address(node: u32) -> Ipv4Addr {
    // A network has at most some 100,000 nodes, so the numbers stay within 10.0.0.0/8.
    Ipv4Addr::from(0x0a00_0001_u32.wrapping_add(node & 0x00ff_ffff))
}

/// Returns the bytes of a packet, and the number of zero bytes that follow them.
pub fn datagram(p: &Captured<'_>) -> (Vec<u8>, u16) {
    let (source, destination) = (address(p.source), address(p.destination));
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
        source: source.octets(),
        destination: destination.octets(),
        // A congestion header has at most 20 bytes, a multiple of four.
        options: Ipv4Options::try_from(congestion_header(p).as_slice()).unwrap_or_default(),
    };
    ip.header_checksum = ip.calc_header_checksum();
    let payload = &ZEROS[..usize::from(p.payload)];
    let mut bytes = Vec::with_capacity(128);
    bytes.extend_from_slice(&ip.to_bytes());
    match &p.segment {
        Some(segment) => bytes.extend_from_slice(&tcp(p, segment, &ip, payload)),
        None => bytes.extend_from_slice(&udp(p, &ip)),
    }
    let rest = p.size.saturating_sub(bytes.len() as u16);
    (bytes, rest)
}

/// Returns a TCP header with the options of Linux, in Linux's order.
fn tcp(p: &Captured<'_>, segment: &Segment, ip: &Ipv4Header, payload: &[u8]) -> Vec<u8> {
    let mut header = TcpHeader::new(p.ports.0, p.ports.1, segment.seq, WINDOW);
    header.acknowledgment_number = segment.ack_number;
    header.syn = segment.syn;
    header.ack = segment.ack;
    header.fin = segment.fin;
    header.rst = segment.rst;
    header.ece = segment.ece;
    header.cwr = segment.cwr;
    header.psh = segment.fin && p.payload > 0;
    // All options together have at most 40 bytes, as `Packet::SACKS_BESIDE_RATE` ensures.
    let _ = header.set_options_raw(&options(segment));
    header.checksum = header.calc_checksum_ipv4(ip, payload).unwrap_or(0);
    header.to_bytes().to_vec()
}

fn options(segment: &Segment) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40);
    if let Some(code) = segment.rate_code {
        // The option precedes the others (docs/reference/wire-format.md, "Inserting").
        bytes.extend_from_slice(&[1, 1, KIND, LEN as u8]);
        bytes.extend_from_slice(&EXID.to_be_bytes());
        bytes.extend_from_slice(&RateCode::from_bits(code).to_bits().to_be_bytes());
    }
    let (value, echo) = segment.timestamps;
    if let Some(mss) = segment.mss {
        bytes.extend_from_slice(&[2, 4]);
        bytes.extend_from_slice(&mss.to_be_bytes());
        bytes.extend_from_slice(&[4, 2]);
    } else {
        bytes.extend_from_slice(&[1, 1]);
    }
    bytes.extend_from_slice(&[8, 10]);
    bytes.extend_from_slice(&value.to_be_bytes());
    bytes.extend_from_slice(&echo.to_be_bytes());
    if segment.mss.is_some() {
        bytes.extend_from_slice(&[1, 3, 3, WINDOW_SCALE]);
    }
    if segment.sacks > 0 {
        bytes.extend_from_slice(&[1, 1, 5, 2 + 8 * segment.sacks]);
        for (start, end) in &segment.sack[..usize::from(segment.sacks)] {
            bytes.extend_from_slice(&start.to_be_bytes());
            bytes.extend_from_slice(&end.to_be_bytes());
        }
    }
    bytes
}

fn udp(p: &Captured<'_>, ip: &Ipv4Header) -> [u8; 8] {
    let length = p.size.saturating_sub(IPV4_BYTES).max(UDP_BYTES);
    let payload = &ZEROS[..usize::from(length - UDP_BYTES)];
    let mut header = UdpHeader { source_port: p.ports.0, destination_port: p.ports.1, length, checksum: 0 };
    header.checksum = header.calc_checksum_ipv4(ip, payload).unwrap_or(0);
    header.to_bytes()
}

/// Returns a congestion header or an echo as an option of IPv4; empty without one.
///
/// The first four bytes are option, length, kind, and flags. The fields follow as 32-bit words.
fn congestion_header(p: &Captured<'_>) -> Vec<u8> {
    if let Some(echo) = p.echo {
        let (word, kind) = echo.to_word();
        let mut bytes = vec![HEADER_OPTION, ECHO_BYTES as u8, ECHO | kind, 0];
        bytes.extend_from_slice(&word.to_be_bytes());
        return bytes;
    }
    let length = p.header.wire_bytes();
    if length == 0 {
        return Vec::new();
    }
    let [kind, fields @ ..] = p.header.to_words();
    let mut bytes = vec![HEADER_OPTION, length as u8, kind as u8, (kind >> 8) as u8];
    for field in &fields[..usize::from(length / 4 - 1)] {
        bytes.extend_from_slice(&field.to_be_bytes());
    }
    bytes
}
