//! Parses the headers of a program's packets.

use std::net::IpAddr;

use etherparse::{
    IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice, TcpHeaderSlice, UdpHeaderSlice, ip_number as number,
};
use narrows_sim::plan::{FlowEnd, ProgramPlan, Protocol};

use crate::spec::FlowSpec;

/// The direction of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the sender of the flow's data to its receiver.
    Forth,
    /// From the receiver to the sender.
    Back,
}

/// The fields of a packet that the counters need.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Ports of the flow's sender and receiver, in this order for packets of both directions. The two ports identify a
    /// connection.
    pub(crate) ports: (u16, u16),
    /// Length of the IP packet in bytes.
    pub(crate) l3_bytes: u32,
    /// Payload bytes of TCP or UDP.
    pub(crate) payload: u32,
    /// TCP's fields; `None` for UDP.
    pub(crate) tcp: Option<Tcp>,
    /// Whether the packet is the first fragment of several.
    pub(crate) is_fragmented: bool,
}

/// Fields of a TCP header.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tcp {
    pub(crate) sequence: u32,
    /// Acknowledgement number; `None` if the flag ACK is not set.
    pub(crate) acknowledgement: Option<u32>,
    pub(crate) is_syn: bool,
    pub(crate) is_fin: bool,
    pub(crate) is_reset: bool,
}

/// Selects the packets that belong to a flow.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Wanted {
    source: IpAddr,
    destination: IpAddr,
    protocol: Protocol,
    port: u16,
    server_at: FlowEnd,
}

impl Wanted {
    pub(crate) fn new(spec: &FlowSpec, program: &ProgramPlan) -> Self {
        Wanted {
            source: spec.source,
            destination: spec.destination,
            protocol: program.protocol,
            port: program.port,
            server_at: program.server_at(),
        }
    }

    /// Parses an IP packet. The slice may contain only the packet's first bytes. Returns `None` if the packet does not
    /// belong to the flow.
    pub(crate) fn find(&self, packet: &[u8]) -> Option<(Way, Segment)> {
        let ip = Ip::parse(packet)?;
        let way = match (ip.source, ip.destination) {
            ends if ends == (self.source, self.destination) => Way::Forth,
            ends if ends == (self.destination, self.source) => Way::Back,
            _ => return None,
        };
        let expected = match self.protocol {
            Protocol::Tcp => number::TCP,
            Protocol::Udp => number::UDP,
        };
        if ip.protocol != expected {
            return None;
        }
        let body = packet.get(ip.header..)?;
        let l3_bytes = ip.length;
        let rest = |header: usize| l3_bytes.saturating_sub((ip.header + header) as u32);
        let (from, to, payload, tcp) = match self.protocol {
            Protocol::Tcp => {
                let tcp = TcpHeaderSlice::from_slice(body).ok()?;
                let fields = Tcp {
                    sequence: tcp.sequence_number(),
                    acknowledgement: tcp.ack().then(|| tcp.acknowledgment_number()),
                    is_syn: tcp.syn(),
                    is_fin: tcp.fin(),
                    is_reset: tcp.rst(),
                };
                (tcp.source_port(), tcp.destination_port(), rest(tcp.slice().len()), Some(fields))
            }
            Protocol::Udp => {
                let udp = UdpHeaderSlice::from_slice(body).ok()?;
                // UDP's header states the length of the whole datagram, even if the datagram is fragmented.
                let length = u32::from(udp.length()).saturating_sub(udp.slice().len() as u32);
                (udp.source_port(), udp.destination_port(), length, None)
            }
        };
        let ports = if way == Way::Forth { (from, to) } else { (to, from) };
        let is_fragmented = ip.has_more_fragments;
        let is_wanted = self.server_at.of(ports) == self.port;
        is_wanted.then_some((way, Segment { ports, l3_bytes, payload, tcp, is_fragmented }))
    }
}

/// An IP header.
struct Ip {
    source: IpAddr,
    destination: IpAddr,
    protocol: IpNumber,
    /// Length of the header and length of the whole packet, in bytes.
    header: usize,
    length: u32,
    has_more_fragments: bool,
}

