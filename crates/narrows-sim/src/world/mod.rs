//! A run: the network, the flows, and the event loop.
//!
//! [`run`] and [`Run`] build a [`World`] and process its events. Each module handles some kinds of events, and owns the
//! state that only this module changes. For example, `flow_table` owns the slots of flows. `switches` and `domain` own
//! the controllers.

mod arrivals;
mod captures;
mod domain;
mod flow_table;
mod flows;
mod notices;
mod running;
mod samples;
mod signalling;
mod switches;
mod triggers;

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use narrows_control::catalogue::{Catalogue, Controllers};
use narrows_control::units::Time;

use crate::capture::Tap;
use crate::check::check_parts;
use crate::engine::{Event, EventQueue, Kind, Slab};
use crate::error::Error;
use crate::net::{Enqueue, HOST, Paths, Port, watch};
use crate::packet::{Packet, flag};
use crate::packets::Packets;
use crate::plan::{Plan, check};
use crate::probe::{AckLog, Recorder, Table};
use crate::transport::{NoTransports, Transports};
pub(crate) use arrivals::draw_size;
pub use arrivals::{Arrivals, starts};
use captures::Captures;
use domain::Domain;
use flow_table::FlowTable;
use flows::Source;
use notices::Notice;
pub use running::{LiveFlow, Running};
use switches::Switch;
pub(crate) use switches::build_rate_controller;
pub use triggers::{PHASE_BEGAN, PHASE_NEVER_BEGAN};
use triggers::{PhaseBegin, Search, Watch};

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The tables in this order: flows, flow_samples, links, link_samples, signalling, flow_records, distributions,
    /// events, traces, acks, requests. The tables acks and requests are left out if they have no rows.
    pub tables: Vec<Table>,
    /// Size of the run.
    pub counts: Counts,
    /// The simulated time at which [`Monitor::stop`] ended the run; `None` if the run is complete.
    pub stopped: Option<Time>,
}

impl Results {
    /// Returns the table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// Size of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of events processed.
    pub events: u64,
    /// Number of times that a link has carried a packet, over all links.
    pub packet_hops: u64,
    /// Number of data packets that reached their receiver.
    pub delivered_packets: u64,
    /// Maximum number of flows that ran at the same time.
    pub peak_flows: u64,
}

/// The progress of a run. Another thread can read the progress, and can end the run early.
#[derive(Debug, Default)]
pub struct Monitor {
    nanos: AtomicU64,
    events: AtomicU64,
    stop: AtomicBool,
}

impl Monitor {
    /// Returns the simulated time. The run updates this value every 65,536 events. When the run has ended, this is its
    /// end time.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    /// Returns the number of events so far. The run updates this number together with the time.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Ends the run soon. Afterwards, [`Results::stopped`] contains the time at which the run ended. The same plan with
    /// this time as its duration has the same results, with one exception: `ideal_fct_s` and `rtt_empty_s` can differ
    /// if the rate of a link changes after this time. If the measurement interval has not begun yet, all figures of
    /// this interval are NaN.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn report(&self, now: Time, events: u64) {
        self.nanos.store(now.as_nanos(), Ordering::Relaxed);
        self.events.store(events, Ordering::Relaxed);
    }
}

/// The event loop checks the flags and reports the time each time it has processed this number of events.
const REPORT_INTERVAL: u64 = 1 << 16;

/// Simulates a plan. The same plan gives the same results, bit for bit.
///
/// # Errors
/// Returns an error if the plan is invalid, or [`Error::Cancelled`] after `cancel` was set.
pub fn run(plan: &Plan, cancel: &AtomicBool) -> Result<Results, Error> {
    Run::new(plan).cancel(cancel).start()
}

/// Like [`run`], but with the given congestion controllers instead of the built-in controllers. `controllers` is a
/// [`Catalogue`] with your own entries, or a function that builds a controller from its name and parameters.
///
/// # Errors
/// The same errors as [`run`].
pub fn run_with(plan: &Plan, cancel: &AtomicBool, controllers: &dyn Controllers) -> Result<Results, Error> {
    Run::new(plan).controllers(controllers).cancel(cancel).start()
}

/// A run whose parts you can replace, for example its congestion controllers.
///
/// ```
/// # use narrows_sim::{Monitor, Run, plan::Plan};
/// # fn example(plan: &Plan) -> Result<(), narrows_sim::Error> {
/// let monitor = Monitor::default();
/// let results = Run::new(plan).monitor(&monitor).start()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "`start` runs it"]
pub struct Run<'a> {
    plan: &'a Plan,
    controllers: &'a dyn Controllers,
    transports: &'a dyn Transports,
    cancel: Option<&'a AtomicBool>,
    monitor: Option<&'a Monitor>,
    tap: Option<Box<dyn Tap + 'a>>,
    /// The phases to watch for. The run ends when one of them begins.
    watch: Option<Rc<RefCell<Watch>>>,
}

