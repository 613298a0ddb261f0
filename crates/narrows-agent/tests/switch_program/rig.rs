//! Loads a switch with two ports in a network namespace of the test's thread, and builds packets for it.

use std::process::Command;

use narrows_agent::dataplane::layout::{self, Key, WireFormat};
use narrows_agent::dataplane::program::{Sizes, Switch, TestRun, Tunables};
use narrows_control::feedback::code::RateCode;
use narrows_control::units::{Bytes, Rate, Span, Time};
use nix::sched::{CloneFlags, unshare};
use nix::time::{ClockId, clock_gettime};

/// The controlled port, by which data leaves.
pub(crate) const DATA: u8 = 0;
/// The uncontrolled port, by which the ACKs leave.
pub(crate) const ACKS: u8 = 1;
pub(crate) const CONTROLLED: u32 = layout::MODE_CONTROLLED | layout::MODE_OPEN_GTP;
pub(crate) const PASS: i32 = -1;
pub(crate) const DROP: i32 = 2;
pub(crate) const PRIORITIES: [u32; 4] = [0x1_0010, 0x1_0011, 0x1_0020, 0x1_0030];

pub(crate) fn now() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

pub(crate) struct Rig {
    pub(crate) switch: Switch,
    pub(crate) ifindex: [u32; 2],
}

/// Returns a loaded switch. If the kernel or the privileges do not allow this, prints a message and returns `None`.
pub(crate) fn rig_with(sizes: Sizes, tunables: Tunables) -> Option<Rig> {
    match try_rig(sizes, tunables) {
        Ok(rig) => Some(rig),
        Err(reason) if std::env::var_os("NARROWS_REQUIRE_KERNEL").is_some() => panic!("{reason}"),
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            None
        }
    }
}

pub(crate) fn rig() -> Option<Rig> {
    rig_with(Sizes { flows: 64, ..Sizes::default() }, Tunables::default())
}

fn try_rig(sizes: Sizes, tunables: Tunables) -> Result<Rig, String> {
    // The namespace and its interfaces vanish with this thread.
    unshare(CloneFlags::CLONE_NEWNET).map_err(|e| format!("a network namespace of its own: {e}"))?;
    let made =
        Command::new("ip").args(["link", "add", "data", "type", "veth", "peer", "name", "acks"]).status();
    if !made.is_ok_and(|status| status.success()) {
        return Err("ip link add ... type veth failed".into());
    }
    let index = |name| nix::net::if_::if_nametoindex(name).map_err(|e| e.to_string());
    let rig = Rig {
        switch: Switch::load(sizes, tunables).map_err(|e| e.to_string())?,
        ifindex: [index("data")?, index("acks")?],
    };
    for (port, ifindex) in (0..).zip(rig.ifindex) {
        rig.switch.set_interface(ifindex, port).map_err(|e| e.to_string())?;
        let port = rig.switch.ports.get(port).unwrap();
        port.beat(Time::from_nanos(u64::MAX));
        port.set_watchdog(Span::from_secs(1));
        port.set_mode(layout::MODE_OPEN_GTP);
        port.set_format(WireFormat::Insert);
        port.set_priorities(PRIORITIES);
        port.set_unconfirmed_max(32);
        port.set_udp(Rate::from_bytes_per_sec(1), Bytes::new(10_000));
    }
    rig.data_port().set_mode(CONTROLLED);
    Ok(rig)
}

impl Rig {
    pub(crate) fn data_port(&self) -> narrows_agent::dataplane::ports::Port<'_> {
        self.switch.ports.get(DATA).unwrap()
    }
    pub(crate) fn acks_port(&self) -> narrows_agent::dataplane::ports::Port<'_> {
        self.switch.ports.get(ACKS).unwrap()
    }
    pub(crate) fn send(&self, port: u8, packet: &Packet) -> TestRun {
        self.send_bytes(port, 0, &packet.bytes())
    }
    /// Sends a packet that arrived at the interface `ingress`.
    pub(crate) fn send_from(&self, ingress: u32, port: u8, packet: &Packet) -> TestRun {
        let leaves = self.ifindex[usize::from(port)];
        self.switch.try_packet_from(ingress, leaves, 0, &packet.bytes()).unwrap()
    }
    pub(crate) fn send_bytes(&self, port: u8, gso: u32, packet: &[u8]) -> TestRun {
        self.switch.try_packet(self.ifindex[usize::from(port)], gso, packet).unwrap()
    }
    pub(crate) fn grant(&self, rates: &[u64]) {
        let mut grants = [RateCode::UNASSIGNED; 16];
        let last = *rates.last().unwrap();
        for (k, grant) in grants.iter_mut().enumerate() {
            *grant = code(rates.get(k).copied().unwrap_or(last));
        }
        self.data_port().set_grants(grants);
    }
    /// Sends SYN and SYN-ACK of a flow that asks for feedback. Returns the SYN-ACK as the program forwards it.
    pub(crate) fn open(&self, like: &Packet) -> TestRun {
        let syn = like.clone().flags(SYN).options(&[SYN_OPTIONS, &option(65535)].concat()).payload(0);
        let tried = self.send(DATA, &syn);
        assert_eq!((tried.verdict, &tried.packet), (PASS, &syn.bytes()));
        self.send(ACKS, &like.clone().reversed().flags(SYN | ACK).options(SYN_OPTIONS).payload(0))
    }
    pub(crate) fn slot_of(&self, packet: &Packet) -> Option<u32> {
        self.switch.slots.find(&packet.key()).unwrap()
    }
}

