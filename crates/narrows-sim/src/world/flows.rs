//! Starts flows, handles their events, and ends them.
//!
//! The event loop calls this module for events of sources and flows, and for each packet that reaches its host.

use narrows_control::catalogue::FlowNumber;
use narrows_control::congestion::linux::reno::Reno;
use narrows_control::units::{Bytes, Span, Time};

use super::World;
use super::arrivals::{Arrivals, starts};
use crate::engine::{Kind, Random, Stream};
use crate::error::Error;
use crate::flow::{Body, Delays, EmptyPath, Flow, FlowIndex, LastSample, Meta, Tcp, Udp};
use crate::net::BothWays;
use crate::packet::{Template, flag};
use crate::plan::{AppPlan, FlowPlan, TransportPlan};
use crate::probe::{AckRecorder, Histogram};
use crate::tcp::{App, Config, Io, Offer, Receiver, RttStats, Sender};
use crate::transport::{FlowSetup, Requests, StackFlow, Transport};

/// Maximum number of flows with samples. With more flows, the table would be too long for a reader.
const SAMPLED_FLOWS: u32 = 1_000;

/// Starts the flows of one flow plan.
pub(super) struct Source {
    started: u32,
    /// Whether the first event of the Poisson process has occurred.
    is_running: bool,
    arrivals: Option<Arrivals>,
    /// The start times of the flows. Empty if the flow plan has no start jitter.
    starts: Vec<Time>,
    /// The paths that the source's flows take without ECMP.
    paths: BothWays,
    /// Random numbers that choose the ECMP paths of the source's flows. Each source has its own stream.
    choices: Random,
    empty: EmptyPath,
}

