//! A fluid network for tests: the ports and the controller of this module, sources that follow their rates at once,
//! and messages with delay and loss. Time advances in steps of Ts, the time between two reports. Each link sends at
//! its capacity and queues the rest.

use core::net::{IpAddr, Ipv4Addr};

use super::{Pacec, PacecPort, Params};
use crate::feedback::header::Header;
use crate::rate::domain::{DomainController, Topology};
pub(super) use crate::rate::kit::testing::{ACK, FIN, SYN, SYN_ACK};
use crate::rate::{
    Action, Admission, FlowKey, Message, PacketInfo, PerFlowController, PortCounters, PortId, Proto,
    RateOption, Report, TcpFlags,
};
use crate::units::{Bytes, Rate, Span, Time};

pub(super) const MTU: Bytes = Bytes::new(1500);

pub(super) fn mbit(rate: f64) -> Rate {
    Rate::from_f64(rate * 125_000.0)
}

/// Returns the key of flow `n`. All flows together have a hundred destinations.
pub(super) fn key(n: u32) -> FlowKey {
    let host = |n: u32| IpAddr::V4(Ipv4Addr::from_bits(n));
    let (saddr, daddr) = (host(0x0a00_0000 + n), host(0x0b00_0000 + n % 100));
    FlowKey { saddr, daddr, sport: 40_000, dport: 443, proto: Proto::Tcp }
}

pub(super) fn packet(key: FlowKey, size: Bytes, flags: TcpFlags, option: RateOption) -> PacketInfo {
    let payload = if flags.syn { Bytes::ZERO } else { size };
    PacketInfo {
        key,
        size,
        payload,
        flags,
        option,
        unlimited: None,
        seq: 0,
        timestamps: None,
        header: Header::None,
        vlan: 0,
        mark: 0,
    }
}

/// Returns the first report of a port.
pub(super) fn report(port: PortId, capacity: Rate) -> Report {
    Report {
        port,
        at: Time::ZERO,
        capacity,
        rated_share: capacity,
        rated_arrived: Bytes::ZERO,
        rated_departed: Bytes::ZERO,
        departed: Bytes::ZERO,
        queued: Bytes::ZERO,
        departed_packets: 0,
        rated_queued: Bytes::ZERO,
        rated_packets: (0, 0),
        all_packets: (0, 0),
        period: Span::from_millis(10),
    }
}

/// Routes of flows by number.
#[derive(Debug, Default)]
pub(super) struct Routes(pub(super) Vec<(FlowKey, Vec<PortId>)>);

impl Topology for Routes {
    fn path(&self, flow: &FlowKey) -> Vec<PortId> {
        self.0.iter().find(|(key, _)| key == flow).map(|(_, path)| path.clone()).unwrap_or_default()
    }
}

pub(super) struct Port {
    pub(super) control: PacecPort,
    pub(super) counters: PortCounters,
    /// Rate of other traffic on this link, which does not follow rates.
    pub(super) background: Rate,
    /// Whether the link's reports are lost.
    pub(super) lost: bool,
}

pub(super) struct Source {
    pub(super) key: FlowKey,
    pub(super) rate: Rate,
    /// Rate of the data that the source has to send.
    pub(super) demand: Rate,
    /// Whether the flow has not begun yet, or has ended.
    pub(super) off: bool,
}

/// Ports are numbered from 1, flows from 0.
pub(super) struct Network {
    pub(super) params: Params,
    pub(super) now: Time,
    pub(super) domain: Pacec,
    pub(super) ports: Vec<Port>,
    pub(super) sources: Vec<Source>,
    pub(super) routes: Routes,
    /// Delay of a message in either direction.
    delay: Span,
    to_domain: Vec<(Time, PortId, Message)>,
    to_port: Vec<(Time, PortId, Message)>,
}

impl Network {
    /// Returns a network of links with these capacities in Mbit/s, and of flows over these ports. The flows begin when
    /// [`begin`](Network::begin) is called.
    pub(super) fn new(params: Params, links: &[f64], paths: &[&[PortId]], delay: Span) -> Self {
        let port = |(at, capacity): (usize, &f64)| Port {
            control: PacecPort::new(params.clone(), at as u32 + 1, MTU),
            counters: PortCounters { capacity: Some(mbit(*capacity)), ..PortCounters::default() },
            background: Rate::ZERO,
            lost: false,
        };
        let source = |n: usize| Source { key: key(n as u32), rate: Rate::ZERO, demand: Rate::MAX, off: true };
        let mut network = Network {
            now: Time::ZERO,
            domain: Pacec::new((1..=links.len() as u32).map(|p| (p, params.clone())), MTU, Time::ZERO),
            ports: links.iter().enumerate().map(port).collect(),
            sources: (0..paths.len()).map(source).collect(),
            routes: Routes(paths.iter().enumerate().map(|(n, p)| (key(n as u32), p.to_vec())).collect()),
            delay,
            to_domain: Vec::new(),
            to_port: Vec::new(),
            params,
        };
        for at in 0..links.len() {
            let mut actions = Vec::new();
            let port = &mut network.ports[at];
            port.control.on_start(Time::ZERO, &port.counters, &mut actions);
            network.act(at as u32 + 1, actions);
        }
        network.deliver();
        network
    }

    /// Replaces the controller, as after a failure, by a new one without state.
    pub(super) fn restart_controller(&mut self) {
        let ports = (1..=self.ports.len() as u32).map(|p| (p, self.params.clone()));
        self.domain = Pacec::new(ports, MTU, self.now);
        self.to_domain.clear();
    }