pub(crate) fn code(rate: u64) -> RateCode {
    RateCode::encode(Rate::from_bytes_per_sec(rate))
}

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// MSS, SACK permitted, timestamps and window scale, as Linux sends them.
pub(crate) const SYN_OPTIONS: &[u8] = &[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];

pub(crate) fn option(code: u16) -> Vec<u8> {
    let [a, b] = code.to_be_bytes();
    vec![1, 1, 253, 6, 0x4E, 0x57, a, b]
}

pub(crate) fn stamps(value: u32, echo: u32) -> Vec<u8> {
    [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
}

/// The headers around the IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    V4,
    V4Options,
    V6,
    V6Extensions,
    Vlan,
    QinQ,
    Pppoe,
    /// IPv6 in a PPPoE session in a VLAN.
    PppoeVlanV6,
    /// IPv4 in GTP-U over IPv4, with UDP's checksum.
    Gtp,
    /// IPv4 in GTP-U over IPv4, without UDP's checksum, and with a sequence number.
    GtpBare,
    /// IPv6 in GTP-U over IPv4, with UDP's checksum.
    GtpMixed,
    /// IPv6 in GTP-U over IPv6, with 5G's extension header.
    GtpV6,
}

pub(crate) const SHAPES: [Shape; 12] = [
    Shape::V4,
    Shape::V4Options,
    Shape::V6,
    Shape::V6Extensions,
    Shape::Vlan,
    Shape::QinQ,
    Shape::Pppoe,
    Shape::PppoeVlanV6,
    Shape::Gtp,
    Shape::GtpBare,
    Shape::GtpMixed,
    Shape::GtpV6,
];

#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) shape: Shape,
    pub(crate) reversed: bool,
    pub(crate) sport: u16,
    /// Sequence number of the data. A SYN has this number minus 1.
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) options: Vec<u8>,
    pub(crate) payload: usize,
    pub(crate) doff: Option<u8>,
}

