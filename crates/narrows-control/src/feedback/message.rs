//! The message that carries a flow's rate to the flow's source out of band (PAC-3b), as `bpf/include/wire.h` encodes it.
//!
//! The message is a UDP datagram from the flow's destination address to its source address. Its payload has
//! [`LEN`] bytes in network order: ExID, version, a zero byte, the flow's two ports, two TCP sequence numbers, the rate's
//! sixteen bits and two zero bytes. The sequence numbers prove that the sender of the message sees the flow's packets,
//! as in an ACK.

use core::net::IpAddr;

use super::code::RateCode;
use super::option::EXID;

/// UDP port, source and destination, of messages. It is not registered.
pub const PORT: u16 = 20_055;
/// Version of the format.
pub const VERSION: u8 = 1;
/// Length of the payload in bytes.
pub const LEN: usize = 20;

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
/// Time to live, or hop limit.
const HOPS: u8 = 64;

/// A message about one flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RateMessage {
    /// The flow's source port.
    pub sport: u16,
    /// The flow's destination port.
    pub dport: u16,
    /// The end of the flow's data that the switch has seen.
    pub seq: u32,
    /// The acknowledgement number of the flow's data packets.
    pub ack: u32,
    /// The flow's rate.
    pub code: RateCode,
}

impl RateMessage {
    /// Returns the payload of the datagram.
    pub fn payload(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..2].copy_from_slice(&EXID.to_be_bytes());
        bytes[2] = VERSION;
        bytes[4..6].copy_from_slice(&self.sport.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.dport.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.seq.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.ack.to_be_bytes());
        bytes[16..18].copy_from_slice(&self.code.to_bits().to_be_bytes());
        bytes
    }

    /// Returns the whole IP datagram from the flow's destination to its source. Returns `None` if the addresses are of
    /// different families.
    pub fn datagram(&self, source: IpAddr, destination: IpAddr) -> Option<Vec<u8>> {
        let length = (UDP_HEADER + LEN) as u16;
        let mut ip = Vec::with_capacity(68);
        // The sum over the pseudo header of UDP. An IPv4 header has the same addresses at its end.
        let mut pseudo = sum(&[0, UDP]) + u32::from(length);
        match (destination, source) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let total = length + 20;
                ip.extend([0x45, 0]);
                ip.extend(total.to_be_bytes());
                // No identification is needed, because the datagram must not be fragmented (RFC 6864).
                ip.extend([0, 0, 0x40, 0, HOPS, UDP, 0, 0]);
                ip.extend(from.octets());
                ip.extend(to.octets());
                let check = folded(sum(&ip));
                ip[10..12].copy_from_slice(&check.to_be_bytes());
                pseudo += sum(&ip[12..]);
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                ip.extend([0x60, 0, 0, 0]);
                ip.extend(length.to_be_bytes());
                ip.extend([UDP, HOPS]);
                ip.extend(from.octets());
                ip.extend(to.octets());
                pseudo += sum(&ip[8..]);
            }
            _ => return None,
        }
        let at = ip.len();
        for word in [PORT, PORT, length, 0] {
            ip.extend(word.to_be_bytes());
        }
        ip.extend(self.payload());
        let check = match folded(pseudo + sum(&ip[at..])) {
            // Zero means that there is no checksum (RFC 768).
            0 => u16::MAX,
            check => check,
        };
        ip[at + 6..at + 8].copy_from_slice(&check.to_be_bytes());
        Some(ip)
    }
}

/// Returns the sum of these 16-bit words.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum()
}

/// Returns the Internet checksum of a sum (RFC 1071).
fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    fn message() -> RateMessage {
        let code = RateCode::encode(Rate::from_bits_per_sec(49_000_000));
        RateMessage { sport: 40_000, dport: 5001, seq: 0x0102_0304, ack: 0x0506_0708, code }
    }

    #[test]
    fn the_payload_is_as_documented() {
        let code = message().code.to_bits().to_be_bytes();
        let expected =
            [0x4E, 0x57, 1, 0, 0x9C, 0x40, 0x13, 0x89, 1, 2, 3, 4, 5, 6, 7, 8, code[0], code[1], 0, 0];
        assert_eq!(message().payload(), expected);
    }

    /// A receiver's sum over all words, including the checksum, is 0xffff (RFC 1071).
    #[test]
    fn checksums_are_correct_in_both_families() {
        for (source, destination, header) in
            [("10.0.0.1", "10.0.0.2", 20), ("fd00::1", "fd00:1:2:3:4:5:6:7", 40)]
        {
            let (source, destination): (IpAddr, IpAddr) =
                (source.parse().unwrap(), destination.parse().unwrap());
            let ip = message().datagram(source, destination).unwrap();
            assert_eq!(ip.len(), header + 28);
            if header == 20 {
                assert_eq!(folded(sum(&ip[..20])), 0);
            }
            let addresses = &ip[if header == 20 { 12 } else { 8 }..header];
            let whole = sum(addresses) + u32::from(UDP) + 28 + sum(&ip[header..]);
            assert_eq!(folded(whole), 0);
            assert_eq!(ip[header + 8..], message().payload());
        }
        assert_eq!(message().datagram("10.0.0.1".parse().unwrap(), "::1".parse().unwrap()), None);
    }
}
