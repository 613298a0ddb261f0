//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng).

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::ControlFlow;

use narrows_control::units::Time;
use narrows_sim::capture::{Captured, Place, Tap};
use narrows_sim::plan::Plan;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::name_resolution::{Ipv4Record, NameResolutionBlock, Record};
use pcap_file::{DataLink, PcapError};
use rustc_hash::FxHashSet;

use crate::datagram::{address, datagram};

/// Number of bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 18;
/// The resolution of times is 10 to the power of minus this number, in seconds.
const NANOSECONDS: u8 = 9;
/// The direction of a packet, in the two lowest bits of the flags of its block: received or sent.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// The type of a block that contains a packet, and the codes of the options of blocks.
const PACKET_BLOCK: u32 = 6;
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const FLAGS: u16 = 2;

/// The link or the host at which the packets of a file are captured.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Interface {
    /// The receiving end of the link with this index in the plan.
    Link(u32),
    /// The node with this index in the plan.
    Host(u32),
}

impl Interface {
    /// Returns all links and hosts at which a plan captures packets.
    pub(crate) fn all(plan: &Plan) -> Vec<Self> {
        let Some(capture) = &plan.capture else { return Vec::new() };
        let links = capture.links.iter().copied().map(Interface::Link);
        links.chain(capture.hosts.iter().copied().map(Interface::Host)).collect()
    }

    /// Returns the name of the link or the host.
    pub(crate) fn name(self, plan: &Plan) -> &str {
        match self {
            Interface::Link(link) => plan.links.get(link as usize).map_or("", |l| l.name.as_str()),
            Interface::Host(node) => plan.nodes.get(node as usize).map_or("", |n| n.as_str()),
        }
    }

    /// Returns the file for packets that are captured at this place.
    pub(crate) fn of(place: Place) -> Self {
        match place {
            Place::Link(link) => Interface::Link(link),
            Place::Sent(node) | Place::Received(node) => Interface::Host(node),
        }
    }
}

/// Writes the packets of one place as pcapng.
pub(crate) struct Pcapng<W: Write> {
    out: W,
    snap: usize,
    /// The bytes of a packet. The buffer is used again for the next packet.
    bytes: Vec<u8>,
    /// Blocks that are not yet in `out`.
    blocks: Vec<u8>,
    /// The flows whose names are already in the file.
    named: FxHashSet<u32>,
    /// The first error that occurred while writing. The error ends the run.
    error: Option<io::Error>,
}

impl<W: Write> Pcapng<W> {
    /// Begins the file of a link or a host.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn new(out: W, plan: &Plan, interface: Interface) -> io::Result<Self> {
        let snap = plan.capture.as_ref().map_or(0, |capture| capture.snap);
        let mut writer = PcapNgWriter::new(out).map_err(to_io)?;
        let description = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: snap,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(interface.name(plan))),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        writer.write_pcapng_block(description).map_err(to_io)?;
        let records = plan.nodes.iter().enumerate().map(|(node, name)| {
            Record::Ipv4(Ipv4Record {
                ip_addr: Cow::Owned(address(node as u32).octets().to_vec()),
                names: vec![Cow::Borrowed(name.as_str())],
            })
        });
        let names = NameResolutionBlock { records: records.collect(), options: Vec::new() };
        writer.write_pcapng_block(names).map_err(to_io)?;
        Ok(Pcapng {
            out: writer.into_inner(),
            snap: snap as usize,
            bytes: Vec::new(),
            blocks: Vec::with_capacity(2 * BUFFER_BYTES),
            named: FxHashSet::default(),
            error: None,
        })
    }

    /// Writes the remaining blocks of the file.
    ///
    /// # Errors
    /// A packet could not be written.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        match self.error {
            Some(error) => Err(error),
            None => {
                self.out.write_all(&self.blocks)?;
                self.out.flush()
            }
        }
    }

    fn write(&mut self, p: &Captured<'_>) -> io::Result<()> {
        let length = datagram(p, &mut self.bytes);
        // The zeros of a payload are written only if the whole packet fits into the snapshot length. A part of the
        // zeros would be useless.
        if length <= self.snap {
            self.bytes.resize(length, 0);
        } else {
            self.bytes.truncate(self.snap);
        }
        let is_new = self.named.insert(p.flow.id);
        let comment = is_new.then(|| format!("flow {} ({})", p.flow.name, p.flow.cc));
        let direction = match p.place {
            Place::Link(_) => None,
            Place::Sent(_) => Some(OUTBOUND),
            Place::Received(_) => Some(INBOUND),
        };
        put_block(&mut self.blocks, p.at, length as u32, &self.bytes, comment.as_deref(), direction);
        if self.blocks.len() >= BUFFER_BYTES {
            self.out.write_all(&self.blocks)?;
            self.blocks.clear();
        }
        Ok(())
    }
}