impl<'a> Run<'a> {
    /// Prepares a run of this plan with the built-in congestion controllers.
    pub fn new(plan: &'a Plan) -> Self {
        let controllers = Catalogue::built_in();
        Run {
            plan,
            controllers,
            transports: &NoTransports,
            cancel: None,
            monitor: None,
            tap: None,
            watch: None,
        }
    }

    /// Uses these congestion controllers instead of the built-in controllers. `controllers` is a [`Catalogue`] with
    /// your own entries, or a function that builds a controller from its name and parameters.
    pub fn controllers(mut self, controllers: &'a dyn Controllers) -> Self {
        self.controllers = controllers;
        self
    }

    /// Uses these transports for flows whose transport is a [`StackPlan`](crate::plan::StackPlan). By default, a run
    /// has no external transports.
    pub fn transports<'b>(self, transports: &'b dyn Transports) -> Run<'b>
    where
        'a: 'b,
    {
        let Run { plan, controllers, cancel, monitor, tap, watch, .. } = self;
        let tap = tap.map(|tap| tap as Box<dyn Tap + 'b>);
        Run { plan, controllers, transports, cancel, monitor, tap, watch }
    }

    /// Makes the run return [`Error::Cancelled`] soon after another thread has set this flag.
    pub fn cancel(mut self, cancel: &'a AtomicBool) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Reports the progress to `monitor`. Another thread can also stop the run through `monitor`.
    pub fn monitor(mut self, monitor: &'a Monitor) -> Self {
        self.monitor = Some(monitor);
        self
    }

    /// Passes captured packets to `tap`. [`Plan::capture`] selects these packets. Without a tap, nothing is captured.
    pub fn tap<'b>(self, tap: impl Tap + 'b) -> Run<'b>
    where
        'a: 'b,
    {
        let Run { plan, controllers, transports, cancel, monitor, watch, .. } = self;
        Run { plan, controllers, transports, cancel, monitor, tap: Some(Box::new(tap)), watch }
    }

    /// Checks the plan without running it.
    ///
    /// # Errors
    /// Returns an error if the plan is invalid.
    pub fn check(&self) -> Result<(), Error> {
        check_parts(self.plan, self.controllers, self.transports)
    }

    /// Simulates the plan. The same plan with the same parts gives the same results, bit for bit.
    ///
    /// # Errors
    /// Returns an error if the plan is invalid or the run was cancelled.
    pub fn start(self) -> Result<Results, Error> {
        if !self.plan.triggers.is_empty() {
            return self.start_with_triggers();
        }
        self.simulate(&[])
    }

    /// Simulates a plan without triggers. `begins` are the phases of triggers that the plan had.
    fn simulate(self, begins: &[PhaseBegin]) -> Result<Results, Error> {
        let (cancel, monitor) = (AtomicBool::new(false), Monitor::default());
        let (cancel, monitor) = (self.cancel.unwrap_or(&cancel), self.monitor.unwrap_or(&monitor));
        let mut world = self.world()?;
        world.run(cancel, monitor)?;
        world.record_phases(begins);
        Ok(world.finish())
    }

    /// Finds the times of the triggers, and then simulates the plan.
    #[cold]
    fn start_with_triggers(self) -> Result<Results, Error> {
        let (plan, begins) = self.find_times()?;
        let Run { controllers, transports, cancel, monitor, tap, .. } = self;
        let tap = tap.map(|tap| tap as Box<dyn Tap + '_>);
        Run { plan: &plan, controllers, transports, cancel, monitor, tap, watch: None }.simulate(&begins)
    }

    /// Returns the plan with fixed times instead of its triggers ([`Plan::triggers`]). To find the times, the plan is
    /// simulated at least once, and at most once per trigger. A plan without triggers is returned as it is, without a
    /// check.
    ///
    /// [`cancel`](Run::cancel) ends the search. A [`monitor`](Run::monitor) shows the time of the current run of the
    /// search. This time returns to 0 when the next run starts. [`Monitor::stop`] ends the search with the times found
    /// so far.
    ///
    /// # Errors
    /// Returns an error if the plan has triggers and is invalid, or if the run was cancelled.
    pub fn with_times(&self) -> Result<Cow<'a, Plan>, Error> {
        if self.plan.triggers.is_empty() {
            return Ok(Cow::Borrowed(self.plan));
        }
        Ok(Cow::Owned(self.find_times()?.0))
    }

    /// Returns the plan with fixed times, and the phases of its triggers.
    fn find_times(&self) -> Result<(Plan, Vec<PhaseBegin>), Error> {
        let Run { plan, controllers, transports, cancel, monitor, .. } = *self;
        self.check()?;
        let mut search = Search::new(plan);
        while let Some(watch) = search.next() {
            let timed = search.plan(plan);
            let watched = Some(Rc::clone(&watch));
            Run { plan: &timed, controllers, transports, cancel, monitor, tap: None, watch: watched }
                .start()?;
            search.finish(&watch.borrow());
        }
        Ok((search.plan(plan), search.begins()))
    }

    /// Begins the run, which the caller then simulates in steps. A run in steps does not use [`cancel`](Run::cancel)
    /// and [`monitor`](Run::monitor), because the caller has control between two steps. The plan must not have
    /// triggers; [`with_times`](Run::with_times) replaces them.
    ///
    /// # Errors
    /// Returns an error if the plan is invalid or has triggers.
    pub fn begin(self) -> Result<Running<'a>, Error> {
        if !self.plan.triggers.is_empty() {
            return Err(Error::invalid("triggers", self.plan.triggers.len(), "none in a run in steps"));
        }
        Ok(Running::new(self.world()?))
    }

    /// Builds the state at time 0.
    fn world(self) -> Result<World<'a>, Error> {
        self.check()?;
        let mut world = World::new(self.plan, self.controllers, self.transports)?;
        if let Some(tap) = self.tap {
            world.start_captures(tap);
        }
        if let Some(watch) = self.watch {
            world.start_watch(watch);
        }
        Ok(world)
    }
}

