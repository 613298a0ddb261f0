//! The relay: one thread that forwards frames between interfaces in real time, according to the simulator's
//! link model.
//!
//! The kernel stamps frames when they arrive. The link's delay therefore does not become longer if the thread reads a
//! frame late. Frames never leave before they are due, and their lateness is measured. Between frames, the thread
//! sleeps (ppoll with the finest timer slack). The thread has real-time priority if the kernel permits it.

mod flight;
mod frame;
mod link;
mod socket;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use narrows_control::units::{Span, Time};
use narrows_sim::model::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::{Clock, monotonic, realtime_to_monotonic};
use crate::error::Error;
use crate::raw::{self, ReceiveBatch, send_batch};
use crate::spec::{InterfaceSpec, Spec};
use flight::Flight;
use frame::{Kind, VNET_HEADER, classify};
pub(crate) use link::LinkStats;
use link::{Fate, Link};
use socket::PacketSocket;
pub(crate) use socket::bind_to_all_protocols;

/// Maximum number of packets that one system call reads or writes.
const BATCH: usize = 64;

/// Length of the longest frame: a super-packet (GSO) of 64 KiB, its Ethernet header with a VLAN tag, and the virtio
/// header.
const PACKET_MAX_BYTES: usize = VNET_HEADER + 18 + 65_536;

/// Longest sleep between two checks of the cancel flag.
const NAP: Span = Span::from_millis(50);

/// A frame's timestamp is ignored if it is older than this. Such a timestamp shows that CLOCK_REALTIME has been set
/// since the frame arrived.
const STAMP_MAX_AGE_NANOS: u64 = 2_000_000_000;

/// State of a link during a run. The relay's thread writes this state, and the sampler reads it.
#[derive(Debug, Default)]
pub(crate) struct LinkBoard {
    pub(crate) offered: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) departed_bytes: AtomicU64,
    pub(crate) queue_packets: AtomicU64,
    pub(crate) queue_bytes: AtomicU64,
}

/// The report about a link at the end of a run.
pub(crate) struct LinkReport {
    pub(crate) link: u32,
    pub(crate) stats: LinkStats,
    /// Number of frames that were forwarded, including duplicates and housekeeping frames.
    pub(crate) sent: u64,
    /// Number of frames that the kernel dropped before the relay read them.
    pub(crate) kernel_drops: u64,
    /// Number of frames that the relay dropped because it already stored the maximum number of bytes.
    pub(crate) overflow: u64,
    /// Number of frames that the device refused.
    pub(crate) refused: u64,
    pub(crate) decides_per_packet: bool,
    /// Lateness of sent frames in seconds: median, 99th percentile, maximum.
    pub(crate) late: [f64; 3],
    /// Sojourn times and their mean in seconds, if the relay implements the queue.
    pub(crate) sojourn: Option<(Histogram, f64)>,
}

/// The report of the relay's thread at the end of a run.
pub(crate) struct RelayReport {
    pub(crate) links: Vec<LinkReport>,
    /// The thread's CPU time while it forwarded packets, divided by the elapsed time.
    pub(crate) cpu: f64,
    /// `Ok` if the thread has real-time priority, otherwise the reason why it has none.
    pub(crate) priority: Result<(), String>,
}

/// A running link.
struct Lane {
    index: u32,
    link: Link,
    flight: Flight,
    /// Time of the latest arrival, by CLOCK_MONOTONIC.
    latest: u64,
    from: usize,
    to: usize,
    late: Option<Box<Histogram>>,
    sent: u64,
    overflow: u64,
    refused: u64,
    board: Arc<LinkBoard>,
}

/// All links of a relay.
pub(crate) struct Relay {
    sockets: Vec<PacketSocket>,
    lanes: Vec<Lane>,
    /// For each socket, the index in `lanes` of the link that transmits the frames which this socket receives; `None`
    /// if no link does.
    lane_of: Vec<Option<usize>>,
    held: u64,
    hold_max: u64,
}

