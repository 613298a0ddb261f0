//! The HTB classes, and how the rate controller's classes map to HTB classes.

use narrows_control::rate::{Class, LEAVES};
use narrows_control::units::{Bytes, Rate};

/// Major number of our HTB: "NW".
pub const HANDLE: u16 = 0x4e57;

/// Bytes that Linux adds to an IP datagram without a size table: the Ethernet header.
pub(super) const ETHERNET_HEADER: u32 = 14;

/// HTB refuses a rate of zero. One packet per second replaces a rate of zero, as in `narrows_control::rate::brf`.
pub(super) const LEAST_RATE: Rate = Rate::from_bytes_per_sec(1500);

/// Parameters of a port's HTB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Rate of the link, in bytes of IP datagrams plus `overhead`.
    pub link: Rate,
    /// Largest IP datagram.
    pub mtu: Bytes,
    /// Limit of each leaf's queue in packets, in the order of `Leaf`.
    pub limits: [u32; LEAVES],
    /// Bytes that the link adds to an IP datagram. 14: frames, as Linux counts them by default; 0: L3; 38:
    /// Ethernet on the wire with preamble, checksum and gap. The module's documentation describes the effect
    /// on GSO packets.
    pub overhead: u32,
}

impl Layout {
    /// A link of this rate with 1000 packets in each leaf (the usual `txqueuelen`), counted as frames.
    pub fn new(link: Rate, mtu: Bytes) -> Self {
        Layout { link, mtu, limits: [1000; LEAVES], overhead: ETHERNET_HEADER }
    }
}

/// A class of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) minor: u16,
    /// Minor number of the parent class; 0: the root.
    pub(super) parent: u16,
    /// Classes with lower values borrow first. Only for leaves.
    pub(super) priority: u32,
}

/// The order starts at the root, because a class needs its parent.
pub(super) const CLASSES: [Node; 6] = [
    Node { minor: 0x1, parent: 0, priority: 0 },
    Node { minor: 0x10, parent: 0x1, priority: 0 },
    Node { minor: 0x11, parent: 0x10, priority: 0 },
    Node { minor: 0x12, parent: 0x10, priority: 1 },
    Node { minor: 0x20, parent: 0x1, priority: 2 },
    Node { minor: 0x30, parent: 0x1, priority: 3 },
];
pub(super) const LINK: usize = 0;
const RATED: usize = 1;
const MOUSE: usize = 2;
const ELEPHANT: usize = 3;
const OTHER_TCP: usize = 4;
const UDP: usize = 5;

/// Minor number of the class for unclassified packets.
pub(super) const DEFAULT_MINOR: u16 = 0x20;

/// The class of a leaf. Invalid numbers give the default class.
pub(super) fn leaf_node(leaf: usize) -> &'static Node {
    let at = [MOUSE, ELEPHANT, OTHER_TCP, UDP].get(leaf).copied().unwrap_or(OTHER_TCP);
    &CLASSES[at]
}

/// `major:minor` of our HTB.
pub(super) fn handle(minor: u16) -> u32 {
    u32::from(HANDLE) << 16 | u32::from(minor)
}

impl Node {
    /// Handle and parent as in the kernel's dump. The parent of the top class is `TC_H_ROOT`.
    pub(super) fn place(&self) -> (u32, u32) {
        let parent = if self.parent == 0 { u32::MAX } else { handle(self.parent) };
        (handle(self.minor), parent)
    }

    /// Rate and ceiling before the rate controller's first decision: a port without flows gives all its rate to the
    /// rated class, and all classes may borrow.
    pub(super) fn start(self, link: Rate) -> (Rate, Rate) {
        let link = link.max(LEAST_RATE);
        match self.minor {
            0x1 | 0x10 => (link, link),
            0x11 => (link - LEAST_RATE, link),
            _ => (LEAST_RATE, link),
        }
    }
}

/// Rates of the HTB classes (number in [`CLASSES`], rate, ceiling) that implement a class of the rate
/// controller.
///
/// HTB sends a leaf within its own rate before any leaf that borrows, regardless of priorities, and does not
/// limit the leaves' sum to their parent's rate. So the sum of the leaves' rates must equal the class's rate.
/// Strict priority (BRF-50) needs all of the class's rate at the mice's leaf. Elephants borrow the rest from the inner
/// class.
pub(super) fn nodes_of(class: Class, rate: Rate, ceil: Rate) -> impl Iterator<Item = (usize, Rate, Rate)> {
    let rate = rate.max(LEAST_RATE);
    let ceil = ceil.max(rate);
    let mice = (rate - LEAST_RATE).max(LEAST_RATE);
    let nodes = match class {
        Class::Rated => {
            [Some((RATED, rate, ceil)), Some((MOUSE, mice, ceil)), Some((ELEPHANT, LEAST_RATE, ceil))]
        }
        Class::OtherTcp => [Some((OTHER_TCP, rate, ceil)), None, None],
        Class::Udp => [Some((UDP, rate, ceil)), None, None],
    };
    nodes.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leaves_sum_does_not_exceed_the_parent() {
        for rate in [1500, 4_000, 12_500_000, 12_500_000_000] {
            let rate = Rate::from_bytes_per_sec(rate);
            let nodes: Vec<_> = nodes_of(Class::Rated, rate, rate).collect();
            let of = |at| nodes.iter().find(|n| n.0 == at).map(|n| n.1).unwrap();
            assert_eq!(of(RATED), rate);
            assert!(of(MOUSE) + of(ELEPHANT) <= rate.max(LEAST_RATE + LEAST_RATE));
        }
    }

    #[test]
    fn a_zero_rate_is_a_packet_per_second_and_the_ceiling_is_at_least_the_rate() {
        for class in [Class::Rated, Class::OtherTcp, Class::Udp] {
            for (_, rate, ceil) in nodes_of(class, Rate::ZERO, Rate::ZERO) {
                assert_eq!((rate, ceil), (LEAST_RATE, LEAST_RATE));
            }
        }
    }
}