/// Returns the nodes of the path between two nodes; `None` if there is no path or the plan is invalid.
pub fn route(plan: &Plan, from: u32, to: u32) -> Option<Vec<u32>> {
    check(plan).ok()?;
    let mut paths = Paths::new(plan);
    let start = paths.shortest(from, to)?;
    let hops = paths.links_of(start).iter().map(|&l| plan.links[l as usize].to);
    Some(std::iter::once(from).chain(hops).collect())
}

/// The state of a run.
pub(crate) struct World<'p> {
    plan: &'p Plan,
    controllers: &'p dyn Controllers,
    transports: &'p dyn Transports,
    now: Time,
    /// The end of the run. This is the end of the plan, or the time at which the run was stopped.
    end: Time,
    events: EventQueue,
    packets: Packets,
    ports: Vec<Port>,
    paths: Paths,
    flows: FlowTable,
    sources: Vec<Source>,
    switches: Vec<Switch>,
    /// The indices of the switches at each node.
    switches_at: Vec<Vec<u32>>,
    domains: Vec<Domain>,
    /// Messages on their way to a source, each with a rate.
    notices: Slab<Notice>,
    recorder: Recorder,
    /// Packets that a flow has just sent.
    outbox: Vec<u32>,
    /// The captures; `None` if nothing is captured.
    captures: Option<Box<Captures<'p>>>,
    /// The log of ACKs, to which the senders add rows.
    ack_log: Rc<RefCell<AckLog>>,
    counts: Counts,
    /// The phases to watch for, in a run that searches for the times of triggers.
    watch: Option<Rc<RefCell<Watch>>>,
}

impl<'p> World<'p> {
    fn new(
        plan: &'p Plan,
        controllers: &'p dyn Controllers,
        transports: &'p dyn Transports,
    ) -> Result<Self, Error> {
        let measure_from = Time::ZERO + plan.warmup;
        let ports: Vec<Port> = plan
            .links
            .iter()
            .enumerate()
            .map(|(i, link)| Port::new(link, plan.seed, i as u64, measure_from))
            .collect();
        let mut world = World {
            plan,
            controllers,
            transports,
            now: Time::ZERO,
            end: Time::ZERO + plan.duration,
            events: EventQueue::new(),
            packets: Packets::new(),
            ports,
            paths: Paths::new(plan),
            flows: FlowTable::default(),
            sources: Vec::new(),
            switches: Vec::new(),
            switches_at: vec![Vec::new(); plan.nodes.len()],
            domains: Vec::new(),
            notices: Slab::new(),
            recorder: Recorder::new(),
            outbox: Vec::new(),
            captures: None,
            ack_log: Rc::new(RefCell::new(AckLog::new(plan.probes.ack_rows))),
            counts: Counts::default(),
            watch: None,
        };
        world.start_probes();
        world.start_switches()?;
        world.start_sources()?;
        Ok(world)
    }

