//! Captures simulated packets, and converts them to packets as a network would carry them.
//!
//! A packet in the simulator has a segment number, and the slot of its flow. A captured packet needs byte numbers and
//! the name of its flow. This module therefore records the length of each new segment and the name of each flow. When a
//! flow has ended, its records are kept, because packets of the flow may still be in the network.

use std::ops::ControlFlow;

use narrows_control::units::Time;
use rustc_hash::FxHashMap;

use super::World;
use crate::capture::{Captured, FlowName, Place, Segment, Tap};
use crate::flow::Meta;
use crate::net::{HOST, watch};
use crate::packet::{Packet, flag};
use crate::packets::Packets;
use crate::plan::{FlowPlan, TransportPlan};
use crate::transport::label;

/// The range from which Linux chooses the ports of clients (`ip_local_port_range`).
const CLIENT_PORTS: std::ops::Range<u32> = 32_768..61_000;
/// The first port of servers.
const SERVER_PORT: u32 = 5001;
/// Bytes of the timestamp option with its padding. The maximum segment size in a SYN counts these bytes as payload.
const TIMESTAMP_BYTES: u32 = 12;

/// The captures of a run.
pub(super) struct Captures<'p> {
    tap: Box<dyn Tap + 'p>,
    /// For each node: whether the packets that the node sends or receives are captured.
    is_captured: Vec<bool>,
    /// The flows whose packets may still be in the network. The key is (slot, generation). Each slot has at most two
    /// such flows.
    flows: FxHashMap<(u32, u16), Known>,
}

/// A flow whose packets may be captured.
struct Known {
    name: FlowName,
    source: u32,
    destination: u32,
    ports: (u16, u16),
    mss: Option<u16>,
    /// For each segment sent so far: the byte sequence number at which it starts. The last element is the number at
    /// which the next new segment will start.
    starts: Vec<u32>,
    /// The segment that carries the FIN.
    fin: Option<u32>,
}

impl Known {
    fn new(plan: &FlowPlan, meta: &Meta, cc: String) -> Self {
        let clients = CLIENT_PORTS.end - CLIENT_PORTS.start;
        let client = CLIENT_PORTS.start + meta.id % clients;
        let server = SERVER_PORT + meta.id / clients;
        let mss = match &plan.transport {
            TransportPlan::Tcp { mss, .. } => u16::try_from(mss.saturating_add(TIMESTAMP_BYTES)).ok(),
            TransportPlan::Udp { .. } | TransportPlan::Stack(_) | TransportPlan::Program(_) => None,
        };
        Known {
            name: FlowName { id: meta.id, name: plan.flow_name(meta.member), cc },
            source: plan.from,
            destination: plan.to,
            ports: (client as u16, server as u16),
            mss,
            starts: vec![1],
            fin: None,
        }
    }

    /// Records the length of a data segment that is sent for the first time.
    fn record(&mut self, p: &Packet) {
        let has_data = p.payload > 0 || p.is(flag::FIN);
        let is_new = p.seq as usize == self.starts.len() - 1 && self.fin.is_none();
        if p.is(flag::REVERSE | flag::SYN | flag::UDP) || !has_data || !is_new {
            return;
        }
        if p.is(flag::FIN) {
            self.fin = Some(p.seq);
        }
        let start = self.starts[p.seq as usize];
        self.starts.push(start.wrapping_add(u32::from(p.payload) + u32::from(p.is(flag::FIN))));
    }

    /// Returns the byte sequence number at which a segment starts. If the segment has not been sent yet, returns the
    /// number after the last byte sent.
    fn start(&self, segment: u32) -> u32 {
        self.starts.get(segment as usize).or(self.starts.last()).copied().unwrap_or(1)
    }

    /// Returns the TCP header of a packet.
    fn segment(&self, p: &Packet) -> Segment {
        let is_back = p.is(flag::REVERSE);
        let mut segment = Segment {
            syn: p.is(flag::SYN),
            ack: p.is(flag::ACK),
            fin: p.is(flag::FIN),
            rst: p.is(flag::RST),
            ece: p.is(flag::ECE),
            cwr: p.is(flag::CWR) || p.is(flag::SYN) && p.is(flag::ECE) && !is_back,
            timestamps: (p.ts, p.ts_echo),
            rate_code: p.is(flag::RATE).then_some(p.rate_code),
            mss: self.mss.filter(|_| p.is(flag::SYN)),
            ..Segment::default()
        };
        if is_back {
            // The receiver sends no data. It sends its own FIN as soon as the sender's FIN has arrived.
            let has_finished = !segment.fin && self.fin.is_some_and(|fin| p.ack > fin);
            segment.seq = if segment.syn { 0 } else { 1 + u32::from(has_finished) };
            segment.ack_number = if segment.syn { 1 } else { self.start(p.ack) };
            segment.sacks = p.sacks;
            for (block, from) in segment.sack.iter_mut().zip(&p.sack[..p.sacks as usize]) {
                *block = (self.start(from.start), self.start(from.end));
            }
        } else if !segment.syn {
            // In the simulator, the last ACK of the sender also has the FIN flag. In real TCP, only the last segment of
            // the stream has this flag.
            let is_last_ack = segment.fin && self.fin.is_some_and(|fin| p.seq > fin);
            segment.fin &= !is_last_ack;
            segment.seq = self.start(p.seq);
            segment.ack_number = 1 + u32::from(is_last_ack);
        }
        segment
    }
}

