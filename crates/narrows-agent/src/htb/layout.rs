//! Defines the HTB classes, and assigns them to the classes of the rate controller.

use narrows_control::rate::{Class, LEAVES, Leaf, UDP_QUEUE_PART, UDP_QUEUES};
use narrows_control::units::{Bytes, Rate};

/// Major number of the agent's HTB, which is "NW" in ASCII.
pub const HANDLE: u16 = 0x4e57;

/// Bytes of the Ethernet header. Without a size table, HTB counts this header as a part of each packet.
pub(super) const ETHERNET_HEADER: u32 = 14;

/// One packet per second. HTB refuses a rate of zero, so this rate replaces it, as in `narrows_control::rate::brf`.
pub(super) const LEAST_RATE: Rate = Rate::from_bytes_per_sec(1500);

/// Minor number of UDP's first queue.
const UDP_FIRST: u16 = 0x100;
const UDP_END: u16 = UDP_FIRST + UDP_QUEUES;

/// The rate of each UDP queue. HTB serves leaves within their own rate before leaves that borrow. This rate is
/// therefore nearly zero, and the UDP queues borrow UDP's rate from their parent in turns.
const UDP_QUEUE_RATE: Rate = Rate::from_bytes_per_sec(1);

/// The ceiling of each UDP queue, too high to limit a queue. The parent's ceiling limits all UDP queues together.
const NO_CEILING: Rate = Rate::from_bits_per_sec(1_000_000_000_000);

/// Parameters of a port's HTB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Rate of the link, in bytes of IP datagrams plus `overhead`.
    pub link: Rate,
    /// Largest IP datagram.
    pub mtu: Bytes,
    /// Limit of each leaf's queue in packets, in the order of `Leaf`. Each UDP queue has a tenth of UDP's limit.
    pub limits: [u32; LEAVES],
    /// Bytes that the link adds to an IP datagram. With 14, Linux's default, rates count frames. With 0, rates count L3
    /// bytes. With 38, rates count Ethernet on the wire, with preamble, checksum and gap. For the effect on GSO
    /// packets, see the module's documentation.
    pub overhead: u32,
}

impl Layout {
    /// Returns the layout for a link of this rate. Each leaf holds up to 1000 packets (the usual `txqueuelen`), and
    /// rates count frames.
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
    /// Priority of a leaf. Leaves with lower values borrow first. HTB ignores the priority of an inner class.
    pub(super) priority: u32,
}

/// The classes whose rates change. Parents come first, because they must be created first.
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

/// Returns the classes of UDP's queues.
pub(super) fn udp_queues() -> impl Iterator<Item = Node> {
    let class = CLASSES[UDP];
    (UDP_FIRST..UDP_END).map(move |minor| Node { minor, parent: class.minor, priority: class.priority })
}

/// Returns the leaf classes and their leaves.
pub(super) fn leaves() -> impl Iterator<Item = (Leaf, Node)> {
    let tcp = [(Leaf::Mouse, MOUSE), (Leaf::Elephant, ELEPHANT), (Leaf::OtherTcp, OTHER_TCP)];
    let udp = udp_queues().map(|node| (Leaf::Udp, node));
    tcp.into_iter().map(|(leaf, at)| (leaf, CLASSES[at])).chain(udp)
}

/// Returns the leaf of the class with this handle, or `None` for an inner or a foreign class.
pub(super) fn leaf_of(class: u32) -> Option<Leaf> {
    let minor = (class & 0xffff) as u16;
    match (class >> 16 == u32::from(HANDLE), minor) {
        (false, _) => None,
        (_, UDP_FIRST..UDP_END) => Some(Leaf::Udp),
        _ => leaves().take(LEAVES - 1).find(|(_, node)| node.minor == minor).map(|(leaf, _)| leaf),
    }
}

/// Returns the minor number of a leaf's first class.
pub(super) fn first_minor(leaf: Leaf) -> u16 {
    leaves().find(|(of, _)| *of == leaf).map_or(DEFAULT_MINOR, |(_, node)| node.minor)
}

/// Returns the limit of each queue of a leaf. `limit` is the limit of the leaf.
pub(super) fn queue_limit(leaf: Leaf, limit: u32) -> u32 {
    if leaf == Leaf::Udp { (limit / UDP_QUEUE_PART).max(1) } else { limit }
}

/// Returns the handle of a class of the agent's HTB; minor number 0 is the qdisc.
pub(super) fn handle(minor: u16) -> u32 {
    u32::from(HANDLE) << 16 | u32::from(minor)
}

impl Node {
    /// Returns the handle and the parent of the class as in the kernel's dump, where the top class has the parent
    /// `TC_H_ROOT`.
    pub(super) fn place(&self) -> (u32, u32) {
        let parent = if self.parent == 0 { u32::MAX } else { handle(self.parent) };
        (handle(self.minor), parent)
    }

    /// Returns the rate and the ceiling before the rate controller's first decision. At first, the rated class has the
    /// whole rate of the port, and all classes may borrow.
    pub(super) fn start(self, link: Rate) -> (Rate, Rate) {
        let link = link.max(LEAST_RATE);
        match self.minor {
            0x1 | 0x10 => (link, link),
            0x11 => (link - LEAST_RATE, link),
            UDP_FIRST..UDP_END => (UDP_QUEUE_RATE, NO_CEILING),
            _ => (LEAST_RATE, link),
        }
    }
}

/// Returns the rates of the HTB classes that implement a class of the rate controller: index in [`CLASSES`], rate and
/// ceiling.
///
/// HTB serves a leaf within its own rate before leaves that borrow, regardless of priorities. It does not limit the sum
/// of the leaves' rates to the parent's rate, so this sum must equal the class's rate. For strict priority (BRF-50),
/// the leaf of mice gets almost all of this rate. Elephants borrow the unused part from the inner class.
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
    fn every_leaf_has_classes_and_no_class_occurs_twice() {
        let minors: std::collections::BTreeSet<u16> =
            CLASSES.into_iter().chain(udp_queues()).map(|node| node.minor).collect();
        assert_eq!(minors.len(), CLASSES.len() + usize::from(UDP_QUEUES));
        assert!(leaves().all(|(leaf, node)| leaf_of(handle(node.minor)) == Some(leaf)));
        let inner = [0x1, 0x10, 0x30].map(handle);
        assert!(inner.into_iter().chain([0x0001_0011, 0]).all(|class| leaf_of(class).is_none()));
        let first = [Leaf::Mouse, Leaf::Elephant, Leaf::OtherTcp, Leaf::Udp].map(first_minor);
        assert_eq!(first, [0x11, 0x12, 0x20, 0x100]);
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
