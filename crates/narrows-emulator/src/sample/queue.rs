//! Reads statistics of the kernel's queues by rtnetlink. The statistics are the same as in the output of `tc -s`, but
//! no process is started.

use std::io;

use super::netlink::{Netlink, attribute};
use crate::error::Error;
use crate::netns;
use crate::spec::QueueSpec;

const RTM_GETQDISC: u16 = 38;
const RTM_GETTCLASS: u16 = 42;

/// Length of `struct tcmsg`, and numbers of attributes (linux/rtnetlink.h, linux/gen_stats.h).
const TCMSG: usize = 20;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;

/// Counters of a queue.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueStats {
    /// Numbers of L3 bytes and packets that left the queue.
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) drops: u64,
    /// Numbers of waiting packets (a super-packet counts as one packet) and waiting L3 bytes.
    pub(crate) waiting_packets: u64,
    pub(crate) waiting_bytes: u64,
}

impl QueueStats {
    pub(crate) fn add(&mut self, other: QueueStats) {
        self.bytes += other.bytes;
        self.packets += other.packets;
        self.drops += other.drops;
        self.waiting_packets += other.waiting_packets;
        self.waiting_bytes += other.waiting_bytes;
    }
}

/// A sampled qdisc or class.
pub(crate) struct Queue {
    netlink: Netlink,
    kind: u16,
    request: [u8; TCMSG],
    /// Bytes per packet that the kernel counts in addition to the L3 bytes.
    header: u64,
    /// Namespace, interface and handle, for error messages.
    pub(crate) name: String,
    /// The kernel's 32-bit counters, extended to 64 bits.
    packets: Unrolled,
    drops: Unrolled,
}

/// Extends a wrapping 32-bit counter to 64 bits.
#[derive(Copy, Clone, Debug, Default)]
struct Unrolled {
    total: u64,
}

impl Unrolled {
    fn update(&mut self, value: u32) -> u64 {
        self.total += value.wrapping_sub(self.total as u32) as u64;
        self.total
    }
}

impl Queue {
    /// Opens a queue, and reads its counters once.
    ///
    /// # Errors
    /// If there is no such interface, qdisc or class, or if the handle is invalid.
    pub(crate) fn open(spec: &QueueSpec) -> Result<Self, Error> {
        let name = format!("{}: {} {}", spec.netns.display(), spec.interface, spec.handle);
        let handle = handle(&spec.handle).ok_or_else(|| {
            Error::invalid(
                format!("queue {name}: handle"),
                &spec.handle,
                "hexadecimal numbers such as 1: or 1:10",
            )
        })?;
        let index = netns::inside(&spec.netns, || {
            nix::net::if_::if_nametoindex(spec.interface.as_str())
                .map_err(Error::system(format!("{name}: find interface")))
        })?;
        let netlink = Netlink::open(&spec.netns, netlink_sys::protocols::NETLINK_ROUTE)?;
        let mut request = [0; TCMSG];
        request[4..8].copy_from_slice(&index.to_ne_bytes());
        request[8..12].copy_from_slice(&handle.to_ne_bytes());
        let kind = if handle & 0xffff == 0 { RTM_GETQDISC } else { RTM_GETTCLASS };
        let mut queue = Queue {
            netlink,
            kind,
            request,
            header: spec.header.into(),
            name,
            packets: Unrolled::default(),
            drops: Unrolled::default(),
        };
        queue.read().map_err(Error::system(format!("{}: read queue", queue.name)))?;
        Ok(queue)
    }

    /// Reads the counters.
    pub(crate) fn read(&mut self) -> io::Result<QueueStats> {
        let mut seen = None;
        self.netlink.request(self.kind, false, &self.request, |m| seen = m.get(TCMSG..).and_then(parse))?;
        let raw = seen.ok_or_else(|| io::Error::other("the kernel returned no statistics"))?;
        let packets = self.packets.update(raw.packets);
        Ok(QueueStats {
            bytes: raw.bytes.saturating_sub(self.header * packets),
            packets,
            drops: self.drops.update(raw.drops),
            waiting_packets: raw.qlen as u64,
            waiting_bytes: (raw.backlog as u64).saturating_sub(self.header * raw.qlen as u64),
        })
    }
}

struct Raw {
    bytes: u64,
    packets: u32,
    qlen: u32,
    backlog: u32,
    drops: u32,
}

fn parse(attributes: &[u8]) -> Option<Raw> {
    let stats = attribute(attributes, TCA_STATS2)?;
    let basic = attribute(stats, TCA_STATS_BASIC)?;
    let queue = attribute(stats, TCA_STATS_QUEUE)?;
    let word = |bytes: &[u8], at: usize| -> Option<u32> {
        bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
    };
    Some(Raw {
        bytes: u64::from_ne_bytes(basic.get(..8)?.try_into().ok()?),
        packets: word(basic, 8)?,
        qlen: word(queue, 0)?,
        backlog: word(queue, 4)?,
        drops: word(queue, 8)?,
    })
}

/// Parses a hexadecimal handle in the notation of tc(8). For example, `1:` is a qdisc, and `1:10` is a class.
fn handle(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let major = u16::from_str_radix(major, 16).ok()?;
    let minor = if minor.is_empty() { 0 } else { u16::from_str_radix(minor, 16).ok()? };
    Some((major as u32) << 16 | minor as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_parsed_as_in_tc() {
        assert_eq!(handle("1:"), Some(0x1_0000));
        assert_eq!(handle("1:10"), Some(0x1_0010));
        assert_eq!(handle("ffff:fff1"), Some(0xffff_fff1));
        for bad in ["", "1", ":", "x:1", "1:x", "10000:"] {
            assert_eq!(handle(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_wrapping_counter_continues() {
        let mut c = Unrolled::default();
        assert_eq!(c.update(u32::MAX - 1), u32::MAX as u64 - 1);
        assert_eq!(c.update(3), u32::MAX as u64 + 4);
    }
}