impl World<'_> {
    pub(super) fn start_sources(&mut self) -> Result<(), Error> {
        for (i, plan) in self.plan.flows.iter().enumerate() {
            let paths = self.paths.both_ways(self.plan, plan)?;
            let empty = self.empty_path(plan, paths);
            let starts = if plan.start_jitter == Span::ZERO {
                Vec::new()
            } else {
                starts(plan, self.plan.seed, i as u64)
            };
            self.events.push(starts.first().copied().unwrap_or(plan.start), Kind::Source, i as u32);
            self.sources.push(Source {
                started: 0,
                is_running: false,
                arrivals: Arrivals::new(plan, self.plan.seed, i as u64),
                starts,
                paths,
                choices: Random::scattered(self.plan.seed, Stream::Paths.of(i as u64)),
                empty,
            });
            self.events.push(plan.stop.unwrap_or(Time::NEVER), Kind::Source, i as u32);
        }
        Ok(())
    }

    /// Returns the properties of a flow's path, if no other traffic uses the path.
    fn empty_path(&self, plan: &FlowPlan, paths: BothWays) -> EmptyPath {
        let (forward, reverse) = (self.paths.links_of(paths.forward), self.paths.links_of(paths.reverse));
        EmptyPath::along(plan, forward, reverse, |link| {
            let port = &self.ports[link as usize];
            let rate = port.service().mean_rate(plan.start, Time::ZERO + self.plan.duration);
            (rate, port.delay_at(plan.start))
        })
    }

    /// Handles an event of a source. Starts the next flow of the flow plan, or records that the flow plan's stop time
    /// has come.
    pub(super) fn source_event(&mut self, index: u32) {
        let plan = &self.plan.flows[index as usize];
        let stop = plan.stop.unwrap_or(Time::NEVER);
        if self.now == stop {
            self.snapshot_at_stop(index);
            return;
        }
        match &plan.app {
            AppPlan::Poisson { .. } => {
                if self.now > stop {
                    return;
                }
                let source = &mut self.sources[index as usize];
                let Some(arrivals) = &mut source.arrivals else { return };
                self.events.push(self.now + arrivals.draw_gap(), Kind::Source, index);
                // The first event only starts the process. The first flow arrives one gap after this event.
                if std::mem::replace(&mut source.is_running, true) {
                    let bytes = arrivals.draw_size();
                    source.started += 1;
                    let app = App::sized(Bytes::new(bytes), self.now);
                    self.start_flow(index, app, bytes);
                }
            }
            app => {
                let source = &mut self.sources[index as usize];
                source.started += 1;
                if source.started < plan.count {
                    let next = source.starts.get(source.started as usize).copied();
                    self.events.push(next.unwrap_or(self.now + plan.spacing), Kind::Source, index);
                }
                let app = App::new(app, self.now, stop);
                let size = app.size();
                self.start_flow(index, app, size);
            }
        }
    }

    /// Records how many bytes each flow of a flow plan has delivered. Called at the stop time of the flow plan, because
    /// bytes that are delivered later do not count as goodput.
    fn snapshot_at_stop(&mut self, index: u32) {
        for flow in self.flows.live_mut().filter(|flow| flow.meta.plan == index) {
            flow.meta.delivered_at_stop = Some(flow.delivered());
        }
    }

    fn start_flow(&mut self, index: u32, app: App, size: u64) {
        let plan = &self.plan.flows[index as usize];
        let Source { started, mut paths, mut empty, .. } = self.sources[index as usize];
        let poisson = matches!(plan.app, AppPlan::Poisson { .. });
        let (id, slot, generation) = self.flows.reserve();
        if self.plan.ecmp {
            paths = self.paths.spread(plan, paths, &mut self.sources[index as usize].choices);
            empty = self.empty_path(plan, paths);
        }
        let end = Time::ZERO + self.plan.duration;
        let meta = Meta {
            id,
            plan: index,
            member: started - 1,
            key: FlowIndex::new(slot, index, plan),
            start: self.now,
            stop: plan.stop.unwrap_or(end).min(end),
            size,
            empty,
            is_sampled: !poisson && self.plan.probes.flows && id < SAMPLED_FLOWS,
            delivered_at_start: 0,
            delivered_at_stop: None,
            sent_bytes: 0,
            signal_bytes: 0,
            last: LastSample::default(),
        };
        let template = Template { flow: slot, generation, flags: 0, hop: paths.forward, class: plan.class };
        let mut body = self.body(index, app, template, paths.reverse, &meta);
        if let Body::Tcp(tcp) = &mut body {
            tcp.sender.flight.board = self.flows.take_board();
        }
        let flow = Flow { body, meta, timer_at: Time::NEVER, send_at: Time::NEVER };
        self.flows.insert(slot, flow);
        self.counts.peak_flows = self.counts.peak_flows.max(self.flows.in_use());
        self.with_flow(slot, |flow, io| flow.start(io));
    }

    fn body(&self, index: u32, app: App, template: Template, reverse: u32, meta: &Meta) -> Body {
        let plan = &self.plan.flows[index as usize];
        match &plan.transport {
            TransportPlan::Tcp { cc, ecn, pacing, receive_window, mss, initial_window } => {
                let mut random = Random::new(self.plan.seed, Stream::Flow.of(meta.id as u64));
                let back = Template { hop: reverse, flags: flag::REVERSE, ..template };
                let number = FlowNumber { id: meta.id, entry: index, member: meta.member };
                // The name exists, because the plan has passed `plan::check`.
                let cc = self.controllers.build_for(cc, number).unwrap_or_else(|| Box::new(Reno::default()));
                let exact_ce = cc.needs_exact_ce_echo();
                let ecn = *ecn || exact_ce;
                let offer =
                    Offer::new(*mss, *receive_window, self.plan.receive_buffer, self.plan.receive_memory);
                let config = Config {
                    template,
                    mss: *mss as u16,
                    initial_segments: *initial_window,
                    ecn,
                    pacing: *pacing,
                    offer,
                    seed: random.bits(),
                };
                let measure_from = Time::ZERO + self.plan.warmup;
                let mut sender = Sender::new(config, app, cc, measure_from);
                if self.plan.probes.acks.contains(&index) {
                    sender.acks = Some(Box::new(AckRecorder::new(meta.id, self.ack_log.clone())));
                }
                if meta.is_sampled {
                    sender.rtts.histogram = Histogram::new();
                }
                Body::Tcp(Box::new(Tcp {
                    sender,
                    receiver: Receiver::new(back, ecn, exact_ce, offer.opening()),
                    delays: Delays::default(),
                }))
            }
            TransportPlan::Udp { rate, packet } => Body::Udp(Box::new(Udp {
                template: Template { flags: flag::UDP, ..template },
                size: *packet as u16,
                rate: *rate,
                next: self.now,
                stop: app.stop(),
                sent: 0,
                received: 0,
                delivered: 0,
            })),
            TransportPlan::Stack(stack) => {
                let mut random = Random::new(self.plan.seed, Stream::Flow.of(meta.id as u64));
                let number = FlowNumber { id: meta.id, entry: index, member: meta.member };
                let (seed, controllers) = (random.bits(), self.controllers);
                let name = &plan.flow_name(meta.member);
                let requests = Requests::new(&plan.app, random.bits(), app.stop());
                let setup = FlowSetup { stack, app, requests, seed, flow: number, name, controllers };
                self.stack_flow(self.transports.build(setup), meta, template, reverse)
            }
            // This branch is never reached, because `plan::check` rejects programs.
            TransportPlan::Program(_) => self.stack_flow(None, meta, template, reverse),
        }
    }

    /// Builds a flow of an external transport. If `transport` is `None`, the flow sends nothing.
    fn stack_flow(
        &self,
        transport: Option<Box<dyn Transport>>,
        meta: &Meta,
        template: Template,
        reverse: u32,
    ) -> Body {
        let mut rtts = RttStats::new(Time::ZERO + self.plan.warmup);
        if meta.is_sampled {
            rtts.histogram = Histogram::new();
        }
        let forward = Template { flags: flag::UDP, ..template };
        let back = Template { hop: reverse, flags: flag::UDP | flag::REVERSE, ..template };
        Body::Stack(Box::new(StackFlow::new(transport, forward, back, rtts)))
    }

    /// Runs `act` on a flow. Then forwards the packets that the flow has sent, schedules the flow's events, and ends
    /// the flow if it has finished.
    #[inline]
    pub(super) fn with_flow(&mut self, slot: u32, act: impl FnOnce(&mut Flow, &mut Io<'_>)) {
        let flow = &mut self.flows[slot];
        let mut io = Io { now: self.now, packets: &mut self.packets, out: &mut self.outbox };
        act(flow, &mut io);
        let (timer, send) = flow.wakes(self.now);
        if timer < flow.timer_at {
            flow.timer_at = timer;
            self.events.push(timer, Kind::Timer, slot);
        }
        if send < flow.send_at {
            flow.send_at = send;
            self.events.push(send, Kind::Send, slot);
        }
        let finished = flow.is_finished();
        if self.captures.is_some() {
            self.capture_departures(slot);
        }
        for k in 0..self.outbox.len() {
            let packet = self.outbox[k];
            let p = self.packets.get(packet);
            let meta = &mut self.flows[slot].meta;
            meta.sent_bytes += u64::from(p.size);
            meta.signal_bytes += u64::from(self.packets.signal_bytes(p));
            let link = self.paths.link(p.hop);
            self.forward(link, packet);
        }
        self.outbox.clear();
        if finished {
            self.end_flow(slot);
        }
    }

    /// Handles a timer event of a flow. When an ACK postpones the flow's deadline, the pending event keeps its earlier
    /// time. Most timer events therefore occur before the deadline. If the deadline has not been reached yet, the
    /// function only schedules a new event for it.
    pub(super) fn flow_timer(&mut self, slot: u32) {
        let is_live = self.flows.is_live(slot);
        let flow = &mut self.flows[slot];
        if flow.timer_at != self.now || !is_live {
            return;
        }
        flow.timer_at = Time::NEVER;
        self.with_flow(slot, |flow, io| flow.on_timer(io));
    }

    pub(super) fn flow_send(&mut self, slot: u32) {
        let is_live = self.flows.is_live(slot);
        let flow = &mut self.flows[slot];
        if flow.send_at != self.now || !is_live {
            return;
        }
        flow.send_at = Time::NEVER;
        self.with_flow(slot, |flow, io| flow.on_send(io));
    }

    /// Writes the flow's row and frees its slot.
    fn end_flow(&mut self, slot: u32) {
        self.record_flow(slot, true);
        self.flows.free(slot);
        // Take the scoreboard now, because the scoreboard of a long flow is large. Otherwise its memory would stay in use
        // until another flow takes the slot.
        let flow = &mut self.flows[slot];
        flow.timer_at = Time::NEVER;
        flow.send_at = Time::NEVER;
        if let Body::Tcp(tcp) = &mut flow.body {
            let board = std::mem::take(&mut tcp.sender.flight.board);
            self.flows.keep_board(board);
        }
    }
}
