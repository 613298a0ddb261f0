//! The packets in the network, and the contents of datagrams.
//!
//! A TCP segment or a datagram of constant size has no contents, only a length. A datagram of a [`Transport`] has the
//! bytes that the transport wrote. These bytes are stored here, and freed with their packet.
//!
//! [`Transport`]: crate::transport::Transport

use crate::engine::Slab;
use crate::packet::{Packet, flag};

/// The packets in the network. A packet is addressed by the index that `insert` returned.
pub(crate) struct Packets {
    packets: Slab<Packet>,
    contents: Slab<Vec<u8>>,
    /// Whether any packet so far has had contents. If not, the code need not examine each packet.
    has_contents: bool,
}

impl Packets {
    pub(crate) fn new() -> Self {
        Packets { packets: Slab::new(), contents: Slab::new(), has_contents: false }
    }

    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        self.packets.insert(packet)
    }

    /// Adds a datagram with contents.
    pub(crate) fn insert_datagram(&mut self, mut packet: Packet, contents: Vec<u8>) -> u32 {
        self.has_contents = true;
        packet.flags |= flag::UDP;
        packet.set_contents(self.contents.insert(contents));
        self.packets.insert(packet)
    }

    #[inline]
    pub(crate) fn get(&self, packet: u32) -> &Packet {
        self.packets.get(packet)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, packet: u32) -> &mut Packet {
        self.packets.get_mut(packet)
    }

    /// Whether this packet has contents.
    #[inline]
    pub(crate) fn has_contents(&self, packet: &Packet) -> bool {
        self.has_contents && packet.contents().is_some()
    }

    /// Returns the contents of a packet; empty if it has none.
    pub(crate) fn contents(&self, packet: &Packet) -> &[u8] {
        packet.contents().map_or(&[], |at| self.contents.get(at))
    }

    /// Frees a packet and its contents.
    #[inline]
    pub(crate) fn free(&mut self, packet: u32) {
        if self.has_contents {
            self.take(packet);
        } else {
            self.packets.free(packet);
        }
    }

    /// Frees a packet that was dropped. The function is not inlined, so that the code for all other packets stays
    /// short.
    #[cold]
    #[inline(never)]
    pub(crate) fn discard(&mut self, packet: u32) {
        self.free(packet);
    }

    /// Frees a packet and returns its contents; empty if it has none.
    #[cold]
    pub(crate) fn take(&mut self, packet: u32) -> Vec<u8> {
        self.packets.free(packet);
        let Some(at) = self.packets.get(packet).contents() else { return Vec::new() };
        let contents = std::mem::take(self.contents.get_mut(at));
        self.contents.free(at);
        contents
    }

    /// Adds a copy of a packet, with a copy of its contents.
    pub(crate) fn duplicate(&mut self, packet: u32) -> u32 {
        let copy = *self.packets.get(packet);
        match copy.contents() {
            None => self.packets.insert(copy),
            Some(at) => {
                let contents = self.contents.get(at).clone();
                self.insert_datagram(copy, contents)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Template;

    #[test]
    fn contents_live_as_long_as_their_packet() {
        let mut packets = Packets::new();
        let first = packets.insert_datagram(Template::default().packet(31), vec![1, 2, 3]);
        let copy = packets.duplicate(first);
        packets.free(first);
        let next = packets.insert_datagram(Template::default().packet(30), vec![4, 5]);
        assert_eq!(packets.contents(packets.get(copy)), [1, 2, 3]);
        assert_eq!(packets.take(next), [4, 5]);
        let plain = packets.insert(Template { flags: flag::UDP, ..Template::default() }.packet(1500));
        assert!(packets.contents(packets.get(plain)).is_empty());
        packets.free(plain);
        assert_eq!(packets.take(copy), [1, 2, 3]);
    }
}
