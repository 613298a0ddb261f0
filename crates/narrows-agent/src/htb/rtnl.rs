//! Sends requests to rtnetlink, and waits for each answer.

use std::io;

use netlink_packet_core::{
    DecodeError, DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE, NLM_F_REQUEST, NLMSG_DONE,
    NLMSG_ERROR, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload, Nla,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkLayerType, LinkMessage};
use netlink_packet_route::tc::TcMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Type of a message about a class (include/uapi/linux/rtnetlink.h). The message begins with a `struct tcmsg` of
/// [`TCMSG`] bytes, with the handle at [`TCM_HANDLE`]. Attributes follow.
const RTM_NEWTCLASS: u16 = 40;
const TCM_HANDLE: usize = 8;
const TCMSG: usize = 20;

/// Errors of rtnetlink requests.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused.
    #[error("{doing}: {source}")]
    Kernel {
        /// The operation attempted.
        doing: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// There is no such interface.
    #[error("no interface {0}; `ip link` lists the existing ones")]
    NoInterface(String),
    /// The packets of the interface have no Ethernet headers.
    #[error("interface {0} has no Ethernet headers (is it a tunnel?); configure the interface below it")]
    NotEthernet(String),
    /// A foreign qdisc is at the root, and the agent could not restore it later.
    #[error(
        "interface {interface} has a {kind} at its root (handle {:x}:) that the agent did not make; \
         `tc qdisc del dev {interface} root` removes it", handle >> 16
    )]
    Occupied {
        /// The interface.
        interface: String,
        /// Kind of the qdisc.
        kind: String,
        /// Handle of the qdisc.
        handle: u32,
    },
}

/// The kind of object that a request creates or changes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Object {
    Qdisc,
    Class,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Ifindex.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Largest IP datagram, bytes.
    pub mtu: u32,
    /// Hardware address, `aa:bb:cc:dd:ee:ff`, or empty.
    pub mac: String,
    /// Whether the interface's packets begin with an Ethernet header.
    pub ethernet: bool,
}

impl Link {
    /// Returns the description of an interface that does not exist yet.
    pub fn missing(name: &str) -> Link {
        Link { index: 0, name: name.to_owned(), mtu: 1500, mac: String::new(), ethernet: true }
    }
}

/// A socket to rtnetlink, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Rtnl {
    socket: Socket,
    sequence: u32,
}

