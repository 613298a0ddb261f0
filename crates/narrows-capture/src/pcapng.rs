//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use narrows_sim::capture::{Captured, Place, Tap};
use narrows_sim::plan::Plan;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::name_resolution::{Ipv4Record, NameResolutionBlock, Record};
use pcap_file::{DataLink, PcapError};

use crate::datagram::{address, datagram};

/// Resolution of times as a power of ten: 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Flag of a packet block: the packet was received.
const INBOUND: u32 = 1;
/// Flag of a packet block: the packet was sent.
const OUTBOUND: u32 = 2;

/// The link or host whose packets a file contains.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Interface {
    /// The end of the link with this index in the plan.
    Link(u32),
    /// The node with this index in the plan.
    Host(u32),
}

impl Interface {
    /// Returns the links and hosts that the plan captures.
    pub(crate) fn all(plan: &Plan) -> Vec<Self> {
        let Some(capture) = &plan.capture else { return Vec::new() };
        let links = capture.links.iter().copied().map(Interface::Link);
        links.chain(capture.hosts.iter().copied().map(Interface::Host)).collect()
    }

    /// Returns the name of the link or host.
    pub(crate) fn name(self, plan: &Plan) -> &str {
        match self {
            Interface::Link(link) => plan.links.get(link as usize).map_or("", |l| l.name.as_str()),
            Interface::Host(node) => plan.nodes.get(node as usize).map_or("", |n| n.as_str()),
        }
    }

    /// Returns the link or host whose file receives packets of this place.
    pub(crate) fn of(place: Place) -> Self {
        match place {
            Place::Link(link) => Interface::Link(link),
            Place::Sent(node) | Place::Received(node) => Interface::Host(node),
        }
    }
}

/// Writes the packets of one link or host as pcapng.
pub(crate) struct Pcapng<W: Write> {
    writer: PcapNgWriter<W>,
    snap: usize,
    /// A buffer for the bytes of a packet, used again for each packet.
    bytes: Vec<u8>,
    /// The flows whose names are already in the file.
    named: BTreeSet<u32>,
    /// The first write error. It ends the run.
    error: Option<io::Error>,
}

impl<W: Write> Pcapng<W> {
    /// Begins a file for the packets of a link or host.
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
        Ok(Pcapng { writer, snap: snap as usize, bytes: Vec::new(), named: BTreeSet::new(), error: None })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// A packet could not be written.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.error {
            Some(error) => Err(error),
            None => self.writer.into_inner().flush(),
        }
    }

    fn write(&mut self, p: &Captured<'_>) -> io::Result<()> {
        let length = datagram(p, &mut self.bytes);
        self.bytes.resize(length.min(self.snap), 0);
        let mut options = Vec::new();
        if self.named.insert(p.flow.id) {
            let name = format!("flow {} ({})", p.flow.name, p.flow.cc);
            options.push(EnhancedPacketOption::Comment(Cow::Owned(name)));
        }
        match p.place {
            Place::Link(_) => {}
            Place::Sent(_) => options.push(EnhancedPacketOption::Flags(OUTBOUND)),
            Place::Received(_) => options.push(EnhancedPacketOption::Flags(INBOUND)),
        }
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(p.at.as_nanos()),
            original_len: length as u32,
            data: Cow::Borrowed(&self.bytes),
            options,
        };
        self.writer.write_pcapng_block(block).map(drop).map_err(to_io)
    }
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
