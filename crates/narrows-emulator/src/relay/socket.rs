//! A packet socket on one interface, for whole Ethernet frames with their virtio headers. With these headers, the relay
//! forwards super-packets and packets without a computed checksum unchanged (packet(7), PACKET_VNET_HDR).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{AddressFamily, LinkAddr, SockFlag, SockType, SockaddrLike, socket};

use crate::error::Error;
use crate::netns;
use crate::raw;
use crate::spec::InterfaceSpec;

/// Size of the kernel's buffer, which stores frames while the relay's thread is not running. The kernel counts about
/// twice the size of each frame, so the buffer is sufficient for 0.3 s at 1 Gbit/s.
const RECEIVE_BUFFER_BYTES: i32 = 64 << 20;

/// A packet socket.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    drops: u64,
}

impl PacketSocket {
    /// Opens an interface in its namespace.
    ///
    /// # Errors
    /// If there is no such namespace or interface, if CAP_NET_RAW is missing in the namespace, or if the kernel has no
    /// packet sockets.
    pub(crate) fn open(spec: &InterfaceSpec) -> Result<Self, Error> {
        let at = |what: &str| format!("{}: {}: {what}", spec.netns.display(), spec.interface);
        let fd = netns::inside(&spec.netns, || {
            let index = nix::net::if_::if_nametoindex(spec.interface.as_str())
                .map_err(Error::system(at("find interface")))?;
            // The socket has no protocol until all options are set. Otherwise, it would receive frames without a virtio
            // header.
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let fd = socket(AddressFamily::Packet, SockType::Raw, flags, None)
                .map_err(Error::system(at("open packet socket")))?;
            let set = |level, option, name: &str, value: i32| {
                raw::set_option(&fd, level, option, value).map_err(Error::system(at(name)))
            };
            set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, "PACKET_VNET_HDR", 1)?;
            // Without this option, the socket would receive each frame that it sends.
            set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, "PACKET_IGNORE_OUTGOING", 1)?;
            set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, "SO_TIMESTAMPNS", 1)?;
            set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, "SO_RCVBUFFORCE", RECEIVE_BUFFER_BYTES)?;
            set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, "SO_SNDBUFFORCE", RECEIVE_BUFFER_BYTES)?;
            bind_to_all_protocols(&fd, index).map_err(Error::system(at("bind packet socket")))?;
            Ok(fd)
        })?;
        Ok(PacketSocket { fd, drops: 0 })
    }

    /// Returns the number of frames that the kernel has dropped since the socket was opened. Frames are dropped if they
    /// are not read in time.
    pub(crate) fn kernel_drops(&mut self) -> u64 {
        self.drops += raw::packet_socket_drops(&self.fd);
        self.drops
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Binds the socket to all protocols of an interface, or of all interfaces if `index` is 0.
pub(crate) fn bind_to_all_protocols(fd: &OwnedFd, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    #[allow(unsafe_code)]
    // SAFETY: `address` is a whole sockaddr_ll, and the length is the length of `address`.
    let link = unsafe {
        LinkAddr::from_raw(
            (&raw const address).cast(),
            Some(size_of::<libc::sockaddr_ll>() as libc::socklen_t),
        )
    };
    let link = link.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(nix::sys::socket::bind(fd.as_raw_fd(), &link)?)
}
