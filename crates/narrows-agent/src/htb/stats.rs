//! Counters of a class, from `TCA_STATS2` (include/uapi/linux/gen_stats.h).

use netlink_packet_core::Nla;
use netlink_packet_route::tc::{TcAttribute, TcMessage, TcStats2};

use super::rtnl::value;

/// 64-bit packet count; the kernel adds it once 32 bits are not enough.
const TCA_STATS_PKT64: u16 = 8;

/// A leaf's counters in the kernel. Bytes count IP datagrams and the layout's overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeafStats {
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent; each GSO segment counts as one.
    pub packets: u64,
    /// Queued packets; a GSO packet counts as one.
    pub queued_packets: u32,
    /// Queued bytes.
    pub queued_bytes: u32,
    /// Packets dropped because the queue was full (wraps).
    pub drops: u32,
    /// Times that the leaf had to wait for its rate (wraps).
    pub overlimits: u32,
}

impl LeafStats {
    /// These counters, continued after those of an earlier HTB of the same port. The present queue is this one's.
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

pub(super) fn of(message: &TcMessage) -> LeafStats {
    let mut stats = LeafStats::default();
    let parts = message.attributes.iter().filter_map(|a| match a {
        TcAttribute::Stats2(parts) => Some(parts),
        _ => None,
    });
    for part in parts.flatten() {
        match part {
            TcStats2::Basic(basic) => {
                stats.bytes = basic.bytes;
                stats.packets = stats.packets.max(u64::from(basic.packets));
            }
            TcStats2::Queue(queue) => {
                stats.queued_packets = queue.qlen;
                stats.queued_bytes = queue.backlog;
                stats.drops = queue.drops;
                stats.overlimits = queue.overlimits;
            }
            TcStats2::Other(other) if other.kind() == TCA_STATS_PKT64 => {
                if let Ok(bytes) = value(other).try_into() {
                    stats.packets = u64::from_ne_bytes(bytes);
                }
            }
            _ => {}
        }
    }
    stats
}
