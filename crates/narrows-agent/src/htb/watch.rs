//! Reads the kernel's reports about interfaces that appear and vanish (rtnetlink(7), group RTNLGRP_LINK).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use super::rtnl::{Error, messages};

/// RTMGRP_LINK (include/uapi/linux/rtnetlink.h): the multicast group of these reports.
const LINKS: u32 = 1;
/// Largest number of datagrams per call, so that a flood of reports does not block the caller.
const AT_ONCE: usize = 256;

/// A socket that reports changes of interfaces in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct LinkWatch {
    socket: Socket,
}

/// The changes that were reported since the last [`LinkWatch::changes`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LinkChanges {
    /// Whether any interface may have changed.
    pub any: bool,
    /// Ifindexes of interfaces that were deleted or moved to another namespace. A later interface can have the same
    /// ifindex.
    pub deleted: Vec<u32>,
}

impl LinkWatch {
    /// Opens the socket.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn open() -> Result<Self, Error> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind(&SocketAddr::new(0, LINKS))?;
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        let failed = |source| Error::Kernel { doing: "watching interfaces".into(), source };
        open().map(|socket| LinkWatch { socket }).map_err(failed)
    }

    /// Reads the reports that have arrived. Never blocks.
    pub fn changes(&self) -> LinkChanges {
        let mut changes = LinkChanges::default();
        for _ in 0..AT_ONCE {
            match self.socket.recv_from_full() {
                Ok((datagram, _)) => changes.read(&datagram),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // ENOBUFS means that the kernel has dropped reports.
                Err(_) => changes.any = true,
            }
        }
        changes
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl LinkChanges {
    fn read(&mut self, datagram: &[u8]) {
        self.any = true;
        for message in messages(datagram) {
            if let Ok(NetlinkMessage {
                payload: NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)),
                ..
            }) = message
                && is_device(&link)
            {
                self.deleted.push(link.header.index);
            }
        }
    }
}

/// Returns whether the report is about the interface itself. If a port leaves a bridge, the kernel also reports a
/// deletion, but with the family AF_BRIDGE.
fn is_device(link: &LinkMessage) -> bool {
    link.header.interface_family == AddressFamily::Unspec
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::NetlinkHeader;

    fn datagram(family: AddressFamily, index: u32) -> Vec<u8> {
        let mut link = LinkMessage::default();
        (link.header.interface_family, link.header.index) = (family, index);
        let payload = NetlinkPayload::from(RouteNetlinkMessage::DelLink(link));
        let mut message = NetlinkMessage::new(NetlinkHeader::default(), payload);
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }

    #[test]
    fn only_interfaces_count_as_deleted_and_not_ports_of_a_bridge() {
        let mut changes = LinkChanges::default();
        changes.read(&[datagram(AddressFamily::Unspec, 7), datagram(AddressFamily::Bridge, 8)].concat());
        assert_eq!(changes, LinkChanges { any: true, deleted: vec![7] });
    }

    #[test]
    fn an_invalid_report_only_asks_for_a_look_at_the_interfaces() {
        let mut changes = LinkChanges::default();
        changes.read(&[1, 2, 3]);
        assert_eq!(changes, LinkChanges { any: true, deleted: Vec::new() });
    }
}
