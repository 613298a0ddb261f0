//! A port: a queue, the link behind it, and the packets in flight on this link.
//!
//! A link delivers packets in order of arrival time, so only the first packet in flight needs a pending event. The
//! number of events per packet depends on the queue:
//!
//! * Plain FIFO: the departure time of a packet is known when the packet enters the queue. A packet needs one event,
//!   for its arrival at the end of the link.
//! * Scheduling queue: this kind of queue chooses the next packet only when the link is free. A packet needs a second
//!   event, for its departure from the queue.

use std::mem::offset_of;

use narrows_control::rate::{Class, HeaderController, LEAVES, PortCounters, Queueing};
use narrows_control::units::{Bytes, Span, Time};

use super::impair::Impairments;
use super::queue::fifo::{Fifo, Verdict};
use super::queue::htb::Htb;
use super::queue::{self, Discipline, Losses, Next, Waiting};
use super::service::Service;
use super::step_at;
use crate::engine::{EventQueue, Kind, Ring};
use crate::packets::Packets;
use crate::plan::{ControllerPlan, LimitPlan, LinkPlan, MarkPlan, QueuePlan, RatePlan};
use crate::probe::Histogram;

/// Counters of a port since the start of the run. The counters that every packet changes come first; see [`Port`].
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct PortStats {
    /// Number of packets offered to the queue.
    pub(crate) offered: u64,
    /// L3 bytes that the queue accepted. To get the number of bytes whose transmission has begun, subtract the backlog.
    pub(crate) accepted_bytes: u64,
    /// Sum of the sojourn times in the measurement interval. `sojourn_count` is the number of packets in this sum.
    pub(crate) sojourn_sum: u128,
    pub(crate) sojourn_count: u64,
    pub(crate) sojourn_max: u64,
    /// Number of packets that the queue dropped. Random losses on the link are not included (MET-21).
    pub(crate) dropped: u64,
    pub(crate) marked: u64,
    pub(crate) random_losses: u64,
    /// Number of congestion headers that the rate controller changed.
    pub(crate) rewritten: u64,
}

/// Statistics of a port over the measurement interval.
#[derive(Copy, Clone, Debug)]
pub(crate) struct PortTotals {
    /// L3 bytes that left the port. `capacity` is the number of L3 bytes that the link could have carried.
    pub(crate) departed: f64,
    pub(crate) capacity: f64,
    /// Length of the interval.
    pub(crate) seconds: f64,
}

/// The result of offering a packet to a port.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Enqueue {
    Accepted,
    Dropped,
}

/// Bits of `Port::watch`. Each bit is a reason to examine packets at the end of a link. If no bit is set, a
/// packet needs only a single test.
pub(crate) mod watch {
    /// The receiving node has a switch with a rate controller.
    pub(crate) const SWITCH: u8 = 1;
    /// Packets are captured at the end of the link.
    pub(crate) const CAPTURED_LINK: u8 = 1 << 1;
    /// Packets are captured at the node behind the link, when this node receives them.
    pub(crate) const CAPTURED_HOST: u8 = 1 << 2;
}

/// One direction of a link.
///
/// In a large network, a hop waits for the cache lines of its port. The fields that every hop uses are therefore next to
/// each other, at the start, and the order is fixed by `repr(C)`.
#[repr(C, align(64))]
pub(crate) struct Port {
    /// The packets in flight, in order of arrival: (arrival time, packet).
    flight: Ring<(Time, u32)>,
    /// `Packet::hop` of the first packet in flight. The port copies it from the packet as soon as the packet is the
    /// first in flight. This access loads the packet into the cache, so the processor does not wait for the packet when
    /// it arrives.
    first_hop: u32,
    /// Index of the switch whose rate controller controls this port.
    pub(crate) switch: Option<u32>,
    /// The reasons to examine packets at the end of the link; see [`watch`].
    pub(crate) watch: u8,
    /// Whether the port has a rate controller and still uses the queue of the plan. In this case, a packet's class
    /// selects its band in the queue.
    keeps_own_queue: bool,
    impair: Option<Box<Impairments>>,
    /// Time at which the transmitter becomes free.
    free_at: Time,
    service: Service,
    delay: Delay,
    queue: Queue,
    /// Sojourn times, if the port is probed.
    pub(crate) sojourn: Option<Box<Histogram>>,
    measure_from: Time,
    pub(crate) stats: PortStats,
    /// Receiving node.
    pub(crate) to: u32,
    pub(crate) from: u32,
    /// Bytes that had left the port when the measurement interval started. `departed_at_sample` is the same number at
    /// the last sample.
    departed_at_start: u64,
    departed_at_sample: u64,
    /// The counters that the rate controller reads; `None` at a port without a rate controller.
    counters: Option<Box<PortCounters>>,
}

