//! Captured packets: the conversion of the simulator's packets to those of real TCP.
//!
//! A packet in the simulator has the number of its segment, and its slot in the table of flows. The module records the
//! length of each segment when the sender sends it for the first time, and the name of each flow. So it knows byte
//! numbers and names wherever the packet is captured later, also after the flow has ended.

use narrows_control::units::Time;
use rustc_hash::FxHashMap;

use super::World;
use super::samples::flow_name;
use crate::capture::{Captured, FlowName, Place, Segment, Tap};
use crate::net::watch;
use crate::packet::{Packet, flag};
use crate::plan::{CapturePlan, TransportPlan};

/// The ports of clients, as Linux chooses them (`ip_local_port_range`).
const CLIENT_PORTS: std::ops::Range<u32> = 32_768..61_000;
/// The first port of servers.
const SERVER_PORT: u32 = 5001;
/// Bytes of the timestamp option with its padding, which the maximum segment size in a SYN includes.
const TIMESTAMP_BYTES: u32 = 12;

/// The captures of a run.
pub(super) struct Captures<'p> {
    tap: &'p mut dyn Tap,
    plan: &'p CapturePlan,
    /// The flows whose packets may be under way, by slot and generation.
    flows: FxHashMap<(u32, u16), Known>,
}

/// A flow whose packets may be captured.
struct Known {
    name: FlowName,
    source: u32,
    destination: u32,
    ports: (u16, u16),
    mss: Option<u16>,
    /// Sequence number of each segment, and of the next new segment.
    starts: Vec<u32>,
    /// The segment with the FIN.
    fin: Option<u32>,
}

impl Known {
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

    /// Returns the sequence number of a segment, or the number after the last segment that was sent.
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
            // The receiver sends no data. Its FIN follows the sender's FIN at once.
            let has_finished = !segment.fin && self.fin.is_some_and(|fin| p.ack > fin);
            segment.seq = if segment.syn { 0 } else { 1 + u32::from(has_finished) };
            segment.ack_number = if segment.syn { 1 } else { self.start(p.ack) };
            segment.sacks = p.sacks;
            for (block, from) in segment.sack.iter_mut().zip(&p.sack[..p.sacks as usize]) {
                *block = (self.start(from.start), self.start(from.end));
            }
        } else if !segment.syn {
            // In the simulator the last ACK has a FIN flag, too. In TCP only the last segment has it.
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
    fn pass(&mut self, at: Time, place: Place, p: &Packet) {
        let Some(flow) = self.flows.get(&(p.flow, p.generation)) else { return };
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
            header: p.header(),
            echo: p.echo(),
            segment: (!p.is(flag::UDP)).then(|| flow.segment(p)),
        };
        self.tap.on_packet(&captured);
    }
}

impl<'p> World<'p> {
    /// Begins to pass captured packets to `tap`. Without a capture in the plan, nothing is captured.
    pub(super) fn start_captures(&mut self, tap: &'p mut dyn Tap) {
        let Some(plan) = &self.plan.capture else { return };
        for (link, port) in self.ports.iter_mut().enumerate() {
            if plan.links.contains(&(link as u32)) || plan.hosts.contains(&port.to) {
                port.watch |= watch::CAPTURE;
            }
        }
        self.captures = Some(Box::new(Captures { tap, plan, flows: FxHashMap::default() }));
    }

    /// Captures a packet at the end of a link, and at the host behind it.
    pub(super) fn capture_arrival(&mut self, link: u32, packet: u32) {
        let Some(captures) = &mut self.captures else { return };
        let p = self.packets.get(packet);
        if captures.plan.links.contains(&link) {
            captures.pass(self.now, Place::Link(link), p);
        }
        let node = self.ports[link as usize].to;
        if self.paths.link(p.hop) == crate::net::HOST && captures.plan.hosts.contains(&node) {
            captures.pass(self.now, Place::Received(node), p);
        }
    }

    /// Records a packet that a flow has just sent, and captures it if the flow's host is captured.
    #[inline(never)]
    pub(super) fn capture_departure(&mut self, slot: u32, packet: u32) {
        let Some(captures) = &mut self.captures else { return };
        let p = self.packets.get(packet);
        let meta = &self.flows[slot].meta;
        let plan = &self.plan.flows[meta.plan as usize];
        let known = captures.flows.entry((p.flow, p.generation)).or_insert_with(|| {
            let (cc, mss) = match &plan.transport {
                TransportPlan::Tcp { cc, mss, .. } => {
                    let mss = u16::try_from(mss.saturating_add(TIMESTAMP_BYTES)).unwrap_or(u16::MAX);
                    (self.controllers.label(cc), Some(mss))
                }
                TransportPlan::Udp { .. } => ("udp".to_owned(), None),
            };
            let clients = CLIENT_PORTS.end - CLIENT_PORTS.start;
            let client = CLIENT_PORTS.start + meta.id % clients;
            let server = SERVER_PORT + meta.id / clients;
            Known {
                name: FlowName { id: meta.id, name: flow_name(plan, meta), cc },
                source: plan.from,
                destination: plan.to,
                ports: (client as u16, server as u16),
                mss,
                starts: vec![1],
                fin: None,
            }
        });
        known.record(p);
        let node = if p.is(flag::REVERSE) { plan.to } else { plan.from };
        if captures.plan.hosts.contains(&node) {
            captures.pass(self.now, Place::Sent(node), p);
        }
    }
}
