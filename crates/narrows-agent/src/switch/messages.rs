//! Sends rates to sources in messages (PAC-3b).
//!
//! A bridge has no addresses in the network of its flows. The agent therefore builds whole frames, and sends them by
//! the [way](crate::dataplane::slots::Way) that ACKs take to the source. Frames bypass the interface's queue, so that a
//! message does not wait behind data.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::message::RateMessage;
use narrows_control::rate::FlowKey;
use narrows_control::units::Rate;

use crate::dataplane::layout::Key;
use crate::dataplane::slots::{Slots, Way};

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86DD;

/// The socket for messages, and counts for `status`.
#[derive(Debug)]
pub(super) struct Messages {
    /// Opened at the agent's start, because the agent later lacks the capability to open it.
    socket: io::Result<OwnedFd>,
    /// Messages that were sent.
    pub(super) sent: u64,
    /// Messages that were not sent, because the way to the source is unknown or the kernel refused the frame.
    pub(super) unsent: u64,
}

impl Messages {
    /// Opens the socket. If this fails, no message can be sent; see [`Messages::check`].
    pub(super) fn open() -> Messages {
        Messages { socket: open(), sent: 0, unsent: 0 }
    }

    /// Returns an error if messages cannot be sent.
    pub(super) fn check(&self) -> Result<(), String> {
        self.socket.as_ref().map(drop).map_err(|error| {
            format!("opening the socket for messages (packet(7)): {error}; run as root, or with CAP_NET_RAW")
        })
    }

    /// Sends the rate of a flow to the flow's source. The ingress repeats all rates, so a message that cannot be sent is
    /// only counted.
    pub(super) fn send(&mut self, slots: &Slots, flow: &FlowKey, rate: Rate) {
        match self.try_send(slots, flow, rate) {
            Some(()) => self.sent += 1,
            None => self.unsent += 1,
        }
    }

    fn try_send(&self, slots: &Slots, flow: &FlowKey, rate: Rate) -> Option<()> {
        let socket = self.socket.as_ref().ok()?;
        // Flows in a VLAN have no way, so only flows without a tag are looked up.
        let index = slots.find(&Key::new(flow, 0)).ok().flatten()?;
        let (slot, way) = (slots.get(index)?, slots.way(index)?);
        let message = RateMessage {
            sport: flow.sport,
            dport: flow.dport,
            seq: slot.seq_next(),
            ack: slot.ack_sent(),
            // Code 0 means a rate of zero. Send at least 1 byte/s, the lowest rate above zero that has a code.
            code: RateCode::encode(rate.max(Rate::from_bytes_per_sec(1))),
        };
        let frame = frame(&way, flow, &message)?;
        transmit(socket, way.ifindex, &frame).ok()
    }
}

fn frame(way: &Way, flow: &FlowKey, message: &RateMessage) -> Option<Vec<u8>> {
    let ethertype = if flow.saddr.is_ipv4() { ETHERTYPE_IPV4 } else { ETHERTYPE_IPV6 };
    let datagram = message.datagram(flow.saddr, flow.daddr)?;
    let parts: [&[u8]; 4] = [&way.to, &way.from, &ethertype.to_be_bytes(), &datagram];
    Some(parts.concat())
}

/// Opens a socket that only sends frames.
fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: this is a plain system call without pointers. Protocol 0 receives nothing.
    #[allow(unsafe_code)]
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
    #[allow(unsafe_code)]
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let on = 1i32;
    // SAFETY: the option's value has four bytes and outlives the call.
    #[allow(unsafe_code)]
    let set = unsafe {
        let option = libc::PACKET_QDISC_BYPASS;
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, (&raw const on).cast(), 4)
    };
    if set == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

fn transmit(socket: &OwnedFd, ifindex: u32, frame: &[u8]) -> io::Result<()> {
    // SAFETY: all zeros is a valid address of this type.
    #[allow(unsafe_code)]
    let mut address: libc::sockaddr_ll = unsafe { core::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = i32::try_from(ifindex).map_err(io::Error::other)?;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: frame and address have the given lengths and outlive the call.
    #[allow(unsafe_code)]
    let sent = unsafe {
        let (data, to) = (frame.as_ptr().cast(), (&raw const address).cast());
        libc::sendto(socket.as_raw_fd(), data, frame.len(), 0, to, length)
    };
    if sent == frame.len() as isize { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use narrows_control::rate::Proto;

    use super::*;

    #[test]
    fn a_frame_has_the_addresses_of_the_way_and_the_datagram() {
        let way = Way { ifindex: 3, to: [1; 6], from: [2; 6] };
        let code = RateCode::encode(Rate::from_bits_per_sec(1_000_000));
        let message = RateMessage { sport: 1, dport: 2, seq: 3, ack: 4, code };
        for (source, destination, ethertype) in
            [("10.0.0.1", "10.0.0.2", [8, 0]), ("fd00::1", "fd00::2", [0x86, 0xDD])]
        {
            let (saddr, daddr) = (source.parse().unwrap(), destination.parse().unwrap());
            let flow = FlowKey { saddr, daddr, sport: 1, dport: 2, proto: Proto::Tcp };
            let frame = frame(&way, &flow, &message).unwrap();
            assert_eq!(frame[..6], [1; 6]);
            assert_eq!(frame[6..12], [2; 6]);
            assert_eq!(frame[12..14], ethertype);
            assert_eq!(frame[14..], message.datagram(saddr, daddr).unwrap());
        }
    }
}