/// Adds an Enhanced Packet Block (draft-ietf-opsawg-pcapng, section 4.3). Nearly the whole file consists of these
/// blocks. This function writes them itself, because the crate pcap-file takes several times as long.
fn put_block(
    blocks: &mut Vec<u8>,
    at: Time,
    original_len: u32,
    data: &[u8],
    comment: Option<&str>,
    direction: Option<u32>,
) {
    let start = blocks.len();
    let nanos = at.as_nanos();
    // The second word is the block's length, which is not known yet.
    let words = [PACKET_BLOCK, 0, 0, (nanos >> 32) as u32, nanos as u32, data.len() as u32, original_len];
    blocks.extend_from_slice(words.map(u32::to_ne_bytes).as_flattened());
    extend_padded(blocks, data);
    if let Some(comment) = comment {
        // The length of a comment is stored in 16 bits, so a comment has at most 65,535 bytes.
        let longest = comment.len().min(usize::from(u16::MAX));
        let end = (0..=longest).rev().find(|&end| comment.is_char_boundary(end)).unwrap_or(0);
        put_option(blocks, COMMENT, &comment.as_bytes()[..end]);
    }
    if let Some(direction) = direction {
        put_option(blocks, FLAGS, &direction.to_ne_bytes());
    }
    if comment.is_some() || direction.is_some() {
        put_option(blocks, END_OF_OPTIONS, &[]);
    }
    let length = ((blocks.len() - start) as u32 + 4).to_ne_bytes();
    blocks.extend_from_slice(&length);
    blocks[start + 4..start + 8].copy_from_slice(&length);
}

fn put_option(blocks: &mut Vec<u8>, code: u16, value: &[u8]) {
    blocks.extend_from_slice([code, value.len() as u16].map(u16::to_ne_bytes).as_flattened());
    extend_padded(blocks, value);
}

/// Adds these bytes, and zeros until the length is a multiple of four.
fn extend_padded(blocks: &mut Vec<u8>, bytes: &[u8]) {
    blocks.extend_from_slice(bytes);
    blocks.resize(blocks.len().next_multiple_of(4), 0);
}

impl<W: Write> Tap for Pcapng<W> {
    fn on_packet(&mut self, packet: &Captured<'_>) -> ControlFlow<()> {
        if let Err(error) = self.write(packet) {
            self.error = Some(error);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packet_blocks_equal_those_of_the_library(
            nanos: u64,
            original_len: u32,
            data in proptest::collection::vec(any::<u8>(), 0..200),
            comment in proptest::option::of("flow [a-zä]{0,20}"),
            direction in proptest::option::of(prop_oneof![Just(INBOUND), Just(OUTBOUND)]),
        ) {
            let mut blocks = vec![1, 2, 3, 4];
            let at = Time::from_nanos(nanos);
            put_block(&mut blocks, at, original_len, &data, comment.as_deref(), direction);
            let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
            writer
                .write_pcapng_block(InterfaceDescriptionBlock {
                    linktype: DataLink::RAW,
                    snaplen: 0,
                    options: vec![InterfaceDescriptionOption::IfTsResol(NANOSECONDS)],
                })
                .unwrap();
            let before = writer.get_ref().len();
            let comment = comment.as_deref().map(|text| EnhancedPacketOption::Comment(text.into()));
            let options = comment.into_iter().chain(direction.map(EnhancedPacketOption::Flags)).collect();
            let expected = EnhancedPacketBlock {
                interface_id: 0,
                timestamp: Duration::from_nanos(nanos),
                original_len,
                data: Cow::Borrowed(&data),
                options,
            };
            writer.write_pcapng_block(expected).unwrap();
            prop_assert_eq!(&blocks[4..], &writer.get_ref()[before..]);
        }
    }
}