impl Packet {
    pub(crate) fn new(shape: Shape, sport: u16) -> Self {
        Packet {
            shape,
            reversed: false,
            sport,
            seq: 1000,
            ack: 1000,
            flags: ACK,
            options: stamps(10, 20),
            payload: 0,
            doff: None,
        }
    }
    pub(crate) fn reversed(mut self) -> Self {
        self.reversed = !self.reversed;
        self
    }
    pub(crate) fn flags(mut self, flags: u8) -> Self {
        self.flags = flags;
        self
    }
    pub(crate) fn seq(mut self, seq: u32) -> Self {
        self.seq = seq;
        self
    }
    pub(crate) fn ack(mut self, ack: u32) -> Self {
        self.ack = ack;
        self
    }
    pub(crate) fn options(mut self, options: &[u8]) -> Self {
        self.options = options.to_vec();
        self
    }
    pub(crate) fn payload(mut self, payload: usize) -> Self {
        self.payload = payload;
        self
    }
    fn v6(&self) -> bool {
        matches!(
            self.shape,
            Shape::V6 | Shape::V6Extensions | Shape::PppoeVlanV6 | Shape::GtpMixed | Shape::GtpV6
        )
    }
    fn ends(&self) -> ([u8; 16], [u8; 16], u16, u16) {
        let end = |last| {
            let mut addr = [0; 16];
            if self.v6() {
                addr = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
            } else {
                addr[..4].copy_from_slice(&[10, 0, 0, last]);
            }
            addr
        };
        let (a, b) = ((end(1), self.sport), (end(2), 443));
        if self.reversed { (b.0, a.0, b.1, a.1) } else { (a.0, b.0, a.1, b.1) }
    }
    pub(crate) fn key(&self) -> Key {
        let (saddr, daddr, sport, dport) = self.ends();
        let vlan: u16 = match self.shape {
            Shape::Vlan | Shape::PppoeVlanV6 => 5,
            Shape::QinQ => 7 ^ (5 << 4),
            _ => 0,
        };
        Key {
            saddr,
            daddr,
            sport: sport.to_be(),
            dport: dport.to_be(),
            vlan,
            family: if self.v6() { 6 } else { 4 },
            proto: 6,
        }
    }
    /// Returns the offsets of the IP header and of the TCP header.
    pub(crate) fn offsets(&self) -> (usize, usize) {
        match self.shape {
            Shape::V4 => (14, 34),
            Shape::V4Options => (14, 42),
            Shape::V6 => (14, 54),
            Shape::V6Extensions => (14, 54 + 24),
            Shape::Vlan => (18, 38),
            Shape::QinQ | Shape::Pppoe => (22, 42),
            Shape::PppoeVlanV6 => (26, 66),
            Shape::Gtp => (50, 70),
            Shape::GtpBare => (54, 74),
            Shape::GtpMixed => (50, 90),
            Shape::GtpV6 => (78, 118),
        }
    }
    /// Returns the frame with correct checksums.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (saddr, daddr, sport, dport) = self.ends();
        let mut tcp = Vec::new();
        tcp.extend(sport.to_be_bytes());
        tcp.extend(dport.to_be_bytes());
        tcp.extend(self.seq.wrapping_sub(u32::from(self.flags & SYN != 0)).to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([
            self.doff.unwrap_or((5 + self.options.len() / 4) as u8) << 4,
            self.flags,
            1,
            0,
            0,
            0,
            0,
            0,
        ]);
        tcp.extend(&self.options);
        tcp.extend((0..self.payload).map(|i| i as u8));
        let mut ip = Vec::new();
        if self.v6() {
            let extensions: &[u8] = match self.shape {
                // A hop-by-hop header and a destination options header, with only padding.
                Shape::V6Extensions => {
                    &[60, 0, 1, 4, 0, 0, 0, 0, 6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
                }
                _ => &[],
            };
            let next = if extensions.is_empty() { 6 } else { 0 };
            ip.extend(ipv6_header(&saddr, &daddr, next, extensions.len() + tcp.len()));
            ip.extend(extensions);
        } else {
            let options: &[u8] = if self.shape == Shape::V4Options { &[1, 1, 1, 1, 7, 3, 4, 0] } else { &[] };
            ip.extend(ipv4_header(&saddr[..4], &daddr[..4], options, 6, tcp.len()));
        }
        let at = ip.len();
        ip.extend(&tcp);
        let check = !fold(l4_sum(&ip, 0, at, ip.len()));
        ip[at + 16..at + 18].copy_from_slice(&check.to_be_bytes());
        self.wrap(&ip)
    }
    /// Returns the datagram with its enclosing headers.
    fn wrap(&self, ip: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        match self.shape {
            Shape::Vlan | Shape::PppoeVlanV6 => frame.extend([0x81, 0, 0, 5]),
            Shape::QinQ => frame.extend([0x88, 0xa8, 0, 7, 0x81, 0, 0, 5]),
            _ => {}
        }
        match self.shape {
            Shape::Pppoe | Shape::PppoeVlanV6 => {
                frame.extend([0x88, 0x64, 0x11, 0, 0, 9]);
                frame.extend((ip.len() as u16 + 2).to_be_bytes());
                frame.extend([0, if self.v6() { 0x57 } else { 0x21 }]);
                frame.extend(ip);
            }
            Shape::Gtp | Shape::GtpBare | Shape::GtpMixed | Shape::GtpV6 => {
                frame.extend(if self.shape == Shape::GtpV6 { [0x86, 0xdd] } else { [8, 0] });
                frame.extend(self.in_gtp(ip));
            }
            _ => {
                frame.extend(if self.v6() { [0x86, 0xdd] } else { [8, 0] });
                frame.extend(ip);
            }
        }
        frame
    }
    /// Returns the tunnel's datagram with `ip` inside.
    fn in_gtp(&self, ip: &[u8]) -> Vec<u8> {
        // The optional bytes: a sequence number, or 5G's session container of one word.
        let (flags, optional): (u8, &[u8]) = match self.shape {
            Shape::GtpBare => (0x32, &[0, 1, 0, 0]),
            Shape::GtpV6 => (0x34, &[0, 0, 0, 0x85, 1, 0, 9, 0]),
            _ => (0x30, &[]),
        };
        let inside = optional.len() + ip.len();
        let (udp_len, ports) = (16 + inside, [2153_u16, 2152].map(u16::to_be_bytes).concat());
        let [a, b] = [1, 2].map(|last| {
            let mut addr = [0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
            if self.shape != Shape::GtpV6 {
                addr[..4].copy_from_slice(&[192, 0, 2, last]);
            }
            addr
        });
        let mut outer = match self.shape {
            Shape::GtpV6 => ipv6_header(&a, &b, 17, udp_len),
            _ => ipv4_header(&a[..4], &b[..4], &[], 17, udp_len),
        };
        let at = outer.len();
        outer.extend(ports);
        outer.extend((udp_len as u16).to_be_bytes());
        outer.extend([0, 0, flags, 255]);
        outer.extend((inside as u16).to_be_bytes());
        outer.extend([0, 0, 0, 77]);
        outer.extend(optional);
        outer.extend(ip);
        if self.shape != Shape::GtpBare {
            let check = !fold(l4_sum(&outer, 0, at, outer.len()));
            outer[at + 6..at + 8].copy_from_slice(&check.to_be_bytes());
        }
        outer
    }
}

fn ipv4_header(saddr: &[u8], daddr: &[u8], options: &[u8], protocol: u8, payload: usize) -> Vec<u8> {
    let header = 20 + options.len();
    let mut ip = vec![0x40 | (header / 4) as u8, 0];
    ip.extend(((header + payload) as u16).to_be_bytes());
    ip.extend([0, 1, 0, 0, 64, protocol, 0, 0]);
    ip.extend(saddr);
    ip.extend(daddr);
    ip.extend(options);
    let sum = !fold(sum(&ip));
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip
}

fn ipv6_header(saddr: &[u8], daddr: &[u8], next: u8, payload: usize) -> Vec<u8> {
    let mut ip = vec![0x60, 0, 0, 0];
    ip.extend((payload as u16).to_be_bytes());
    ip.extend([next, 64]);
    ip.extend(saddr);
    ip.extend(daddr);
    ip
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns the sum over the segment or datagram from `l4` to `end`, with its pseudo header.
fn l4_sum(frame: &[u8], l3: usize, l4: usize, end: usize) -> u64 {
    let (addresses, protocol) = match frame[l3] >> 4 {
        // In these tests, only TCP packets have extension headers.
        6 => (&frame[l3 + 8..l3 + 40], if frame[l3 + 6] == 17 { 17 } else { 6 }),
        _ => (&frame[l3 + 12..l3 + 20], u64::from(frame[l3 + 9])),
    };
    sum(addresses) + protocol + (end - l4) as u64 + sum(&frame[l4..end])
}

fn word(frame: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]))
}

