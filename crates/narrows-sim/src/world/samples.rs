//! Takes samples at fixed intervals. Also writes a row when a flow ends, and the remaining rows at the end of the run.
//!
//! The event loop calls `sample_event`. `record_flow` is called at the end of a flow, and `finish` at the end of the
//! run.

use narrows_control::congestion::INFINITE_SSTHRESH;
use narrows_control::units::{Bytes, Rate, Span, Time};

use super::{Results, World};
use crate::engine::Kind;
use crate::flow::{Body, Meta};
use crate::net::PortTotals;
use crate::packet::HEADER_BYTES;
use crate::plan::TransportPlan;
use crate::probe::{Histogram, row};
use crate::tcp::RttStats;
use crate::transport::{CONNECTION_LOST, label};

/// The kinds of Sample events: `REGULAR` takes samples, `MEASURE` starts the measurement interval, and `WATCH` looks for
/// the beginnings of phases (`triggers.rs`).
const REGULAR: u32 = 0;
const MEASURE: u32 = 1;
pub(super) const WATCH: u32 = 2;

fn bits(rate: Rate) -> f64 {
    rate.as_bits_per_sec()
}

/// The values of a flow for its row in the results.
#[derive(Default)]
struct Totals<'a> {
    acked_at: Option<Time>,
    received_at: Option<Time>,
    sent: u64,
    retransmits: u64,
    spurious: u64,
    timeouts: u64,
    /// RTT statistics; `None` if the transport measures no RTT.
    rtts: Option<&'a RttStats>,
    min_rtt: Option<Span>,
    /// Mean one-way delay, seconds.
    delay: Option<f64>,
    failure: Option<(Time, String)>,
}

impl<'a> Totals<'a> {
    fn of(body: &'a Body) -> Self {
        match body {
            Body::Tcp(tcp) => {
                let (s, c) = (&tcp.sender, &tcp.sender.counters);
                Totals {
                    acked_at: s.completed_at(),
                    received_at: tcp.receiver.completed_at,
                    sent: c.sent,
                    retransmits: c.retransmits,
                    spurious: c.spurious,
                    timeouts: c.timeouts,
                    rtts: Some(&s.rtts),
                    min_rtt: Some(s.flight.rtt.min).filter(|min| *min != Span::MAX),
                    delay: tcp.delays.mean(),
                    failure: None,
                }
            }
            Body::Udp(udp) => Totals { sent: udp.sent, ..Totals::default() },
            Body::Stack(stack) => {
                let state = stack.transport().state();
                Totals {
                    acked_at: state.acked_at,
                    received_at: state.received_at,
                    sent: stack.sent,
                    retransmits: state.lost_packets,
                    timeouts: state.timeouts,
                    rtts: Some(&stack.rtts),
                    min_rtt: state.min_rtt,
                    delay: stack.delays.mean(),
                    failure: state.failure,
                    ..Totals::default()
                }
            }
        }
    }
}