/// The size of a cache line.
const LINE: usize = 64;
const _: () = assert!(
    offset_of!(Port, stats) + offset_of!(PortStats, dropped) <= 4 * LINE,
    "a packet that is not dropped uses four cache lines of a port with a plain FIFO"
);

/// The propagation delay of a link.
enum Delay {
    Constant(Span),
    /// The delay changes at these times.
    Steps(Box<[(Time, Span)]>),
}

enum Queue {
    Fifo(Fifo),
    Scheduled(Box<Scheduled>),
}

struct Scheduled {
    discipline: Box<dyn Discipline>,
    losses: Losses,
    /// Time of the pending Ready event.
    wake_at: Option<Time>,
}

/// Subtracts a packet from the counters. Called when the packet has left the queue, or when the queue has dropped it.
fn remove_queued(counters: &mut PortCounters, leaf: usize, size: Bytes) {
    counters.queued[leaf] -= size;
    counters.queued_packets[leaf] -= 1;
}

impl Port {
    pub(crate) fn new(plan: &LinkPlan, seed: u64, index: u64, measure_from: Time) -> Self {
        let queue = match (&plan.queue, queue::build(&plan.queue)) {
            (_, Some(discipline)) => Queue::Scheduled(Scheduled::new(discipline)),
            (QueuePlan::Fifo { limit, mark }, None) => Queue::Fifo(Fifo::new(*limit, mark, seed, index)),
            (_, None) => Queue::Fifo(Fifo::new(Default::default(), &MarkPlan::None, seed, index)),
        };
        Port {
            to: plan.to,
            from: plan.from,
            service: Service::new(&plan.rate),
            delay: match *plan.delay {
                [(_, only)] => Delay::Constant(only),
                _ => Delay::Steps(plan.delay.as_slice().into()),
            },
            free_at: Time::ZERO,
            queue,
            impair: Impairments::new(plan, seed, index),
            flight: Ring::new(),
            first_hop: 0,
            stats: PortStats::default(),
            sojourn: None,
            measure_from,
            departed_at_start: 0,
            departed_at_sample: 0,
            switch: None,
            watch: 0,
            counters: None,
            keeps_own_queue: false,
        }
    }

    /// Attaches a rate controller to the port. If the controller needs classes, an HTB replaces the port's queue. If
    /// the plan has a `shape`, the `shape` replaces the rate of the link.
    pub(crate) fn control(
        &mut self,
        plan: &ControllerPlan,
        queueing: Queueing,
        link: &LinkPlan,
        switch: u32,
    ) {
        if let Some(steps) = &plan.shape {
            self.service = Service::new(&RatePlan::Steps { steps: steps.clone(), period: None });
        }
        let mut limit = plan.limit;
        self.keeps_own_queue = queueing == Queueing::Own;
        match (queueing, &link.queue) {
            (Queueing::Classes { queues_udp }, _) => {
                let queues_udp = plan.capacity_is_configured && queues_udp;
                let htb = Htb::controlled(self.service.configured_rate(Time::ZERO), limit, queues_udp);
                self.queue = Queue::Scheduled(Scheduled::new(Box::new(htb)));
            }
            // The rate controller must see each packet when the packet leaves the queue. A plain FIFO computes the
            // departure time in advance, and has no event when the packet leaves. A scheduling queue therefore replaces
            // the FIFO.
            (Queueing::Own, QueuePlan::Fifo { limit: own, mark: MarkPlan::None }) => {
                if limit == LimitPlan::default() {
                    limit = *own;
                }
                let fifo = queue::priority::Priority::new(&[limit]);
                self.queue = Queue::Scheduled(Scheduled::new(Box::new(fifo)));
            }
            (Queueing::Own, _) => {}
        }
        self.switch = Some(switch);
        let limit_packets = [limit.packets.unwrap_or(0); LEAVES];
        self.counters = Some(Box::new(PortCounters { limit_packets, ..PortCounters::default() }));
    }

    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    #[inline]
    pub(crate) fn delay_at(&self, now: Time) -> Span {
        match &self.delay {
            Delay::Constant(delay) => *delay,
            Delay::Steps(steps) => step_at(steps, now),
        }
    }