/// Returns where the IP header and the datagram end, if the header's checksum is correct.
fn ends(frame: &[u8], l3: usize) -> Option<(usize, usize)> {
    if frame[l3] >> 4 == 6 {
        return Some((l3 + 40, l3 + 40 + word(frame, l3 + 4)));
    }
    let header = usize::from(frame[l3] & 15) * 4;
    let is_correct = fold(sum(&frame[l3..l3 + header])) == 0xffff;
    is_correct.then(|| (l3 + header, l3 + word(frame, l3 + 2)))
}

/// Returns whether all checksums and the lengths in all outer headers are correct. The frame must come from `Packet`,
/// but the program may have changed it.
pub(crate) fn checksums_are_correct(frame: &[u8], (l3, l4): (usize, usize)) -> bool {
    let Some((_, end)) = ends(frame, l3) else { return false };
    let inside = end <= frame.len() && fold(l4_sum(frame, l3, l4, end)) == 0xffff;
    inside && lengths_outside_are_correct(frame, l3, end)
}

fn lengths_outside_are_correct(frame: &[u8], l3: usize, end: usize) -> bool {
    let mut at = 12;
    while matches!(word(frame, at), 0x8100 | 0x88a8) {
        at += 4;
    }
    if word(frame, at) == 0x8864 {
        return at + 10 == l3 && word(frame, at + 6) == end - l3 + 2;
    }
    at += 2;
    if at == l3 {
        return true;
    }
    // GTP-U.
    let Some((udp, outer_end)) = ends(frame, at) else { return false };
    let check = word(frame, udp + 6);
    let has_checksum = at + 40 == udp || check != 0;
    outer_end == end
        && word(frame, udp + 4) == end - udp
        && word(frame, udp + 10) == end - udp - 16
        && (!has_checksum || fold(l4_sum(frame, at, udp, end)) == 0xffff)
}