    /// Processes all events up to `end`. A later call with a later `end` continues the run.
    fn run(&mut self, cancel: &AtomicBool, monitor: &Monitor) -> Result<(), Error> {
        while let Some(event) = self.events.pop() {
            if event.at > self.end {
                self.events.put_back(event);
                break;
            }
            self.counts.events += 1;
            if self.counts.events.is_multiple_of(REPORT_INTERVAL) {
                monitor.report(event.at, self.counts.events);
                if cancel.load(Ordering::Relaxed) {
                    return Err(Error::Cancelled);
                }
                if monitor.stop.load(Ordering::Relaxed) {
                    // The run ends at the time of this event. All events at this time are still processed.
                    self.end = event.at;
                }
            }
            self.now = event.at;
            self.dispatch(event);
        }
        self.now = self.end;
        monitor.report(self.end, self.counts.events);
        Ok(())
    }

    #[inline]
    fn dispatch(&mut self, event: Event) {
        let i = event.index;
        if event.kind != Kind::Arrival {
            return self.dispatch_other(event);
        }
        let port = &mut self.ports[i as usize];
        if let Some((packet, hop)) = port.arrive(self.now, i, &self.packets, &mut self.events) {
            self.arrive(i, packet, hop);
        }
    }

    /// Handles an event that is not an arrival. The code for these events is long. It is not inlined, so that an arrival
    /// needs few registers and a small stack frame.
    #[inline(never)]
    fn dispatch_other(&mut self, event: Event) {
        let i = event.index;
        match event.kind {
            Kind::Arrival => {}
            Kind::Ready => self.ready(i),
            Kind::Timer => self.flow_timer(i),
            Kind::Send => self.flow_send(i),
            Kind::Source => self.source_event(i),
            Kind::Switch => self.switch_timer(i),
            Kind::Domain => self.message_event(i),
            Kind::Sample => self.sample_event(i),
        }
    }

    /// Handles a packet at the end of a link. Forwards the packet to the next link, or delivers it to its host. `hop` is
    /// `Packet::hop`.
    #[inline]
    fn arrive(&mut self, link: u32, packet: u32, hop: u32) {
        self.counts.packet_hops += 1;
        let watch = self.ports[link as usize].watch;
        if watch != 0 {
            self.look_at(link, packet, watch);
        }
        let next = self.paths.link(hop);
        if next == HOST {
            self.deliver(packet);
        } else {
            self.forward(next, packet);
        }
    }

    /// Examines a packet at the end of a link. Captures the packet, or passes it to the rate controllers of the
    /// receiving node, or does both. `watch` says which.
    #[inline(never)]
    fn look_at(&mut self, link: u32, packet: u32, watch: u8) {
        if watch & !watch::SWITCH != 0 {
            self.capture_arrival(link, packet, watch);
        }
        if watch & watch::SWITCH != 0 {
            self.pass_switches(link, packet);
        }
    }

    /// Offers a packet to the port of a link.
    #[inline]
    fn forward(&mut self, link: u32, packet: u32) {
        let p = self.packets.get_mut(packet);
        p.hop += 1;
        let mut leaf = p.class as usize;
        if self.ports[link as usize].switch.is_some() {
            match self.admit(link, packet) {
                Some(l) => leaf = l,
                None => {
                    let stats = &mut self.ports[link as usize].stats;
                    stats.offered += 1;
                    stats.dropped += 1;
                    self.packets.discard(packet);
                    return;
                }
            }
        }
        let port = &mut self.ports[link as usize];
        if port.enqueue(self.now, link, packet, leaf, &mut self.packets, &mut self.events) == Enqueue::Dropped
        {
            self.packets.discard(packet);
        }
    }

    /// Delivers a packet to its flow. This function is not inlined into `arrive`. `arrive` therefore stays small, and
    /// the compiler can inline it into `dispatch`, which runs for every hop.
    #[inline(never)]
    fn deliver(&mut self, packet: u32) {
        let p = *self.packets.get(packet);
        if self.packets.has_attachments() {
            if self.packets.has_contents(&p) {
                return self.deliver_datagram(packet, &p);
            }
            self.packets.note_arrival(&p);
        }
        // The packet is freed before the flow handles it. The next packet that the flow sends then uses the same
        // memory.
        self.packets.free(packet);
        if !self.flows.is_current(p.flow, p.generation) {
            return;
        }
        if p.payload > 0 && !p.is(flag::REVERSE) {
            self.counts.delivered_packets += 1;
        }
        self.with_flow(p.flow, |flow, io| flow.on_packet(io, &p));
    }

    /// Delivers a datagram with its contents to its flow.
    #[cold]
    fn deliver_datagram(&mut self, packet: u32, p: &Packet) {
        let contents = self.packets.take(packet);
        if !self.flows.is_current(p.flow, p.generation) {
            return;
        }
        self.counts.delivered_packets += u64::from(!p.is(flag::REVERSE));
        self.with_flow(p.flow, |flow, io| flow.on_datagram(io, p, contents));
    }
}