impl World<'_> {
    pub(super) fn start_probes(&mut self) {
        for &link in &self.plan.probes.links {
            self.ports[link as usize].sojourn = Histogram::new();
        }
        let interval = self.plan.probes.interval;
        if interval.as_nanos() > 0 {
            self.events.push(Time::ZERO + interval, Kind::Sample, REGULAR);
        }
        self.events.push(Time::ZERO + self.plan.warmup, Kind::Sample, MEASURE);
    }

    pub(super) fn sample_event(&mut self, which: u32) {
        if which == MEASURE {
            for flow in self.flows.live_mut() {
                flow.meta.delivered_at_start = flow.delivered();
            }
            for port in &mut self.ports {
                port.begin_measurement(self.now);
            }
            return;
        }
        if which == WATCH {
            return self.watch_event();
        }
        let interval = self.plan.probes.interval;
        self.events.push(self.now + interval, Kind::Sample, REGULAR);
        let from = self.now - interval;
        let seconds = interval.as_secs_f64();
        for &link in &self.plan.probes.links {
            let port = &mut self.ports[link as usize];
            let (departed, capacity) = port.take_sample(from, self.now);
            let (packets, bytes) = port.backlog(self.now);
            let s = &port.stats;
            self.recorder.link_samples.push(row![
                self.now.as_secs_f64(),
                link,
                departed as f64 * 8.0 / seconds,
                capacity * 8.0 / seconds,
                packets,
                bytes,
                s.dropped,
                s.marked,
                s.random_losses,
            ]);
        }
        for slot in self.flows.slots() {
            if self.flows.is_live(slot) && self.flows[slot].meta.is_sampled {
                self.sample_flow(slot, seconds);
            }
        }
        if self.plan.probes.traces {
            self.sample_traces();
        }
    }

    fn sample_flow(&mut self, slot: u32, seconds: f64) {
        let allocation = self.allocation(slot);
        let flow = &mut self.flows[slot];
        let delivered = flow.delivered();
        let t = self.now.as_secs_f64();
        let last = flow.meta.last;
        let goodput = (delivered - last.delivered) as f64 * 8.0 / seconds;
        let nan = f64::NAN;
        match &flow.body {
            Body::Tcp(tcp) => {
                let s = &tcp.sender;
                let sent = s.counters.sent_bytes;
                let ssthresh = if s.control.window.ssthresh >= INFINITE_SSTHRESH {
                    nan
                } else {
                    s.control.window.ssthresh as f64
                };
                self.recorder.flow_samples.push(row![
                    t,
                    flow.meta.id,
                    goodput,
                    (sent - last.sent_bytes) as f64 * 8.0 / seconds,
                    s.control.window.cwnd,
                    ssthresh,
                    s.control.window.pacing_rate.map(bits),
                    if s.flight.rtt.srtt.as_nanos() == 0 { nan } else { s.flight.rtt.srtt.as_secs_f64() },
                    if s.flight.rtt.srtt.as_nanos() == 0 { nan } else { s.flight.rtt.rttvar.as_secs_f64() },
                    if s.flight.rtt.last.as_nanos() == 0 { nan } else { s.flight.rtt.last.as_secs_f64() },
                    s.flight.board.in_flight(),
                    s.counters.retransmits,
                    allocation.map(bits),
                    s.recovery.state as u32,
                ]);
                flow.meta.last.sent_bytes = sent;
            }
            Body::Udp(udp) => {
                let sent = udp.sent * udp.size as u64;
                let rate = (sent - last.sent_bytes) as f64 * 8.0 / seconds;
                self.recorder.flow_samples.push(row![
                    t,
                    flow.meta.id,
                    goodput,
                    rate,
                    0u32,
                    nan,
                    bits(udp.rate),
                    nan,
                    nan,
                    nan,
                    0u32,
                    0u32,
                    allocation.map(bits),
                    0u32,
                ]);
                flow.meta.last.sent_bytes = sent;
            }
            Body::Stack(stack) => {
                let s = stack.transport().state();
                let in_packets = |bytes: Bytes| bytes.get() as f64 / s.datagram.get().max(1) as f64;
                let seconds_of = |span: Option<Span>| span.map(Span::as_secs_f64);
                self.recorder.flow_samples.push(row![
                    t,
                    flow.meta.id,
                    goodput,
                    (stack.sent_bytes - last.sent_bytes) as f64 * 8.0 / seconds,
                    s.window.map_or(0, |w| in_packets(w).round() as u32),
                    s.ssthresh.map(in_packets),
                    s.pacing_rate.map(bits),
                    seconds_of(s.srtt),
                    seconds_of(s.rttvar),
                    seconds_of(s.latest_rtt),
                    in_packets(s.in_flight).round() as u32,
                    s.lost_packets,
                    allocation.map(bits),
                    0u32,
                ]);
                flow.meta.last.sent_bytes = stack.sent_bytes;
            }
        }
        flow.meta.last.delivered = delivered;
    }

    fn sample_traces(&mut self) {
        let t = self.now.as_secs_f64();
        for flow in self.flows.live() {
            if !flow.meta.is_sampled {
                continue;
            }
            let name = self.flow_name(&flow.meta);
            let traces = &mut self.recorder.traces;
            let mut add = |key: &'static str, value: f64| traces.push(row![t, name.as_str(), key, value]);
            match &flow.body {
                Body::Tcp(tcp) => tcp.sender.control.cc.trace(&mut add),
                Body::Udp(_) => {}
                Body::Stack(stack) => stack.transport().trace(&mut add),
            }
        }
        for switch in &self.switches {
            let name = &self.plan.links[switch.link as usize].name;
            let traces = &mut self.recorder.traces;
            if let Some(controller) = &switch.controller {
                controller.trace(&mut |key, value| traces.push(row![t, name.as_str(), key, value]));
            }
        }
    }

    /// Returns the name of a flow in the results.
    pub(super) fn flow_name(&self, meta: &Meta) -> String {
        self.plan.flows[meta.plan as usize].flow_name(meta.member)
    }

    /// Writes the row of a flow that has ended, or that is still running at the end of the run.
    pub(super) fn record_flow(&mut self, slot: u32, ended: bool) {
        let flow = &self.flows[slot];
        let m = &flow.meta;
        let plan = &self.plan.flows[m.plan as usize];
        let name = self.flow_name(m);
        let nan = f64::NAN;
        let cc = label(&plan.transport, self.controllers);
        let begin = m.start.max(Time::ZERO + self.plan.warmup);
        let until = if ended { self.now.min(m.stop) } else { m.stop.min(self.end) };
        let measured = m.delivered_at_stop.unwrap_or(flow.delivered()).saturating_sub(m.delivered_at_start);
        let seconds = until.since(begin).as_secs_f64();
        let goodput = if seconds > 0.0 { measured as f64 * 8.0 / seconds } else { nan };
        let since_start = |t: Option<Time>| t.map(|t| t.since(m.start).as_secs_f64());
        // The ideal time (MET-71) is the sum of two RTTs and of the transmission time of all bytes at the bottleneck's
        // rate. One RTT is for the handshake, and one is from the first data to the last ACK. The two RTTs contain only
        // propagation delays, because the transmission times are already in the third term. No flow can therefore be
        // faster than the ideal.
        let headers = match &plan.transport {
            TransportPlan::Tcp { mss, .. } => {
                m.size.div_ceil(*mss as u64).saturating_mul(HEADER_BYTES as u64)
            }
            TransportPlan::Udp { .. } | TransportPlan::Stack(_) | TransportPlan::Program(_) => 0,
        };
        let wire = Bytes::new(m.size) + Bytes::new(headers);
        let ideal = m.empty.propagation.scale(2, 1) + m.empty.bottleneck.time_for(wire);
        let ideal = (m.size > 0).then(|| ideal.as_secs_f64());
        let totals = Totals::of(&flow.body);
        let rtts = totals.rtts;
        let n = rtts.map_or(0, |r| r.count);
        let mean = |sum: u64, n: u64| if n > 0 { sum as f64 / n as f64 / 1e9 } else { nan };
        let histogram = rtts.and_then(|r| r.histogram.as_ref());
        let q = |q: f64| histogram.map(|h| h.quantile(q));
        if let Some((at, reason)) = &totals.failure {
            let kind = format!("{CONNECTION_LOST}{reason}");
            self.recorder.events.push(row![at.as_secs_f64(), kind.as_str(), name.as_str(), f64::NAN]);
        }
        self.recorder.flows.push(row![
            m.id,
            name,
            cc,
            plan.name.as_str(),
            self.plan.nodes[plan.from as usize].as_str(),
            self.plan.nodes[plan.to as usize].as_str(),
            m.start.as_secs_f64(),
            ended.then(|| self.now.as_secs_f64()),
            m.size,
            since_start(totals.acked_at),
            since_start(totals.received_at),
            rtts.and(ideal),
            m.empty.rtt.as_secs_f64(),
            flow.delivered(),
            goodput,
            totals.sent,
            totals.retransmits,
            totals.spurious,
            totals.timeouts,
            rtts.map_or(nan, |r| mean(r.sum, n)),
            q(0.5),
            q(0.95),
            q(0.99),
            rtts.filter(|_| n > 0).map(|r| r.max.as_secs_f64()),
            rtts.map_or(nan, |r| mean(r.jitter_sum, n.saturating_sub(1))),
            totals.min_rtt.map(Span::as_secs_f64),
            m.sent_bytes,
            m.signal_bytes,
            totals.delay,
        ]);
        if let Some(h) = histogram {
            self.recorder.record_distribution("flow", m.id, "rtt", h);
        }
        if let Body::Stack(stack) = &flow.body {
            for (number, object) in stack.objects.iter().enumerate() {
                self.recorder.requests.push(row![
                    m.id,
                    number as u64,
                    object.requested_at.as_secs_f64(),
                    object.received_at.map(Time::as_secs_f64),
                    object.size.get(),
                ]);
            }
        }
    }

    fn record_link(&mut self, link: usize) {
        let port = &mut self.ports[link];
        let PortTotals { departed, capacity, seconds } = port.totals(self.now);
        let s = &port.stats;
        let n = s.sojourn_count as f64;
        let nan = f64::NAN;
        let q = |q: f64| port.sojourn.as_ref().map(|h| h.quantile(q));
        self.recorder.links.push(row![
            link as u32,
            self.plan.links[link].name.as_str(),
            capacity * 8.0 / seconds,
            departed / capacity,
            departed * 8.0 / seconds,
            s.offered,
            s.dropped,
            if s.offered > 0 { s.dropped as f64 / s.offered as f64 } else { nan },
            s.random_losses,
            s.marked,
            if n > 0.0 { s.sojourn_sum as f64 / n / 1e9 } else { nan },
            q(0.5),
            q(0.95),
            q(0.99),
            if n > 0.0 { s.sojourn_max as f64 / 1e9 } else { nan },
            s.sojourn_sum as f64 / 1e9 / seconds,
        ]);
        if let Some(h) = &port.sojourn {
            self.recorder.record_distribution("link", link as u32, "sojourn", h);
        }
    }

    /// Writes the remaining rows and returns the results.
    pub(super) fn finish(mut self) -> Results {
        for slot in self.flows.slots() {
            if self.flows.is_live(slot) {
                self.record_flow(slot, false);
            }
        }
        for link in 0..self.ports.len() {
            self.record_link(link);
        }
        for port in 0..self.switches.len() {
            self.record_signalling(port as u32);
        }
        let stopped = (self.end < Time::ZERO + self.plan.duration).then_some(self.end);
        self.recorder.acks = self.ack_log.take().into_table();
        Results { tables: self.recorder.into_tables(), counts: self.counts, stopped }
    }
}
