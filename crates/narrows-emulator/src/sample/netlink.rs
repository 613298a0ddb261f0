//! Requests to the kernel over netlink, and its answers.

use std::io;
use std::path::Path;

use netlink_packet_core::NlasIterator;
use netlink_sys::{Socket, SocketAddr};

use crate::error::Error;
use crate::netns;

/// Length of `struct nlmsghdr` (linux/netlink.h).
const HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
/// The flags NLM_F_ACK and NLM_F_ECHO. Without NLM_F_ECHO, the kernel sends the answer about a class only to a
/// multicast group (net/netlink/af_netlink.c, nlmsg_notify). With NLM_F_ACK, a final message ends each answer.
const NLM_F_ACK_ECHO: u16 = 0x4 | 0x8;

/// A netlink socket in a namespace.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Opens a socket of this netlink family.
    ///
    /// # Errors
    /// If there is no such namespace, or if the kernel does not have the family.
    pub(crate) fn open(netns: &Path, family: isize) -> Result<Self, Error> {
        let socket = netns::inside(netns, || {
            let mut socket = Socket::new(family).map_err(Error::at(netns, "open netlink socket"))?;
            socket.bind_auto().map_err(Error::at(netns, "bind netlink socket"))?;
            Ok(socket)
        })?;
        Ok(Netlink { socket, sequence: 0, buffer: Vec::with_capacity(64 << 10) })
    }

    /// Sends a request and calls `each` with the body of each message in the answer.
    ///
    /// # Errors
    /// The kernel's error, e.g. ENOENT for a class that does not exist.
    pub(crate) fn request(
        &mut self,
        kind: u16,
        dump: bool,
        body: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = NLM_F_REQUEST | if dump { NLM_F_DUMP } else { NLM_F_ACK_ECHO };
        let mut request = Vec::with_capacity(HEADER + body.len());
        request.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend(flags.to_ne_bytes());
        request.extend(self.sequence.to_ne_bytes());
        request.extend(0u32.to_ne_bytes());
        request.extend(body);
        self.socket.send_to(&request, &SocketAddr::new(0, 0), 0)?;
        loop {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, 0)?;
            let mut rest = self.buffer.as_slice();
            while let Some((length, message_kind, sequence)) = header(rest) {
                let Some(message) = rest.get(HEADER..length) else { break };
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
                match message_kind {
                    _ if sequence != self.sequence => continue,
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => {
                        let code = message.first_chunk::<4>().map_or(0, |b| i32::from_ne_bytes(*b));
                        return if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) };
                    }
                    _ => each(message),
                }
            }
        }
    }
}

/// Returns the length, type and sequence number in the header of the first message.
fn header(bytes: &[u8]) -> Option<(usize, u16, u32)> {
    let h = bytes.first_chunk::<HEADER>()?;
    let length = u32::from_ne_bytes([h[0], h[1], h[2], h[3]]) as usize;
    let kind = u16::from_ne_bytes([h[4], h[5]]);
    (length >= HEADER).then(|| (length, kind, u32::from_ne_bytes([h[8], h[9], h[10], h[11]])))
}

/// Returns the value of the first attribute of this kind in a list of attributes.
pub(crate) fn attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    /// Length of `struct nlattr` before the value.
    const NLATTR: usize = 4;
    let found = NlasIterator::new(attributes).filter_map(Result::ok).find(|a| a.kind() == kind)?;
    let length = found.length() as usize;
    found.into_inner().get(NLATTR..length)
}
