//! Counts the packets of a program at the interfaces of its two hosts.
//!
//! A program may open several connections, and may close their sockets before sock_diag(7) can sample them. This module
//! therefore uses packet sockets at both hosts, which receive all data packets and acknowledgements. It reads only the
//! first bytes of each packet, which contain the headers.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use narrows_control::units::Time;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::headers::{Segment, Wanted, Way};
use super::streams::Streams;
use crate::clock::{Clock, monotonic, realtime_to_monotonic};
use crate::error::Error;
use crate::netns;
use crate::raw::{self, ReceiveBatch};
use crate::relay::bind_to_all_protocols;

/// Number of bytes that are read from the beginning of each packet. The longest IPv4 header and the longest TCP header
/// together have this length.
const HEAD_BYTES: usize = 120;
/// The interface index that means all interfaces (packet(7)).
const ALL_INTERFACES: u32 = 0;
/// Maximum number of packets that one system call reads.
const BATCH_PACKETS: usize = 256;
/// Size of the kernel's buffer, which stores packets between two samples. [`Tap::missed`] is above 0 if the buffer was
/// too small.
const RECEIVE_BUFFER_BYTES: i32 = 32 << 20;

/// The counters of a program's packets.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TapCounts {
    /// Number and L3 bytes of the data packets that left the sending host. `retransmitted` counts the TCP packets among
    /// them whose data had all been sent before.
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) retransmitted: u64,
    /// Application bytes that arrived. For TCP, these are the bytes that the receiver has acknowledged. For UDP, these
    /// are the payload bytes.
    pub(crate) delivered: u64,
    /// Payload bytes from the flow's receiver to its sender, counted at the sending host.
    pub(crate) reverse_payload: u64,
    /// Number of datagrams that left the sending host in several fragments.
    pub(crate) fragmented: u64,
}

/// A program's packets at both hosts.
pub(crate) struct Tap {
    wanted: Wanted,
    sender: Socket,
    receiver: Socket,
    streams: Streams,
    counts: TapCounts,
    /// Packets of the receiving host, which are processed after the packets of the sending host.
    waiting: Vec<(Time, Way, Segment)>,
    /// Time of the first packet at the sending host.
    pub(crate) started: Option<Time>,
}

impl Tap {
    /// Opens the packet sockets of a flow.
    ///
    /// # Errors
    /// If there is no such namespace, if CAP_NET_RAW is missing in the namespace, or if the kernel has no packet
    /// sockets.
    pub(crate) fn open(wanted: Wanted, sender: &Path, receiver: &Path) -> Result<Self, Error> {
        Ok(Tap {
            wanted,
            sender: Socket::open(sender)?,
            receiver: Socket::open(receiver)?,
            streams: Streams::default(),
            counts: TapCounts::default(),
            waiting: Vec::new(),
            started: None,
        })
    }

    /// Reads the packets since the last call.
    pub(crate) fn update(&mut self, clock: Clock) -> TapCounts {
        let Tap { wanted, sender, receiver, streams, counts, waiting, started } = self;
        // The data of a packet must be processed before its acknowledgement. Read the receiving host's packets first,
        // but process them after the sending host's packets, which then include all acknowledged data.
        receiver.read(clock, |at, packet| {
            waiting.extend(wanted.find(packet).map(|(way, segment)| (at, way, segment)));
        });
        sender.read(clock, |at, packet| {
            let Some((way, segment)) = wanted.find(packet) else { return };
            started.get_or_insert(at);
            match way {
                Way::Forth => {
                    let is_data = u64::from(segment.payload > 0);
                    counts.sent_packets += is_data;
                    counts.sent_bytes += is_data * u64::from(segment.l3_bytes);
                    counts.retransmitted += u64::from(streams.on_sent(&segment));
                    counts.fragmented += u64::from(segment.is_fragmented);
                }
                Way::Back => {
                    counts.reverse_payload += u64::from(segment.payload);
                    streams.on_acknowledged(&segment, at);
                }
            }
        });
        for (at, way, segment) in waiting.drain(..) {
            match way {
                Way::Forth => streams.on_arrived(&segment, at),
                Way::Back => streams.on_delivered(&segment, at),
            }
        }
        counts.delivered = streams.delivered();
        *counts
    }

    /// Returns the times at which all connections were complete: at the sender (everything was acknowledged) and at the
    /// receiver (everything had arrived). Returns `None` while a connection is open, and for UDP.
    pub(crate) fn done(&self) -> Option<(Time, Time)> {
        self.streams.done()
    }

    /// Returns the number of packets that the kernel dropped before they were counted.
    pub(crate) fn missed(&mut self) -> u64 {
        self.sender.missed() + self.receiver.missed()
    }
}

/// A packet socket on all interfaces of a namespace.
struct Socket {
    fd: OwnedFd,
    batch: ReceiveBatch,
    missed: u64,
}

impl Socket {
    fn open(netns: &Path) -> Result<Self, Error> {
        let fd = netns::inside(netns, || {
            let at = |what: &'static str| Error::at::<io::Error>(netns, what);
            // Without link-layer headers, the packets of all interfaces have the same format. Only a socket with
            // ETH_P_ALL also receives packets that leave the host (packet(7)).
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let fd = socket(AddressFamily::Packet, SockType::Datagram, flags, None)
                .map_err(|e| at("open packet socket")(e.into()))?;
            raw::set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).map_err(at("SO_TIMESTAMPNS"))?;
            raw::set_option(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
                .map_err(at("SO_RCVBUFFORCE"))?;
            bind_to_all_protocols(&fd, ALL_INTERFACES).map_err(at("bind packet socket"))?;
            Ok(fd)
        })?;
        Ok(Socket { fd, batch: ReceiveBatch::of_heads(BATCH_PACKETS, HEAD_BYTES), missed: 0 })
    }

    /// Reads all packets that have arrived. An error, e.g. because an interface is down, only ends the reading.
    fn read(&mut self, clock: Clock, mut take: impl FnMut(Time, &[u8])) {
        let offset = realtime_to_monotonic();
        while let Ok(n) = self.batch.receive(&self.fd) {
            for i in 0..n {
                let (packet, stamp) = self.batch.packet(i);
                let at = stamp.map_or_else(monotonic, |s| s.saturating_add_signed(offset));
                take(clock.at(at), packet);
            }
            if n < BATCH_PACKETS {
                break;
            }
        }
    }

    fn missed(&mut self) -> u64 {
        self.missed += raw::packet_socket_drops(&self.fd);
        self.missed
    }
}