impl Ip {
    /// Parses a header. Packets with IPv6 extension headers, and all fragments except the first, are not recognised as
    /// TCP or UDP.
    fn parse(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                let ip = Ipv4HeaderSlice::from_slice(packet).ok()?;
                let is_first = ip.fragments_offset().value() == 0;
                is_first.then(|| Ip {
                    source: IpAddr::V4(ip.source_addr()),
                    destination: IpAddr::V4(ip.destination_addr()),
                    protocol: ip.protocol(),
                    header: ip.slice().len(),
                    length: u32::from(ip.total_len()),
                    has_more_fragments: ip.more_fragments(),
                })
            }
            6 => {
                let ip = Ipv6HeaderSlice::from_slice(packet).ok()?;
                Some(Ip {
                    source: IpAddr::V6(ip.source_addr()),
                    destination: IpAddr::V6(ip.destination_addr()),
                    protocol: ip.next_header(),
                    header: ip.slice().len(),
                    length: u32::from(ip.payload_length()) + ip.slice().len() as u32,
                    has_more_fragments: false,
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    const HOSTS: ([u8; 4], [u8; 4]) = ([10, 0, 0, 1], [10, 0, 0, 2]);

    fn wanted(protocol: Protocol, server_at: FlowEnd) -> Wanted {
        let (source, destination) = (HOSTS.0.into(), HOSTS.1.into());
        Wanted { source, destination, protocol, port: 80, server_at }
    }

    fn tcp(from: [u8; 4], to: [u8; 4], ports: (u16, u16), payload: usize) -> Vec<u8> {
        let builder = PacketBuilder::ipv4(from, to, 64).tcp(ports.0, ports.1, 7, 1_000).ack(9).fin();
        let mut packet = Vec::new();
        builder.write(&mut packet, &vec![0; payload]).unwrap();
        packet
    }

    #[test]
    fn a_segment_is_recognised_from_its_first_bytes_in_both_directions() {
        let (a, b) = HOSTS;
        let download = wanted(Protocol::Tcp, FlowEnd::From);
        let (way, forth) = download.find(&tcp(a, b, (80, 5_000), 1_448)[..80]).unwrap();
        assert_eq!(
            (way, forth.ports, forth.payload, forth.l3_bytes),
            (Way::Forth, (80, 5_000), 1_448, 1_488)
        );
        let fields = Tcp { sequence: 7, acknowledgement: Some(9), is_fin: true, ..Tcp::default() };
        assert_eq!(forth.tcp, Some(fields));
        let (way, back) = download.find(&tcp(b, a, (5_000, 80), 0)).unwrap();
        assert_eq!((way, back.ports, back.payload), (Way::Back, (80, 5_000), 0));
    }

    #[test]
    fn packets_of_other_ports_hosts_and_protocols_are_left_out() {
        let (a, b) = HOSTS;
        let upload = wanted(Protocol::Tcp, FlowEnd::To);
        assert!(upload.find(&tcp(a, b, (5_000, 80), 10)).is_some());
        assert!(upload.find(&tcp(a, b, (80, 5_000), 10)).is_none(), "the server is at the receiver");
        assert!(upload.find(&tcp(a, [10, 0, 0, 3], (5_000, 80), 10)).is_none());
        assert!(wanted(Protocol::Udp, FlowEnd::To).find(&tcp(a, b, (5_000, 80), 10)).is_none());
    }

    #[test]
    fn a_datagrams_payload_excludes_its_headers() {
        let (a, b) = HOSTS;
        let mut packet = Vec::new();
        PacketBuilder::ipv4(a, b, 64).udp(5_000, 80).write(&mut packet, &[0; 1_200]).unwrap();
        let (_, segment) = wanted(Protocol::Udp, FlowEnd::To).find(&packet).unwrap();
        assert_eq!((segment.payload, segment.l3_bytes, segment.tcp), (1_200, 1_228, None));
        assert!(!segment.is_fragmented);
    }

    #[test]
    fn the_first_fragment_has_the_payload_of_its_datagram_and_later_ones_are_left_out() {
        let (a, b) = HOSTS;
        let mut packet = Vec::new();
        PacketBuilder::ipv4(a, b, 64).udp(5_000, 80).write(&mut packet, &[0; 4_000]).unwrap();
        packet.truncate(1_500);
        packet[2..4].copy_from_slice(&1_500u16.to_be_bytes());
        packet[6] = 0x20; // MF, offset 0
        let find = |packet: &[u8]| wanted(Protocol::Udp, FlowEnd::To).find(packet);
        let (_, first) = find(&packet).unwrap();
        assert_eq!((first.payload, first.l3_bytes, first.is_fragmented), (4_000, 1_500, true));
        packet[7] = 185; // an offset of 1,480 bytes
        assert_eq!(find(&packet), None);
    }

    proptest! {
        /// Parsing neither panics nor reads beyond the packet, for any bytes.
        #[test]
        fn any_bytes_can_be_parsed(mut bytes in prop::collection::vec(any::<u8>(), 0..128), version in 4u8..7) {
            if let Some(first) = bytes.first_mut() {
                *first = version << 4 | *first & 15;
            }
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                let _ = wanted(protocol, FlowEnd::To).find(&bytes);
            }
        }
    }
}
