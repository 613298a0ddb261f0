//! Stores the packets in the network, the contents of datagrams, and custom headers.
//!
//! Only a datagram of a [`Transport`] has contents: the bytes that the transport wrote. For TCP segments and for
//! datagrams of constant-rate UDP flows, the simulator stores only the length of the payload. A segment may have a
//! custom header, which is a congestion header that another crate defines ([`Custom`]). When a packet is freed, its
//! contents and its custom header are freed too.
//!
//! [`Transport`]: crate::transport::Transport

use narrows_control::feedback::header::{Custom, Header};

use crate::engine::Slab;
use crate::packet::{Packet, flag};

/// The packets in the network. `insert` returns a packet's index. Use this index to access the packet.
pub(crate) struct Packets {
    packets: Slab<Packet>,
    contents: Slab<Vec<u8>>,
    headers: Slab<Custom>,
    /// Whether any packet so far has had contents or a custom header. While this is false, the code does not look for
    /// contents and custom headers.
    has_attachments: bool,
    /// The custom header of the packet that is being delivered to its flow. This field is a copy, because the packet
    /// itself is already freed.
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

    /// Returns the custom header of the packet that is being delivered to its flow. If this packet is an ACK, returns
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

    /// Writes a congestion header into a packet that will be inserted next, and adds the header's bytes to the packet's
    /// size.
    pub(crate) fn add_header(&mut self, packet: &mut Packet, header: Header) {
        packet.size += header.wire_bytes();
        packet.set_header(header);
        if let Header::Custom(custom) = header {
            self.has_attachments = true;
            packet.set_custom(self.headers.insert(custom));
        }
    }

    /// Copies a custom header into an ACK that will be inserted next, and adds the copy's bytes to the ACK's size.
    pub(crate) fn add_copy(&mut self, ack: &mut Packet, header: Custom) {
        self.has_attachments = true;
        ack.size += header.echo_bytes();
        ack.flags |= flag::HEADER;
        ack.set_custom(self.headers.insert(header));
    }

    /// Replaces the congestion header of a packet in the network. Returns whether the header was replaced. A router
    /// cannot change the size of a packet, so it cannot add or remove a header. A [`Custom`] header can only be
    /// replaced by another [`Custom`] header.
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

    /// Returns the number of bytes that the packet carries for rate control: the congestion header or its echo, and the
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

    /// Frees a packet that was dropped. This function is not inlined, to keep the code for the common case
    /// short.
    #[cold]
    #[inline(never)]
    pub(crate) fn discard(&mut self, packet: u32) {
        self.free(packet);
    }

    /// Frees a packet with its header, and returns its contents. The result is empty if the packet has no contents.
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

    /// Adds a copy of a packet. The copy has its own copies of the packet's contents and header.
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