impl Captures<'_> {
    /// Passes a packet to the tap.
    fn pass(&mut self, at: Time, place: Place, p: &Packet, packets: &Packets) -> ControlFlow<()> {
        let Some(flow) = self.flows.get(&(p.flow, p.generation)) else { return ControlFlow::Continue(()) };
        let (client, server) = flow.ports;
        let is_back = p.is(flag::REVERSE);
        let captured = Captured {
            at,
            place,
            flow: &flow.name,
            source: if is_back { flow.destination } else { flow.source },
            destination: if is_back { flow.source } else { flow.destination },
            ports: if is_back { (server, client) } else { (client, server) },
            size: p.size,
            payload: p.payload,
            ecn: match (p.is(flag::CE), p.is(flag::ECT)) {
                (true, _) => 3,
                (false, true) => 2,
                (false, false) => 0,
            },
            header: packets.header(p),
            echo: p.echo(),
            copy: packets.custom(p).copied().filter(|_| is_back),
            segment: (!p.is(flag::UDP)).then(|| flow.segment(p)),
            contents: packets.contents(p),
        };
        self.tap.on_packet(&captured)
    }
}

impl<'p> World<'p> {
    /// Starts to capture packets and to pass them to `tap`. If the plan has no `capture`, or if this `capture` lists
    /// neither links nor hosts, no packets are captured.
    pub(super) fn start_captures(&mut self, tap: Box<dyn Tap + 'p>) {
        let Some(plan) = &self.plan.capture else { return };
        if plan.links.is_empty() && plan.hosts.is_empty() {
            return;
        }
        for &link in &plan.links {
            self.ports[link as usize].watch |= watch::CAPTURED_LINK;
        }
        let mut is_captured = vec![false; self.plan.nodes.len()];
        for &node in &plan.hosts {
            is_captured[node as usize] = true;
        }
        for port in self.ports.iter_mut().filter(|port| is_captured[port.to as usize]) {
            port.watch |= watch::CAPTURED_HOST;
        }
        self.captures = Some(Box::new(Captures { tap, is_captured, flows: FxHashMap::default() }));
    }

    /// Captures a packet at the end of a link, at the receiving host, or at both. `watch` says which.
    pub(super) fn capture_arrival(&mut self, link: u32, packet: u32, watch: u8) {
        let Some(captures) = &mut self.captures else { return };
        let p = self.packets.get(packet);
        let mut goes_on = ControlFlow::Continue(());
        if watch & watch::CAPTURED_LINK != 0 {
            goes_on = captures.pass(self.now, Place::Link(link), p, &self.packets);
        }
        if watch & watch::CAPTURED_HOST != 0 && self.paths.link(p.hop) == HOST && goes_on.is_continue() {
            goes_on =
                captures.pass(self.now, Place::Received(self.ports[link as usize].to), p, &self.packets);
        }
        if goes_on.is_break() {
            self.end_by_capture();
        }
    }

    /// Records the packets that a flow has just sent. Also captures them, if the plan captures packets at the sending
    /// host.
    #[cold]
    pub(super) fn capture_departures(&mut self, slot: u32) {
        let Some(captures) = &mut self.captures else { return };
        let meta = &self.flows[slot].meta;
        let plan = &self.plan.flows[meta.plan as usize];
        for &packet in &self.outbox {
            let p = self.packets.get(packet);
            if !captures.flows.contains_key(&(slot, p.generation)) {
                // Packets of the slot's previous flow may still be in the network. All older packets have left it.
                captures.flows.remove(&(slot, p.generation.wrapping_sub(2)));
                let cc = label(&plan.transport, self.controllers);
                captures.flows.insert((slot, p.generation), Known::new(plan, meta, cc));
            }
            let Some(known) = captures.flows.get_mut(&(slot, p.generation)) else { continue };
            known.record(p);
            let node = if p.is(flag::REVERSE) { plan.to } else { plan.from };
            if captures.is_captured[node as usize]
                && captures.pass(self.now, Place::Sent(node), p, &self.packets).is_break()
            {
                self.end_by_capture();
                return;
            }
        }
    }

    /// Ends the run. All events at the current time are still processed, but no more packets are captured.
    fn end_by_capture(&mut self) {
        self.end = self.now;
        self.captures = None;
    }
}