    /// Offers a packet to the queue. If the result is [`Enqueue::Dropped`], the caller must free the packet.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        me: u32,
        packet: u32,
        leaf: usize,
        packets: &mut Packets,
        events: &mut EventQueue,
    ) -> Enqueue {
        self.stats.offered += 1;
        let Queue::Fifo(fifo) = &mut self.queue else {
            self.schedule(now, me, packet, leaf, packets, events);
            return Enqueue::Accepted;
        };
        let p = packets.get_mut(packet);
        let size = p.size as u32;
        match fifo.arrive(now, p, &self.service) {
            Verdict::Drop => {
                self.stats.dropped += 1;
                return Enqueue::Dropped;
            }
            Verdict::AcceptMarked => self.stats.marked += 1,
            Verdict::Accept => {}
        }
        let (start, finish) = self.service.serve(now.max(self.free_at), size);
        self.free_at = finish;
        fifo.record(now, start, size);
        self.stats.accepted_bytes += size as u64;
        self.measure_sojourn(now, start);
        self.transmit(finish, me, packet, packets, events);
        Enqueue::Accepted
    }

    /// Adds a packet to a scheduling queue. This function is not inlined, so that the code for plain FIFOs stays short.
    #[inline(never)]
    fn schedule(
        &mut self,
        now: Time,
        me: u32,
        packet: u32,
        leaf: usize,
        packets: &mut Packets,
        events: &mut EventQueue,
    ) {
        let Queue::Scheduled(scheduled) = &mut self.queue else { return };
        let size = packets.get(packet).size as u32;
        self.stats.accepted_bytes += size as u64;
        let mut band = leaf;
        if let Some(c) = &mut self.counters {
            let leaf = leaf.min(LEAVES - 1);
            let p = packets.get_mut(packet);
            p.set_leaf(leaf);
            if self.keeps_own_queue {
                band = p.class as usize;
            }
            c.arrived[leaf] += Bytes::new(size as u64);
            c.queued[leaf] += Bytes::new(size as u64);
            c.queued_packets[leaf] += 1;
        }
        let waiting = Waiting { packet, since: now, size };
        scheduled.discipline.enqueue(waiting, band, packets, &mut scheduled.losses);
        let ready = now.max(self.free_at);
        if scheduled.wake_at.is_none_or(|w| ready < w) {
            scheduled.wake_at = Some(ready);
            events.push(ready, Kind::Ready, me);
        }
        self.settle_losses(packets);
    }

    /// Handles a Ready event of a scheduling queue. Transmits the next packet. If no packet may leave yet, schedules
    /// another Ready event for the time at which a packet may leave.
    pub(crate) fn ready(
        &mut self,
        now: Time,
        me: u32,
        packets: &mut Packets,
        events: &mut EventQueue,
        writer: Option<&mut (dyn HeaderController + 'static)>,
    ) {
        let Queue::Scheduled(scheduled) = &mut self.queue else { return };
        if scheduled.wake_at != Some(now) {
            return;
        }
        scheduled.wake_at = None;
        match scheduled.discipline.dequeue(now, packets, &mut scheduled.losses) {
            Next::Packet(w) => {
                let (start, finish) = self.service.serve(now.max(self.free_at), w.size);
                self.free_at = finish;
                // If the link follows a trace, the transmission may start after the scheduler has chosen the packet.
                // The wait in between is part of the sojourn time.
                let (packets_left, _) = scheduled.discipline.backlog();
                if packets_left > 0 && finish != Time::NEVER {
                    scheduled.wake_at = Some(finish);
                    events.push(finish, Kind::Ready, me);
                }
                if let Some(c) = &mut self.counters {
                    let (leaf, size) = (packets.get(w.packet).leaf(), Bytes::new(w.size as u64));
                    c.departed_packets += 1;
                    c.departed[leaf] += size;
                    remove_queued(c, leaf, size);
                }
                if let Some(writer) = writer {
                    self.update_header(now, w.packet, packets, writer);
                }
                self.measure_sojourn(w.since, start);
                self.transmit(finish, me, w.packet, packets, events);
            }
            Next::Wait(until) if until != Time::NEVER => {
                // The next attempt must be later than `now`. Otherwise the simulated time would not advance.
                let at = until.max(now + Span::from_nanos(1));
                scheduled.wake_at = Some(at);
                events.push(at, Kind::Ready, me);
            }
            Next::Wait(_) | Next::Empty => {}
        }
        self.settle_losses(packets);
    }

    /// Counts and frees the packets that the discipline dropped.
    fn settle_losses(&mut self, packets: &mut Packets) {
        let Queue::Scheduled(scheduled) = &mut self.queue else { return };
        self.stats.marked += std::mem::take(&mut scheduled.losses.marked);
        for packet in scheduled.losses.dropped.drain(..) {
            self.stats.dropped += 1;
            self.stats.accepted_bytes -= packets.get(packet).size as u64;
            if let Some(c) = &mut self.counters {
                let p = packets.get(packet);
                remove_queued(c, p.leaf(), Bytes::new(p.size as u64));
            }
            packets.free(packet);
        }
    }

    /// Lets the rate controller change the congestion header of a packet that has just left the queue. The controller
    /// is also called for ACKs. They have no congestion header, but the controller may measure the queue when an ACK
    /// leaves (XCP-3).
    fn update_header(
        &mut self,
        now: Time,
        packet: u32,
        packets: &mut Packets,
        writer: &mut dyn HeaderController,
    ) {
        let queued = self.counters.as_ref().map_or(Bytes::ZERO, |c| c.backlog());
        let p = packets.get(packet);
        let (size, before) = (Bytes::new(p.size as u64), packets.header(p));
        let mut header = before;
        writer.on_departure(now, size, &mut header, queued);
        if header != before && packets.replace_header(packet, header) {
            self.stats.rewritten += 1;
        }
    }

    /// Starts the propagation of a packet on the link. Applies the impairments, and adds the packet to the packets in
    /// flight.
    #[inline]
    fn transmit(
        &mut self,
        finish: Time,
        me: u32,
        packet: u32,
        packets: &mut Packets,
        events: &mut EventQueue,
    ) {
        let arrival = finish + self.delay_at(finish);
        if self.impair.is_some() {
            self.transmit_impaired(finish, arrival, me, packet, packets, events);
        } else {
            self.append_to_flight(arrival, me, packet, packets, events);
        }
    }

    #[cold]
    fn transmit_impaired(
        &mut self,
        finish: Time,
        arrival: Time,
        me: u32,
        packet: u32,
        packets: &mut Packets,
        events: &mut EventQueue,
    ) {
        let Some(impair) = &mut self.impair else { return };
        let fate = impair.draw_fate(finish, Bytes::new(packets.get(packet).size.into()));
        let can_reorder = impair.can_reorder(finish);
        if fate.is_lost {
            self.stats.random_losses += 1;
            packets.free(packet);
            return;
        }
        let arrival = arrival + fate.extra_delay;
        let copy = fate.is_duplicated.then(|| packets.duplicate(packet));
        for p in std::iter::once(packet).chain(copy) {
            if can_reorder {
                self.insert_into_flight(arrival, me, p, packets, events)
            } else {
                self.append_to_flight(arrival, me, p, packets, events)
            }
        }
    }

    /// Adds a packet after all other packets in flight.
    #[inline]
    fn append_to_flight(
        &mut self,
        arrival: Time,
        me: u32,
        packet: u32,
        packets: &Packets,
        events: &mut EventQueue,
    ) {
        match self.flight.back() {
            None => {
                self.first_hop = packets.get(packet).hop;
                events.push(arrival, Kind::Arrival, me);
                self.flight.push_back((arrival, packet));
            }
            Some(&(last, _)) => self.flight.push_back((arrival.max(last), packet)),
        }
    }

    /// Inserts a packet into the packets in flight, which are sorted by arrival time. If the packet becomes the first
    /// one, the function schedules an event for its arrival. The pending event for the previous first packet stays
    /// valid.
    fn insert_into_flight(
        &mut self,
        arrival: Time,
        me: u32,
        packet: u32,
        packets: &Packets,
        events: &mut EventQueue,
    ) {
        let at = self.flight.partition_point(|&(t, _)| t <= arrival);
        if at == 0 {
            self.first_hop = packets.get(packet).hop;
            events.push(arrival, Kind::Arrival, me);
        }
        self.flight.insert(at, (arrival, packet));
    }

    /// Removes the first packet in flight, and returns it with its `hop`. Returns `None` if no packet has arrived by
    /// now. In this case, an earlier event has already delivered the packet for which this event was scheduled.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        me: u32,
        packets: &Packets,
        events: &mut EventQueue,
    ) -> Option<(u32, u32)> {
        let &(at, packet) = self.flight.front()?;
        if at > now {
            return None;
        }
        self.flight.pop_front();
        let hop = self.first_hop;
        if let Some(&(next, first)) = self.flight.front() {
            self.first_hop = packets.get(first).hop;
            events.push(next, Kind::Arrival, me);
        }
        Some((packet, hop))
    }

    #[inline]
    fn measure_sojourn(&mut self, since: Time, start: Time) {
        if since >= self.measure_from && start != Time::NEVER {
            let nanos = start.since(since).as_nanos();
            self.stats.sojourn_sum += nanos as u128;
            self.stats.sojourn_count += 1;
            self.stats.sojourn_max = self.stats.sojourn_max.max(nanos);
            if let Some(h) = &mut self.sojourn {
                h.record(nanos);
            }
        }
    }

    /// Returns the numbers of packets and bytes in the queue.
    pub(crate) fn backlog(&mut self, now: Time) -> (u32, u64) {
        match &mut self.queue {
            Queue::Fifo(fifo) => fifo.backlog(now),
            Queue::Scheduled(s) => s.discipline.backlog(),
        }
    }

    /// Returns the number of L3 bytes whose transmission has begun.
    pub(crate) fn departed_bytes(&mut self, now: Time) -> u64 {
        self.stats.accepted_bytes - self.backlog(now).1
    }

    /// Starts the measurement interval.
    pub(crate) fn begin_measurement(&mut self, now: Time) {
        self.departed_at_start = self.departed_bytes(now);
    }

    /// Returns the number of bytes that have left the port since the last call. Also returns the number of bytes that
    /// the link could have carried in `[from, now)`.
    pub(crate) fn take_sample(&mut self, from: Time, now: Time) -> (u64, f64) {
        let departed = self.departed_bytes(now);
        let bin = departed - self.departed_at_sample;
        self.departed_at_sample = departed;
        (bin, self.service.capacity(from, now))
    }

    /// Returns the statistics over the measurement interval, which ends now.
    pub(crate) fn totals(&mut self, now: Time) -> PortTotals {
        let departed = (self.departed_bytes(now) - self.departed_at_start) as f64;
        let seconds = now.since(self.measure_from).as_secs_f64();
        if seconds == 0.0 {
            // The run was stopped before the start of the measurement interval.
            return PortTotals { departed: f64::NAN, capacity: f64::NAN, seconds };
        }
        PortTotals { departed, capacity: self.service.capacity(self.measure_from, now), seconds }
    }

    /// Returns the port's queue as an HTB; `None` if the queue is of another kind.
    pub(crate) fn htb(&mut self) -> Option<&mut Htb> {
        match &mut self.queue {
            Queue::Scheduled(s) => s.discipline.as_htb(),
            Queue::Fifo(_) => None,
        }
    }

    /// Gives every class the full rate. Called when the rate controller has failed.
    pub(crate) fn release(&mut self, now: Time) {
        let rate = self.service.configured_rate(now);
        if let Some(htb) = self.htb() {
            for class in [Class::Rated, Class::OtherTcp, Class::Udp] {
                htb.set_class(now, class as usize, rate, rate);
            }
        }
    }

    /// Schedules a Ready event. Called when a class has changed, because waiting packets may then be allowed to leave.
    pub(crate) fn wake(&mut self, now: Time, me: u32, events: &mut EventQueue) {
        if let Queue::Scheduled(s) = &mut self.queue {
            let ready = now.max(self.free_at);
            if s.wake_at.is_none_or(|w| ready < w) {
                s.wake_at = Some(ready);
                events.push(ready, Kind::Ready, me);
            }
        }
    }

    /// Returns the counters that the port's rate controller reads; `None` at a port without a rate controller. If
    /// `capacity_is_configured` is true, the counters include the current capacity.
    pub(crate) fn counters(&mut self, now: Time, capacity_is_configured: bool) -> Option<&PortCounters> {
        let counters = self.counters.as_deref_mut()?;
        counters.capacity = capacity_is_configured.then(|| self.service.configured_rate(now));
        Some(counters)
    }
}

impl Scheduled {
    fn new(discipline: Box<dyn Discipline>) -> Box<Self> {
        Box::new(Scheduled { discipline, losses: Losses::default(), wake_at: None })
    }
}
