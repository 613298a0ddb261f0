//! The packets in the network, and the contents of datagrams.
//!
//! A TCP segment has no contents, only a length. The same is true of a datagram of a constant-rate UDP flow. A datagram
//! of a [`Transport`] has the bytes that the transport wrote. A segment may have a custom header: a congestion header
//! that another crate defines ([`Custom`]). This module stores contents and custom headers, and frees them together
//! with their packet.
//!
//! [`Transport`]: crate::transport::Transport

use narrows_control::feedback::header::{Custom, Header};

use crate::engine::Slab;
use crate::packet::{Packet, flag};

/// The packets in the network. To access a packet, use the index that `insert` returned.
pub(crate) struct Packets {
    packets: Slab<Packet>,
    contents: Slab<Vec<u8>>,
    headers: Slab<Custom>,
    /// Whether any packet so far has had contents or a custom header. If not, packets need not be checked for contents
    /// or custom headers.
    has_attachments: bool,
    /// A copy of the custom header of the packet that is being delivered to its flow. The packet itself is already
    /// freed.
    arrived: Option<Custom>,
}

impl Packets {
    pub(crate) fn new() -> Self {
        Packets {
            packets: Slab::new(),
            contents: Slab::new(),
            headers: Slab::new(),
            has_attachments: false,
            arrived: None,
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        self.packets.insert(packet)
    }

    /// Adds a datagram with contents.
    pub(crate) fn insert_datagram(&mut self, mut packet: Packet, contents: Vec<u8>) -> u32 {
        self.has_attachments = true;
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

    /// Whether any packet so far has had contents or a custom header.
    #[inline]
    pub(crate) fn has_attachments(&self) -> bool {
        self.has_attachments
    }

    /// Stores a copy of the custom header of a packet that is about to be delivered to its flow.
    #[inline(never)]
    pub(crate) fn note_arrival(&mut self, packet: &Packet) {
        self.arrived = self.custom(packet).copied();
    }

    /// Returns the custom header of the packet that is being delivered to its flow. If the packet is an ACK, returns
    /// the copy of a custom header that the ACK carries.
    pub(crate) fn arrived(&self) -> Option<&Custom> {
        self.arrived.as_ref()
    }

    /// Whether this packet has contents.
    #[inline]
    pub(crate) fn has_contents(&self, packet: &Packet) -> bool {
        self.has_attachments && packet.contents().is_some()
    }

    /// Returns the contents of a packet; empty if it has none.
    pub(crate) fn contents(&self, packet: &Packet) -> &[u8] {
        packet.contents().map_or(&[], |at| self.contents.get(at))
    }

    /// Returns the congestion header of a packet. Returns [`Header::None`] if the packet has none or travels in the
    /// reverse direction.
    #[inline]
    pub(crate) fn header(&self, packet: &Packet) -> Header {
        match packet.custom() {
            Some(at) if !packet.is(flag::REVERSE) => Header::Custom(*self.headers.get(at)),
            _ => packet.header(),
        }
    }

    /// Returns the custom header of a data packet, or the copy of a custom header in an ACK.
    #[inline]
    pub(crate) fn custom(&self, packet: &Packet) -> Option<&Custom> {
        if !self.has_attachments {
            return None;
        }
        packet.custom().map(|at| self.headers.get(at))
    }

    /// Writes a congestion header into a packet that is about to be inserted, and adds the header's bytes to the size.
    pub(crate) fn add_header(&mut self, packet: &mut Packet, header: Header) {
        packet.size += header.wire_bytes();
        packet.set_header(header);
        if let Header::Custom(custom) = header {
            self.has_attachments = true;
            packet.set_custom(self.headers.insert(custom));
        }
    }

    /// Copies a custom header into an ACK that is about to be inserted, and adds the copy's bytes to the size.
    pub(crate) fn add_copy(&mut self, ack: &mut Packet, header: Custom) {
        self.has_attachments = true;
        ack.size += header.echo_bytes();
        ack.flags |= flag::HEADER;
        ack.set_custom(self.headers.insert(header));
    }

    /// Replaces the header of a packet in the network, and returns whether it did. A router can neither add nor remove a
    /// header, and cannot change the size of a packet. A [`Custom`] header is replaced only by another [`Custom`] header.
    pub(crate) fn replace_header(&mut self, packet: u32, header: Header) -> bool {
        let before = self.header(self.packets.get(packet));
        if before == Header::None || before.wire_bytes() != header.wire_bytes() {
            return false;
        }
        let p = self.packets.get_mut(packet);
        match (p.custom(), header) {
            (None, Header::Custom(_)) => return false,
            (None, header) => p.set_header(header),
            (Some(at), Header::Custom(custom)) => *self.headers.get_mut(at) = custom,
            (Some(_), _) => return false,
        }
        true
    }

    /// Returns the number of bytes of a packet that serve rate control: the congestion header or its echo, and the
    /// rate option (MET-82).
    #[inline]
    pub(crate) fn signal_bytes(&self, packet: &Packet) -> u16 {
        if !self.has_attachments {
            return packet.signal_bytes();
        }
        let Some(header) = self.custom(packet) else { return packet.signal_bytes() };
        let bytes = if packet.is(flag::REVERSE) { header.echo_bytes() } else { header.wire_bytes() };
        bytes + packet.option_bytes()
    }

    /// Frees a packet with its contents and its header.
    #[inline]
    pub(crate) fn free(&mut self, packet: u32) {
        if self.has_attachments {
            self.take(packet);
        } else {
            self.packets.free(packet);
        }
    }

    /// Frees a packet that was dropped. The function is not inlined, so that the code for packets that are not dropped
    /// stays short.
    #[cold]
    #[inline(never)]
    pub(crate) fn discard(&mut self, packet: u32) {
        self.free(packet);
    }

    /// Frees a packet with its header, and returns its contents; empty if it has none.
    #[cold]
    pub(crate) fn take(&mut self, packet: u32) -> Vec<u8> {
        self.packets.free(packet);
        let p = self.packets.get(packet);
        if let Some(at) = p.custom() {
            self.headers.free(at);
        }
        let Some(at) = p.contents() else { return Vec::new() };
        let contents = std::mem::take(self.contents.get_mut(at));
        self.contents.free(at);
        contents
    }

    /// Adds a copy of a packet, with copies of its contents and its header.
    pub(crate) fn duplicate(&mut self, packet: u32) -> u32 {
        let mut copy = *self.packets.get(packet);
        if let Some(at) = copy.custom() {
            let header = *self.headers.get(at);
            copy.set_custom(self.headers.insert(header));
        }
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

    #[test]
    fn a_custom_header_lives_as_long_as_its_packet_and_keeps_its_size() {
        let with = |words: &[u32]| {
            let mut header = Custom::new(9, 4);
            assert!(header.push(words));
            header
        };
        let mut packets = Packets::new();
        let mut packet = Template::default().packet(1500);
        packets.add_header(&mut packet, Header::Custom(with(&[])));
        assert_eq!(packet.size, 1500 + 20);
        let first = packets.insert(packet);
        let copy = packets.duplicate(first);
        assert!(packets.replace_header(first, Header::Custom(with(&[1, 2]))));
        let header = |packets: &Packets, at| packets.header(packets.get(at));
        assert_eq!(header(&packets, first), Header::Custom(with(&[1, 2])));
        assert_eq!(header(&packets, copy), Header::Custom(with(&[])), "a duplicate has a header of its own");
        assert!(!packets.replace_header(first, Header::Custom(Custom::new(9, 5))));
        assert!(!packets.replace_header(first, Header::None));
        assert_eq!(header(&packets, first), Header::Custom(with(&[1, 2])), "the size may not change");
        let plain = packets.insert(Template::default().packet(1500));
        assert!(!packets.replace_header(plain, Header::Custom(with(&[]))));
        assert_eq!(header(&packets, plain), Header::None);
        packets.free(first);
        let mut ack = Template { flags: flag::REVERSE | flag::ACK, ..Template::default() }.packet(52);
        packets.add_copy(&mut ack, with(&[3]));
        let ack = packets.insert(ack);
        assert_eq!(packets.custom(packets.get(ack)), Some(&with(&[3])));
        assert_eq!((packets.get(ack).size, packets.signal_bytes(packets.get(ack))), (52 + 8, 8));
        assert_eq!(packets.signal_bytes(packets.get(copy)), 20);
        assert_eq!(packets.get(ack).echo(), None);
    }
}