    fn path(&self, n: usize) -> Vec<PortId> {
        self.routes.path(&self.sources[n].key)
    }

    /// Begins a flow with a handshake that takes no time and no bytes.
    pub(super) fn begin(&mut self, n: usize) {
        self.sources[n].off = false;
        self.data(n, SYN, Bytes::ZERO);
        self.reverse(n, SYN_ACK);
    }

    pub(super) fn end(&mut self, n: usize) {
        self.data(n, FIN, Bytes::ZERO);
        self.sources[n].off = true;
    }

    fn data(&mut self, n: usize, flags: TcpFlags, size: Bytes) {
        let option = if flags.syn { RateOption::Unassigned } else { RateOption::Absent };
        let packet = packet(self.sources[n].key, size, flags, option);
        for id in self.path(n) {
            let (mut actions, port) = (Vec::new(), &mut self.ports[id as usize - 1]);
            match port.control.on_data(self.now, &packet, &port.counters, &mut actions) {
                Admission::Queue(leaf) => {
                    port.counters.arrived[leaf as usize] += size;
                    port.counters.queued[leaf as usize] += size;
                }
                Admission::Drop => panic!("PACEC drops nothing"),
            }
            self.act(id, actions);
        }
    }

    fn reverse(&mut self, n: usize, flags: TcpFlags) {
        let mut packet = packet(self.sources[n].key, Bytes::ZERO, flags, RateOption::Unassigned);
        for id in self.path(n).into_iter().rev() {
            let mut actions = Vec::new();
            let answer = self.ports[id as usize - 1].control.on_reverse(self.now, &packet, &mut actions);
            if let Some(rate) = answer {
                packet.option = RateOption::Assigned(rate);
            }
            self.act(id, actions);
        }
        if let RateOption::Assigned(rate) = packet.option {
            self.sources[n].rate = rate;
        }
    }

    /// Advances time by one sample.
    pub(super) fn step(&mut self) {
        let ts = self.params.sample;
        self.now += ts;
        for n in 0..self.sources.len() {
            let source = &self.sources[n];
            let size = source.rate.min(source.demand).bytes_in(ts);
            if !source.off && size > Bytes::ZERO {
                self.data(n, ACK, size);
                self.reverse(n, ACK);
            }
        }
        for at in 0..self.ports.len() {
            self.ports[at].pass(ts);
            let (mut actions, port) = (Vec::new(), &mut self.ports[at]);
            if port.control.next_timer() <= self.now {
                port.control.on_timer(self.now, &port.counters, &mut actions);
            }
            self.act(at as u32 + 1, actions);
        }
        self.deliver();
        if self.domain.next_timer() <= self.now {
            let mut out = Vec::new();
            self.domain.on_timer(self.now, &self.routes, &mut out);
            self.send(out);
            self.deliver();
        }
    }

    /// Advances time by one control period.
    pub(super) fn period(&mut self) {
        (0..self.params.samples).for_each(|_| self.step());
    }

    /// Returns the permitted rates of the sources.
    pub(super) fn rates(&self) -> Vec<u64> {
        self.sources.iter().map(|source| source.rate.as_bytes_per_sec()).collect()
    }

    pub(super) fn queued(&self) -> Bytes {
        self.ports.iter().flat_map(|port| port.counters.queued).sum()
    }

    fn act(&mut self, from: PortId, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::ToController(message) => {
                    let lost = self.ports[from as usize - 1].lost && matches!(message, Message::Report(_));
                    if !lost {
                        self.to_domain.push((self.now + self.delay, from, message));
                    }
                }
                Action::ToSource { flow, rate } => {
                    if let Some(source) = self.sources.iter_mut().find(|source| source.key == flow) {
                        source.rate = rate;
                    }
                }
                Action::Log { .. }
                | Action::State { .. }
                | Action::Record { .. }
                | Action::SetClass { .. } => {}
            }
        }
    }

    fn send(&mut self, out: Vec<(PortId, Message)>) {
        let due = self.now + self.delay;
        self.to_port.extend(out.into_iter().map(|(port, message)| (due, port, message)));
    }

    /// Delivers all messages that are due, and the answers that are due at once.
    fn deliver(&mut self) {
        loop {
            if let Some(at) = self.to_domain.iter().position(|(due, ..)| *due <= self.now) {
                let (_, from, message) = self.to_domain.remove(at);
                let mut out = Vec::new();
                self.domain.on_message(self.now, from, &message, &self.routes, &mut out);
                self.send(out);
            } else if let Some(at) = self.to_port.iter().position(|(due, ..)| *due <= self.now) {
                let (_, id, message) = self.to_port.remove(at);
                let (mut actions, port) = (Vec::new(), &mut self.ports[id as usize - 1]);
                port.control.on_message(self.now, &message, &port.counters, &mut actions);
                self.act(id, actions);
            } else {
                return;
            }
        }
    }
}

impl Port {
    /// Advances the link by one sample. The link serves every leaf in proportion to the leaf's queue.
    fn pass(&mut self, ts: Span) {
        let counters = &mut self.counters;
        let other = self.background.bytes_in(ts);
        counters.arrived[2] += other;
        counters.queued[2] += other;
        let there: Bytes = counters.queued.iter().copied().sum();
        let out = counters.capacity.unwrap_or(Rate::ZERO).bytes_in(ts).min(there);
        for leaf in 0..4 {
            let share = counters.queued[leaf].get() as u128 * out.get() as u128;
            let share = Bytes::new(share.checked_div(there.get().into()).unwrap_or(0) as u64);
            counters.queued[leaf] -= share;
            counters.departed[leaf] += share;
        }
    }
}
