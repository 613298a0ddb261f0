//! Classifies frames. The link model decides whether and when a data frame arrives. Housekeeping frames always arrive,
//! and the link model only delays them.

/// Length in bytes of `struct virtio_net_hdr` (linux/virtio_net.h), which precedes each frame at a socket with
/// PACKET_VNET_HDR.
pub(crate) const VNET_HEADER: usize = 10;

/// Offset of the field `gso_type` in the virtio header.
const GSO_TYPE: usize = 1;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: u16 = 0x8100;
const IPPROTO_ICMPV6: u8 = 58;

/// The class of a frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An IP packet, except neighbour discovery and IPv6 multicast.
    Data {
        /// L3 bytes.
        bytes: u32,
        /// Whether the frame is a super-packet (GSO), which the sender's NIC would have segmented into several packets.
        super_packet: bool,
    },
    /// ARP, neighbour discovery, IPv6 multicast, and frames without an IP packet. No plan includes them.
    Housekeeping,
}

/// Classifies a frame that starts with its virtio header.
pub(crate) fn classify(packet: &[u8]) -> Kind {
    let Some((header, frame)) = packet.split_at_checked(VNET_HEADER) else { return Kind::Housekeeping };
    let super_packet = header[GSO_TYPE] != 0;
    let Some((mut ethertype, mut l3)) = ethertype(frame, 12) else { return Kind::Housekeeping };
    if ethertype == ETHERTYPE_VLAN {
        match self::ethertype(frame, 16) {
            Some(inner) => (ethertype, l3) = inner,
            None => return Kind::Housekeeping,
        }
    }
    // Short frames are padded to 60 bytes, so the length is taken from the IP header. In a super-packet (BIG TCP), the
    // length in the IP header may be 0.
    let header_length = match (ethertype, l3) {
        (ETHERTYPE_IPV4, [_, _, a, b, ..]) => u16::from_be_bytes([*a, *b]) as usize,
        (ETHERTYPE_IPV6, [_, _, _, _, a, b, next, _, ..]) => {
            // Multicast frames are housekeeping. They include listener reports, whose ICMPv6 message follows a
            // hop-by-hop header.
            if l3.get(24) == Some(&0xff) {
                return Kind::Housekeeping;
            }
            if *next == IPPROTO_ICMPV6 && l3.get(40).is_some_and(|t| is_neighbour_discovery(*t)) {
                return Kind::Housekeeping;
            }
            u16::from_be_bytes([*a, *b]) as usize + 40
        }
        _ => return Kind::Housekeeping,
    };
    let is_invalid = header_length == 0 || header_length > l3.len();
    let bytes = if is_invalid || super_packet { l3.len() } else { header_length };
    Kind::Data { bytes: bytes as u32, super_packet }
}

fn ethertype(frame: &[u8], at: usize) -> Option<(u16, &[u8])> {
    let value = frame.get(at..at + 2)?;
    Some((u16::from_be_bytes([value[0], value[1]]), frame.get(at + 2..)?))
}

/// Returns whether an ICMPv6 message belongs to multicast listener discovery (types 130 to 132 and 143, RFC 3810) or to
/// neighbour discovery (types 133 to 137, RFC 4861).
fn is_neighbour_discovery(icmp_type: u8) -> bool {
    (130..=137).contains(&icmp_type) || icmp_type == 143
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(ethertype: u16, l3: &[u8], gso: u8) -> Vec<u8> {
        let mut p = vec![0; VNET_HEADER];
        p[GSO_TYPE] = gso;
        p.extend([0xff; 12]);
        p.extend(ethertype.to_be_bytes());
        p.extend(l3);
        p
    }

    #[test]
    fn the_padding_of_a_short_frame_does_not_count() {
        let mut ip = [0u8; 46];
        (ip[0], ip[3]) = (0x45, 40);
        let kind = classify(&packet(ETHERTYPE_IPV4, &ip, 0));
        assert_eq!(kind, Kind::Data { bytes: 40, super_packet: false });
    }

    #[test]
    fn a_super_packet_has_the_length_of_its_frame() {
        let mut ip = vec![0u8; 9000];
        ip[0] = 0x45;
        assert_eq!(classify(&packet(ETHERTYPE_IPV4, &ip, 1)), Kind::Data { bytes: 9000, super_packet: true });
    }

    #[test]
    fn arp_and_neighbour_discovery_are_housekeeping_but_ping_is_not() {
        assert_eq!(classify(&packet(0x0806, &[0; 28], 0)), Kind::Housekeeping);
        let mut v6 = [0u8; 64];
        (v6[5], v6[6], v6[40]) = (24, IPPROTO_ICMPV6, 135);
        assert_eq!(classify(&packet(ETHERTYPE_IPV6, &v6, 0)), Kind::Housekeeping);
        v6[40] = 128;
        assert_eq!(classify(&packet(ETHERTYPE_IPV6, &v6, 0)), Kind::Data { bytes: 64, super_packet: false });
    }

    #[test]
    fn a_vlan_tag_is_skipped_and_a_truncated_frame_is_harmless() {
        let mut ip = vec![0, 7, 8, 0];
        ip.extend([0x45, 0, 0, 20]);
        ip.extend([0; 16]);
        assert_eq!(classify(&packet(ETHERTYPE_VLAN, &ip, 0)), Kind::Data { bytes: 20, super_packet: false });
        for length in 0..30 {
            let whole = packet(ETHERTYPE_VLAN, &ip, 0);
            classify(&whole[..length.min(whole.len())]);
        }
    }
}