impl Rtnl {
    /// Opens the socket.
    pub fn open() -> Result<Self, Error> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        let failed = |source| Error::Kernel { doing: "opening rtnetlink".into(), source };
        open().map(|socket| Rtnl { socket, sequence: 0 }).map_err(failed)
    }

    /// Returns all interfaces.
    pub fn links(&mut self) -> Result<Vec<Link>, Error> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let answers = self.ask(request, NLM_F_DUMP, "listing interfaces")?;
        let link = |answer| {
            let RouteNetlinkMessage::NewLink(message) = answer else { return None };
            let ethernet =
                matches!(message.header.link_layer_type, LinkLayerType::Ether | LinkLayerType::Loopback);
            let index = message.header.index;
            let mut link = Link { index, name: String::new(), mtu: 1500, mac: String::new(), ethernet };
            for attribute in message.attributes {
                match attribute {
                    LinkAttribute::IfName(name) => link.name = name,
                    LinkAttribute::Mtu(mtu) => link.mtu = mtu,
                    LinkAttribute::Address(address) => {
                        let bytes: Vec<_> = address.iter().map(|byte| format!("{byte:02x}")).collect();
                        link.mac = bytes.join(":");
                    }
                    _ => {}
                }
            }
            Some(link)
        };
        Ok(answers.into_iter().filter_map(link).collect())
    }

    /// Returns the name of an interface. If the interface is gone, returns a text with its ifindex.
    pub fn name(&mut self, index: u32) -> Result<String, Error> {
        let found = self.links()?.into_iter().find(|link| link.index == index);
        Ok(found.map_or_else(|| format!("with index {index}"), |link| link.name))
    }

    /// Returns the interface called `name`. Fails if the interface's packets have no Ethernet headers, because the
    /// programs need them.
    pub fn ethernet(&mut self, name: &str) -> Result<Link, Error> {
        let link = self.link(name)?;
        if link.ethernet { Ok(link) } else { Err(Error::NotEthernet(name.to_owned())) }
    }

    /// Returns the interface called `name`.
    pub fn link(&mut self, name: &str) -> Result<Link, Error> {
        let found = self.links()?.into_iter().find(|link| link.name == name);
        found.ok_or_else(|| Error::NoInterface(name.to_owned()))
    }

    /// Creates or changes a qdisc or class.
    pub(super) fn create(&mut self, object: Object, message: TcMessage, what: &str) -> Result<(), Error> {
        let request = match object {
            Object::Qdisc => RouteNetlinkMessage::NewQueueDiscipline(message),
            Object::Class => RouteNetlinkMessage::NewTrafficClass(message),
        };
        self.ask(request, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, &format!("setting {what}")).map(drop)
    }

    pub(super) fn delete_qdisc(&mut self, message: TcMessage) -> Result<(), Error> {
        self.ask(RouteNetlinkMessage::DelQueueDiscipline(message), NLM_F_ACK, "removing a qdisc").map(drop)
    }

    /// Returns the qdiscs of all interfaces, because the kernel cannot filter by interface.
    pub(super) fn dump_qdiscs(&mut self) -> Result<Vec<TcMessage>, Error> {
        let request = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let qdisc = |answer| match answer {
            RouteNetlinkMessage::NewQueueDiscipline(message) => Some(message),
            _ => None,
        };
        Ok(self.ask(request, NLM_F_DUMP, "listing qdiscs")?.into_iter().filter_map(qdisc).collect())
    }

    pub(super) fn dump_classes(&mut self, index: u32) -> Result<Vec<TcMessage>, Error> {
        let request = RouteNetlinkMessage::GetTrafficClass(TcMessage::with_index(index as i32));
        let class = |answer| match answer {
            RouteNetlinkMessage::NewTrafficClass(message) => Some(message),
            _ => None,
        };
        Ok(self.ask(request, NLM_F_DUMP, "reading HTB's classes")?.into_iter().filter_map(class).collect())
    }

    /// Calls `each` with the handle and the raw attributes of each class.
    pub(super) fn each_class(&mut self, index: u32, each: impl FnMut(u32, &[u8])) -> Result<(), Error> {
        let request = RouteNetlinkMessage::GetTrafficClass(TcMessage::with_index(index as i32));
        let failed = |source| Error::Kernel { doing: "reading HTB's classes".to_owned(), source };
        self.send(request, NLM_F_DUMP).map_err(failed)?;
        self.read_classes(each).map_err(failed)
    }

    fn read_classes(&mut self, mut each: impl FnMut(u32, &[u8])) -> io::Result<()> {
        let garbled = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{error}"));
        // A datagram of the kernel's dump has at most 32 KiB.
        let mut datagram = Vec::with_capacity(1 << 16);
        loop {
            datagram.clear();
            self.socket.recv(&mut datagram, 0)?;
            let mut rest = datagram.as_slice();
            while !rest.is_empty() {
                let message = NetlinkBuffer::new_checked(rest).map_err(garbled)?;
                rest = rest.get((message.length() as usize).next_multiple_of(4)..).unwrap_or_default();
                match message.message_type() {
                    _ if message.sequence_number() != self.sequence => {}
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => {
                        let code =
                            message.payload().first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                        return Err(io::Error::from_raw_os_error(-code));
                    }
                    RTM_NEWTCLASS => {
                        let class = message.payload();
                        let handle = class.get(TCM_HANDLE..).and_then(|rest| rest.first_chunk());
                        if let (Some(handle), Some(attributes)) = (handle, class.get(TCMSG..)) {
                            each(u32::from_ne_bytes(*handle), attributes);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Sends a request and collects its answers. Errors contain the text `doing`.
    fn ask(
        &mut self,
        request: RouteNetlinkMessage,
        flags: u16,
        doing: &str,
    ) -> Result<Vec<RouteNetlinkMessage>, Error> {
        let failed = |source| Error::Kernel { doing: doing.to_owned(), source };
        self.send(request, flags).map_err(failed)?;
        self.answers(flags & NLM_F_DUMP == NLM_F_DUMP).map_err(failed)
    }

    fn send(&mut self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(drop)
    }

    /// Returns the answers up to the acknowledgement, or up to the end of a dump.
    fn answers(&mut self, dump: bool) -> io::Result<Vec<RouteNetlinkMessage>> {
        let garbled = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{error}"));
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            for message in messages(&datagram) {
                let message = message.map_err(garbled)?;
                if message.header.sequence_number != self.sequence {
                    // Ignore this answer. It belongs to an earlier request, whose caller no longer waits.
                    continue;
                }
                match message.payload {
                    NetlinkPayload::Error(error) => {
                        return match error.code {
                            None => Ok(answers),
                            Some(_) => Err(error.to_io()),
                        };
                    }
                    NetlinkPayload::Done(_) => return Ok(answers),
                    NetlinkPayload::InnerMessage(answer) => answers.push(answer),
                    _ => {}
                }
            }
            if !dump && datagram.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Parses the messages of a datagram, up to the first invalid message.
pub(super) fn messages(
    datagram: &[u8],
) -> impl Iterator<Item = Result<NetlinkMessage<RouteNetlinkMessage>, DecodeError>> {
    let mut rest = datagram;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest);
        // Lengths come from parsed messages, so they are not zero. Messages are padded to four bytes.
        let length = message.as_ref().map(|m| (m.header.length as usize).max(16).next_multiple_of(4));
        rest = length.ok().and_then(|length| rest.get(length..)).unwrap_or_default();
        Some(message)
    })
}

/// Returns the value of an attribute.
pub(super) fn value(attribute: &impl Nla) -> Vec<u8> {
    let mut value = vec![0; attribute.value_len()];
    attribute.emit_value(&mut value);
    value
}

/// Returns an attribute with this kind and value.
pub(super) fn attribute(kind: u16, value: &[u8]) -> DefaultNla {
    DefaultNla::new(kind, value.to_vec())
}