impl Relay {
    /// Opens the interfaces.
    ///
    /// # Errors
    /// If an interface does not exist, or if the relay does not support a link.
    pub(crate) fn open(spec: &Spec) -> Result<Self, Error> {
        let measure_from = Time::ZERO + spec.plan.warmup;
        let mut sockets = Vec::new();
        let mut known: BTreeMap<&InterfaceSpec, usize> = BTreeMap::new();
        let mut lanes = Vec::new();
        for relay in &spec.relays {
            let [from, to] = [&relay.from, &relay.to].map(|interface| match known.get(interface) {
                Some(&i) => Ok(i),
                None => {
                    sockets.push(PacketSocket::open(interface)?);
                    known.insert(interface, sockets.len() - 1);
                    Ok::<usize, Error>(sockets.len() - 1)
                }
            });
            let plan = &spec.plan.links[relay.link as usize];
            let link = Link::new(plan, spec.plan.seed, relay.link, relay.model, measure_from)?;
            lanes.push(Lane {
                index: relay.link,
                link,
                flight: Flight::default(),
                latest: 0,
                from: from?,
                to: to?,
                late: Histogram::new(),
                sent: 0,
                overflow: 0,
                refused: 0,
                board: Arc::default(),
            });
        }
        let lane_of = (0..sockets.len()).map(|s| lanes.iter().position(|l| l.from == s)).collect();
        Ok(Relay { sockets, lanes, lane_of, held: 0, hold_max: spec.bounds.relay_bytes })
    }

    /// Returns the boards. The sampler reads the state of each link from them during the run.
    pub(crate) fn boards(&self) -> BTreeMap<u32, Arc<LinkBoard>> {
        self.lanes.iter().map(|l| (l.index, l.board.clone())).collect()
    }

    /// Forwards packets until `end`.
    pub(crate) fn run(mut self, clock: Clock, end: Time, stop: &AtomicBool) -> Result<RelayReport, Error> {
        let priority = raw::real_time_priority().map_err(|e| e.to_string());
        nix::sys::prctl::set_timerslack(1).map_err(Error::system("PR_SET_TIMERSLACK"))?;
        let (began, cpu_before) = (monotonic(), raw::thread_cpu());
        let end = clock.monotonic(end);
        let mut batch = ReceiveBatch::new(BATCH, PACKET_MAX_BYTES);
        loop {
            let now = monotonic();
            if now >= end || stop.load(Ordering::Relaxed) {
                break;
            }
            self.send_due(now)?;
            let due = self.lanes.iter().filter_map(|l| l.flight.next()).min();
            let sleep = due.unwrap_or(u64::MAX).min(end).saturating_sub(monotonic()).min(NAP.as_nanos());
            self.wait(sleep)?;
            for socket in 0..self.sockets.len() {
                self.fetch(socket, clock, &mut batch)?;
            }
            for lane in &mut self.lanes {
                lane.publish(clock.now());
            }
        }
        let ran = monotonic().saturating_sub(began).max(1);
        let cpu = raw::thread_cpu().saturating_sub(cpu_before) as f64 / ran as f64;
        let mut drops: Vec<u64> = self.sockets.iter_mut().map(PacketSocket::kernel_drops).collect();
        if let Some(first) = drops.first_mut() {
            *first += batch.truncated();
        }
        let links = self.lanes.into_iter().map(|l| l.report(&drops)).collect();
        Ok(RelayReport { links, cpu, priority })
    }

    /// Sleeps for `nanos` nanoseconds, or until a frame arrives.
    fn wait(&self, nanos: u64) -> Result<(), Error> {
        let mut polls: Vec<PollFd<'_>> = self
            .sockets
            .iter()
            .zip(&self.lane_of)
            .filter(|(_, lane)| lane.is_some())
            .map(|(s, _)| PollFd::new(s.as_fd(), PollFlags::POLLIN))
            .collect();
        let timeout = TimeSpec::new((nanos / 1_000_000_000) as _, (nanos % 1_000_000_000) as _);
        match ppoll(&mut polls, Some(timeout), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(e) => Err(Error::system("relay: ppoll")(e)),
        }
    }

