//! The counters of a controlled port.

use super::{LEAVES, Leaf};
use crate::units::{Bytes, Rate};

/// Counters of the controlled port, measured by its host.
#[derive(Clone, Debug, Default)]
pub struct PortCounters {
    /// Configured capacity; `None` if it must be measured (BRF-101).
    pub capacity: Option<Rate>,
    /// L3 bytes offered to the port so far, by leaf.
    pub arrived: [Bytes; LEAVES],
    /// L3 bytes that left the port so far, by leaf.
    pub departed: [Bytes; LEAVES],
    /// Packets that left the port so far, all leaves.
    pub departed_packets: u64,
    /// L3 bytes queued now, by leaf.
    pub queued: [Bytes; LEAVES],
    /// Packets queued now, by leaf.
    pub queued_packets: [u32; LEAVES],
    /// Queue limit in packets, by leaf; 0 for no limit.
    pub limit_packets: [u32; LEAVES],
}

/// L3 bytes of a full packet, to convert limits in packets to bytes.
const FULL_PACKET: u64 = 1500;

impl PortCounters {
    /// L3 bytes queued, all leaves.
    pub fn backlog(&self) -> Bytes {
        self.queued.iter().copied().sum()
    }

    /// Limit of the rated flows' queue in full packets; `None` for no limit.
    pub fn limit(&self) -> Option<Bytes> {
        let packets = u64::from(self.limit_packets[Leaf::Elephant as usize]);
        (packets > 0).then(|| Bytes::new(packets * FULL_PACKET))
    }
}
