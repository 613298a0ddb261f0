//! Reads the counters of a class from `TCA_STATS2` (include/uapi/linux/gen_stats.h).

use netlink_packet_core::NlasIterator;

const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
/// The attribute with the 64-bit packet count, which the kernel adds when the count exceeds 32 bits.
const TCA_STATS_PKT64: u16 = 8;
/// Length of `struct nlattr`, which precedes the value.
const NLATTR: usize = 4;

/// The kernel's counters of a leaf. Bytes include the layout's overhead for each datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeafStats {
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent. Each segment of a GSO packet counts as one packet.
    pub packets: u64,
    /// Queued packets. A whole GSO packet counts as one packet.
    pub queued_packets: u32,
    /// Queued bytes.
    pub queued_bytes: u32,
    /// Packets dropped because the queue was full (wraps).
    pub drops: u32,
    /// How often the leaf had to wait for its rate (wraps).
    pub overlimits: u32,
}

impl LeafStats {
    /// Returns the sum of these counters and those of an earlier HTB of the port. Queued packets and bytes are only
    /// those of the present HTB.
    #[must_use]
    pub fn after(self, earlier: LeafStats) -> LeafStats {
        LeafStats {
            bytes: self.bytes.wrapping_add(earlier.bytes),
            packets: self.packets.wrapping_add(earlier.packets),
            drops: self.drops.wrapping_add(earlier.drops),
            overlimits: self.overlimits.wrapping_add(earlier.overlimits),
            ..self
        }
    }
}

/// Adds the counters of another queue of the same leaf.
impl std::ops::AddAssign for LeafStats {
    fn add_assign(&mut self, other: LeafStats) {
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.packets = self.packets.wrapping_add(other.packets);
        self.queued_packets = self.queued_packets.saturating_add(other.queued_packets);
        self.queued_bytes = self.queued_bytes.saturating_add(other.queued_bytes);
        self.drops = self.drops.wrapping_add(other.drops);
        self.overlimits = self.overlimits.wrapping_add(other.overlimits);
    }
}

/// Returns the counters in the attributes of a class. Missing and short attributes count as zero.
///
/// The control loop reads the UDP queues of all ports a hundred times a second, so this function allocates no memory.
pub(super) fn of(class: &[u8]) -> LeafStats {
    let mut stats = LeafStats::default();
    let of = |attributes, kind| {
        values(attributes).filter(move |(found, _)| *found == kind).map(|(_, value)| value)
    };
    for (kind, value) in of(class, TCA_STATS2).flat_map(values) {
        let word =
            |at: usize| value.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes);
        let long = || value.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
        match kind {
            TCA_STATS_BASIC => {
                stats.bytes = long();
                stats.packets = stats.packets.max(word(8).into());
            }
            TCA_STATS_QUEUE => {
                stats.queued_packets = word(0);
                stats.queued_bytes = word(4);
                stats.drops = word(8);
                stats.overlimits = word(16);
            }
            TCA_STATS_PKT64 => stats.packets = long(),
            _ => {}
        }
    }
    stats
}

/// Returns the kinds and values of attributes, up to the first invalid attribute.
fn values(attributes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let valid = NlasIterator::new(attributes).map_while(Result::ok);
    valid.filter_map(|nla| Some((nla.kind(), nla.into_inner().get(NLATTR..usize::from(nla.length()))?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = (NLATTR + value.len()) as u16;
        [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat()
    }

    #[test]
    fn counters_are_read_and_truncated_attributes_are_not() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let basic = [&7_000_000_000_u64.to_ne_bytes()[..], &words(&[5, 0])].concat();
        let stats = [
            attribute(TCA_STATS_BASIC, &basic),
            attribute(TCA_STATS_QUEUE, &words(&[1, 2, 3, 4, 5])),
            attribute(TCA_STATS_PKT64, &6_000_000_000_u64.to_ne_bytes()),
        ];
        let class = attribute(TCA_STATS2, &stats.concat());
        let expected = LeafStats {
            bytes: 7_000_000_000,
            packets: 6_000_000_000,
            queued_packets: 1,
            queued_bytes: 2,
            drops: 3,
            overlimits: 5,
        };
        assert_eq!(of(&class), expected);
        // In a truncated message, the outer attribute is longer than the rest of the message.
        (0..class.len()).for_each(|length| assert_eq!(of(&class[..length]), LeafStats::default()));
    }
}