    fn send_due(&mut self, now: u64) -> Result<(), Error> {
        for lane in &mut self.lanes {
            loop {
                let packets: Vec<&[u8]> = lane.flight.due(now, BATCH).map(|f| &*f.1).collect();
                if packets.is_empty() {
                    break;
                }
                let (offered, sent_at) = (packets.len(), monotonic());
                let socket = &self.sockets[lane.to];
                let n = match send_batch(socket, &packets) {
                    Ok(n) => n,
                    // The device is down, or the frame is too long for the device. The frame is dropped.
                    Err(_) => {
                        lane.refused += 1;
                        self.held -= packets[0].len() as u64;
                        lane.flight.remove(1);
                        continue;
                    }
                };
                self.held -= packets[..n].iter().map(|p| p.len() as u64).sum::<u64>();
                if let Some(late) = &mut lane.late {
                    lane.flight.due(now, n).for_each(|f| late.record(sent_at.saturating_sub(f.0)));
                }
                lane.sent += n as u64;
                lane.flight.remove(n);
                if n < offered {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Receives the frames that have arrived at an interface, and passes them to the link model.
    fn fetch(&mut self, socket: usize, clock: Clock, batch: &mut ReceiveBatch) -> Result<(), Error> {
        let Some(lane) = self.lane_of[socket].and_then(|l| self.lanes.get_mut(l)) else { return Ok(()) };
        let n = match batch.receive(&self.sockets[socket]) {
            Ok(n) => n,
            // The interface is down. Frames that are sent to the interface are lost, as with an unplugged cable.
            Err(e) if e.raw_os_error() == Some(libc::ENETDOWN) => return Ok(()),
            Err(e) => return Err(Error::system(format!("relay of link {}: receive", lane.index))(e)),
        };
        if n == 0 {
            return Ok(());
        }
        let offset = realtime_to_monotonic();
        let now = monotonic();
        for i in 0..n {
            let (packet, stamp) = batch.packet(i);
            if packet.is_empty() {
                continue;
            }
            let stamp = stamp.map(|s| s.saturating_add_signed(offset));
            let arrived = stamp.filter(|s| *s <= now && now - s < STAMP_MAX_AGE_NANOS).unwrap_or(now);
            self.held += lane.take(packet, arrived, clock, self.hold_max.saturating_sub(self.held));
        }
        Ok(())
    }
}

impl Lane {
    /// Handles a frame that arrived at CLOCK_MONOTONIC `arrived`. `room` is the number of bytes that the relay may
    /// still store. Returns the number of bytes that it has stored for this frame, including a duplicate.
    fn take(&mut self, packet: &[u8], arrived: u64, clock: Clock, room: u64) -> u64 {
        // Timestamps of two processors may be slightly out of order, but the time of the link model must not decrease.
        let arrived = arrived.max(self.latest);
        self.latest = arrived;
        let now = clock.at(arrived);
        let delayed = |link: &Link| arrived.saturating_add(link.delayed(now).since(now).as_nanos());
        let (due, is_duplicated) = match classify(packet) {
            // Frames that arrive before the start of the run are only delayed. They are not counted.
            Kind::Data { bytes, super_packet } if arrived >= clock.zero => {
                self.link.stats.super_packets += super_packet as u64;
                match self.link.offer(now, bytes) {
                    Fate::Arrives { at, is_duplicated } => (clock.monotonic(at), is_duplicated),
                    Fate::Lost | Fate::Dropped => return 0,
                }
            }
            Kind::Data { .. } | Kind::Housekeeping => (delayed(&self.link), false),
        };
        let mut held = 0;
        for _ in 0..1 + is_duplicated as u8 {
            if held + packet.len() as u64 > room {
                self.overflow += 1;
            } else {
                held += packet.len() as u64;
                self.flight.push(due, packet.into(), self.link.can_reorder(now));
            }
        }
        held
    }

    fn publish(&mut self, now: Time) {
        let (packets, bytes) = self.link.backlog(now);
        let s = &self.link.stats;
        let set = |cell: &AtomicU64, value| cell.store(value, Ordering::Relaxed);
        set(&self.board.offered, s.offered);
        set(&self.board.dropped, s.dropped);
        set(&self.board.lost, s.lost);
        set(&self.board.departed_bytes, s.accepted_bytes - bytes);
        set(&self.board.queue_packets, packets);
        set(&self.board.queue_bytes, bytes);
    }

    fn report(self, drops: &[u64]) -> LinkReport {
        let late = [0.5, 0.99, 1.0].map(|q| self.late.as_ref().map_or(f64::NAN, |h| h.quantile(q)));
        LinkReport {
            link: self.index,
            sojourn: self.link.sojourn().map(|(h, mean)| (h.clone(), mean)),
            decides_per_packet: self.link.decides_per_packet(),
            stats: self.link.stats,
            sent: self.sent,
            kernel_drops: drops.get(self.from).copied().unwrap_or(0),
            overflow: self.overflow,
            refused: self.refused,
            late,
        }
    }
}
