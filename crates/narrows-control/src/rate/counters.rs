//! The counters of a controlled port.

use super::{LEAVES, Leaf, PortId, Report};
use crate::units::{Bytes, Rate, Span, Time};

/// Counters of the controlled port. The host of the controller maintains them.
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

/// L3 bytes of a full packet. Used to convert limits in packets to bytes.
const FULL_PACKET: u64 = 1500;

/// Number of leaves for rated flows. These leaves come first.
const RATED: usize = 2;
const _: () = assert!(Leaf::Mouse as usize == 0 && Leaf::Elephant as usize == 1);

/// Returns the sum of these values over the leaves of rated flows.
pub(super) fn rated(of: &[Bytes; LEAVES]) -> Bytes {
    of.iter().take(RATED).copied().sum()
}

impl PortCounters {
    /// Returns the number of queued packets of rated flows.
    pub(super) fn rated_packets(&self) -> u32 {
        self.queued_packets.iter().take(RATED).copied().fold(0, u32::saturating_add)
    }

    /// Returns the L3 bytes that are queued in all leaves.
    pub fn backlog(&self) -> Bytes {
        self.queued.iter().copied().sum()
    }

    /// Returns a report of these counters to the SDN controller.
    pub(super) fn report(
        &self,
        port: PortId,
        at: Time,
        capacity: Rate,
        rated_share: Rate,
        period: Span,
    ) -> Report {
        let packets = |of: &[u32]| of.iter().copied().fold(0, u32::saturating_add);
        Report {
            port,
            at,
            capacity,
            rated_share,
            rated_arrived: rated(&self.arrived),
            rated_departed: rated(&self.departed),
            departed: self.departed.iter().copied().sum(),
            queued: self.backlog(),
            departed_packets: self.departed_packets,
            rated_queued: rated(&self.queued),
            rated_packets: (packets(&self.queued_packets[..RATED]), packets(&self.limit_packets[..RATED])),
            all_packets: (packets(&self.queued_packets), packets(&self.limit_packets)),
            period,
        }
    }

    /// Returns the limit of the elephants' queue in bytes, computed for full packets, or `None` if there is no limit.
    pub fn limit(&self) -> Option<Bytes> {
        let packets = u64::from(self.limit_packets[Leaf::Elephant as usize]);
        (packets > 0).then(|| Bytes::new(packets * FULL_PACKET))
    }
}
