//! Builds packets, and sends and receives them at interfaces.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use narrows_control::feedback::checksum;

use super::net::Net;

pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;
/// The option that asks for feedback.
pub(crate) const ASKS: [u8; 8] = [1, 1, 253, 6, 0x4e, 0x57, 0xff, 0xff];

/// A packet socket at an interface, and the address at the other end of the cable.
pub(crate) struct Port {
    socket: OwnedFd,
    from: [u8; 6],
    to: [u8; 6],
}

impl Port {
    /// Opens a packet socket at `interface` of `host`. The name of the interface is the name of the host at the other
    /// end of the cable.
    pub(crate) fn open(net: &Net, host: &str, interface: &str) -> Port {
        Port::toward(net, (host, interface), (interface, host))
    }

    /// Opens a packet socket at `at` (host and interface). It sends to the interface `to`, which may be behind a
    /// bridge.
    pub(crate) fn toward(net: &Net, at: (&str, &str), to: (&str, &str)) -> Port {
        let socket = net.inside(at.0, || packet_socket(at.1)).expect("a packet socket");
        Port { socket, from: mac(net, at.0, at.1), to: mac(net, to.0, to.1) }
    }

    /// Sends an IPv4 datagram.
    pub(crate) fn send(&self, datagram: &[u8]) {
        let mut frame = Vec::with_capacity(14 + datagram.len());
        frame.extend_from_slice(&self.to);
        frame.extend_from_slice(&self.from);
        frame.extend_from_slice(&[8, 0]);
        frame.extend_from_slice(datagram);
        // A full queue drops packets. In the tests, this is not an error.
        let _ = nix::unistd::write(&self.socket, &frame);
    }

    /// Returns a received packet without its Ethernet header, or `None` if no packet has arrived.
    pub(crate) fn receive(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 1 << 16];
        let n = nix::unistd::read(&self.socket, &mut frame).ok()?;
        frame.truncate(n);
        (n > 14).then(|| frame.split_off(14))
    }
}

fn mac(net: &Net, host: &str, interface: &str) -> [u8; 6] {
    let said = net.says(host, &format!("ip -o link show dev {interface}"));
    let text = said
        .split("link/ether ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .expect("an Ethernet address");
    let mut mac = [0; 6];
    for (byte, hex) in mac.iter_mut().zip(text.split(':')) {
        *byte = u8::from_str_radix(hex, 16).expect("hexadecimal");
    }
    mac
}

/// Opens a socket for all IPv4 frames that arrive (packet(7)).
pub(crate) fn packet_socket(interface: &str) -> io::Result<OwnedFd> {
    let all = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: this is a plain system call without pointers.
    #[allow(unsafe_code)]
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, i32::from(all)) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
    #[allow(unsafe_code)]
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: all zeros is a valid address of this type.
    #[allow(unsafe_code)]
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = all;
    address.sll_ifindex = nix::net::if_::if_nametoindex(interface)? as i32;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the length is that of the address, which outlives the call.
    #[allow(unsafe_code)]
    if unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (on, room) = (1i32, 64i32 << 20);
    // SAFETY: the option values have four bytes and outlive the calls. Without PACKET_IGNORE_OUTGOING, the socket would
    // receive its own packets.
    #[allow(unsafe_code)]
    unsafe {
        let fd = socket.as_raw_fd();
        libc::setsockopt(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, (&raw const on).cast(), 4);
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, (&raw const room).cast(), 4);
    }
    Ok(socket)
}

/// The contents of a segment.
#[derive(Clone, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) from: (Ipv4Addr, u16),
    pub(crate) to: (Ipv4Addr, u16),
    pub(crate) flags: u8,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    /// Identification of the datagram.
    pub(crate) id: u16,
    /// Bytes of the options. Bytes after the first 40 are ignored, and zeros fill the last word.
    pub(crate) options: &'a [u8],
    /// A data offset in words that replaces the correct one.
    pub(crate) offset: Option<u8>,
    pub(crate) payload: &'a [u8],
}

impl Segment<'_> {
    /// Returns the IPv4 datagram with correct checksums.
    pub(crate) fn datagram(&self) -> Vec<u8> {
        let options = self.options.len().min(40).next_multiple_of(4);
        let tcp_len = 20 + options + self.payload.len();
        let mut d = vec![0u8; 20 + tcp_len];
        d[0] = 0x45;
        d[2..4].copy_from_slice(&((20 + tcp_len) as u16).to_be_bytes());
        d[4..6].copy_from_slice(&self.id.to_be_bytes());
        (d[6], d[8], d[9]) = (0x40, 64, 6);
        d[12..16].copy_from_slice(&self.from.0.octets());
        d[16..20].copy_from_slice(&self.to.0.octets());
        let sum = checksum::compute(&d[..20]);
        d[10..12].copy_from_slice(&sum.to_be_bytes());
        let t = &mut d[20..];
        t[..2].copy_from_slice(&self.from.1.to_be_bytes());
        t[2..4].copy_from_slice(&self.to.1.to_be_bytes());
        t[4..8].copy_from_slice(&self.seq.to_be_bytes());
        t[8..12].copy_from_slice(&self.ack.to_be_bytes());
        t[12] = self.offset.unwrap_or(5 + (options / 4) as u8) << 4;
        t[13] = self.flags;
        t[14..16].copy_from_slice(&0xfff0_u16.to_be_bytes());
        let n = self.options.len().min(40);
        t[20..20 + n].copy_from_slice(&self.options[..n]);
        t[20 + options..].copy_from_slice(self.payload);
        let sum = tcp_sum(&d);
        d[36..38].copy_from_slice(&sum.to_be_bytes());
        d
    }
}

/// Computes the checksum of an IPv4 datagram's TCP segment. If the checksum field is zero, the result is the value to
/// write. If the field is correct, the result is 0.
fn tcp_sum(d: &[u8]) -> u16 {
    let mut pseudo = Vec::with_capacity(d.len());
    pseudo.extend_from_slice(&d[12..20]);
    pseudo.extend_from_slice(&[0, 6]);
    pseudo.extend_from_slice(&((d.len() - 20) as u16).to_be_bytes());
    pseudo.extend_from_slice(&d[20..]);
    checksum::compute(&pseudo)
}

/// Removes the Ethernet padding from an IPv4 datagram with a TCP segment. Returns `None` for any other packet.
pub(crate) fn tcp_in(d: &[u8]) -> Option<&[u8]> {
    let len = usize::from(u16::from_be_bytes([*d.get(2)?, *d.get(3)?]));
    let d = d.get(..len)?;
    (d.len() >= 40 && d[0] == 0x45 && d[9] == 6).then_some(d)
}

/// Returns whether the checksums of IPv4 and of TCP are correct.
pub(crate) fn checksums_are_correct(d: &[u8]) -> bool {
    checksum::compute(&d[..20]) == 0 && tcp_sum(d) == 0
}

/// A small random number generator with a fixed sequence.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Returns the next number, by xorshift64* (Vigna 2016).
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        (self.roll() >> 16) % n
    }
}
