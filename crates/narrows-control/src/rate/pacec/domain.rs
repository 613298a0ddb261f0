//! The controller of a PACEC domain. It receives reports from all ports, and announcements of the flows that begin at
//! these ports. Once per control period Tc it computes every flow's rate and sends it to the flow's first port (PAC-1,
//! PAC-11).

use super::book::Book;
use super::fill::{Claim, Filler, UNBOUNDED};
use super::link::Link;
use super::params::{Mode, Params};
use super::utilisation::{self, Matrix};
use crate::rate::domain::{DomainController, Topology};
use crate::rate::{FlowIdentity, FlowKey, Message, PortId};
use crate::units::{Bytes, Rate, Span, Time};

/// After this many periods an unchanged rate is sent again, because the message may have been lost.
const REFRESH: u64 = 5;
/// A changed rate is sent only if it differs by more than 1 / `SAME` from the rate sent last.
const SAME: u64 = 1000;
/// A flow is announced every `idle_after` or every Tc, whichever is longer. After this many missed announcements, the
/// flow or its ingress is assumed to be gone.
const MISSED: u64 = 4;
/// Number of periods between two removals of unused destinations.
const FORGET: u64 = 100;
/// Number of periods in the utilisation matrix.
const MEMORY: usize = 20;

/// Rates of flows and newcomers.
type Grants<K> = (Vec<(K, Rate)>, Vec<(<K as FlowIdentity>::Host, Rate)>);

/// The controller.
pub struct Pacec<K: FlowIdentity = FlowKey> {
    /// The law of the domain. A single link may have a different law ([`Pacec::new`]).
    mode: Mode,
    /// Tc, the control period.
    period: Span,
    /// r_min, the minimum rate of a flow, bytes/s.
    floor: u64,
    /// A flow is removed if it was not announced for this time.
    kept: Span,
    /// The ports, sorted. All vectors with one entry per link have this order.
    ports: Vec<PortId>,
    links: Vec<Link>,
    matrix: Matrix,
    book: Book<K>,
    filler: Filler,
    claims: Vec<Claim>,
    /// Available capacity A_i(s), by link.
    available: Vec<u64>,
    /// In mode `equal`, the part of A_i(s) that was not granted to any flow, by link.
    spare: Vec<u64>,
    /// Sums over the flows, by path.
    paths: Vec<OfPath>,
    outbox: Vec<Grants<K>>,
    /// s, the number of periods so far.
    periods: u64,
    next: Time,
}

/// Sums over the flows of a path.
#[derive(Copy, Clone, Debug, Default)]
struct OfPath {
    /// Whether all links of the path are known. If not, the flows of the path get no rates.
    known: bool,
    /// Number of greedy flows, and number of all flows.
    greedy: u64,
    flows: u64,
    /// Index of the claim of the path's greedy flows.
    claim: usize,
    /// Sum of the last rates of all flows of the path, bytes/s.
    granted: u64,
    /// r_max, bytes/s: the rate of each of the path's flows in the modes `literal` and `equal`.
    share: u64,
}

impl<K: FlowIdentity> Pacec<K> {
    /// Returns a controller of these ports, without flows. Full packets are `mtu` bytes long.
    ///
    /// The first port determines the period for all ports. The first port that is not [`Mode::Incremental`] determines
    /// the mode. So a port whose counters do not separate classes of traffic can be incremental, while the other ports
    /// are [`Mode::Resolved`] or [`Mode::Equal`].
    pub fn new(ports: impl IntoIterator<Item = (PortId, Params)>, mtu: Bytes, now: Time) -> Self {
        let mut ports: Vec<_> = ports.into_iter().collect();
        ports.sort_by_key(|(port, _)| *port);
        ports.dedup_by_key(|(port, _)| *port);
        let of_all = ports.first().map(|(_, params)| params.clone()).unwrap_or_default();
        let mut modes = ports.iter().map(|(_, params)| params.mode);
        let domain = modes.find(|mode| *mode != Mode::Incremental).unwrap_or(Mode::Incremental);
        let kept = ports.iter().map(|(_, params)| params.idle_after).max().unwrap_or_default();
        let link = |(port, params): (PortId, Params)| {
            let mode = match (domain, params.mode) {
                (Mode::Literal, _) | (_, Mode::Literal) => domain,
                (_, own) => own,
            };
            (port, Link::new(Params { sample: of_all.sample, samples: of_all.samples, mode, ..params }))
        };
        let (ports, links): (Vec<_>, Vec<_>) = ports.into_iter().map(link).unzip();
        Pacec {
            mode: domain,
            period: of_all.period(),
            floor: of_all.floor(mtu).as_bytes_per_sec(),
            kept: kept.max(of_all.period()).scale(MISSED, 1),
            matrix: Matrix::new(ports.len(), MEMORY),
            book: Book::new(ports.len(), of_all.max_flows.saturating_mul(4)),
            filler: Filler::default(),
            claims: Vec::new(),
            available: vec![0; ports.len()],
            spare: Vec::new(),
            paths: Vec::new(),
            outbox: vec![Grants::<K>::default(); ports.len()],
            periods: 0,
            next: now + of_all.period(),
            ports,
            links,
        }
    }

    /// Returns the number of flows that the controller knows.
    pub fn flows(&self) -> usize {
        self.book.flows().len()
    }

    /// Returns a flow's rate according to the last update.
    pub fn granted(&self, key: &K) -> Option<Rate> {
        self.book.get(key).map(|flow| Rate::from_bytes_per_sec(flow.granted))
    }

    /// Returns the utilisation I of a port's link, `ago` periods before the last period (PAC-17).
    pub fn utilisation(&self, port: PortId, ago: usize) -> Option<f64> {
        self.matrix.get(self.link(port)? as usize, ago)
    }

    /// Returns the available capacity A of a port's link at the last update (PAC-18). In literal mode, returns the
    /// residual capacity.
    pub fn available(&self, port: PortId) -> Option<Rate> {
        self.available.get(self.link(port)? as usize).map(|rate| Rate::from_bytes_per_sec(*rate))
    }

    fn link(&self, port: PortId) -> Option<u32> {
        self.ports.binary_search(&port).ok().map(|at| at as u32)
    }

    fn on_flow(
        &mut self,
        now: Time,
        from: u32,
        (key, begun, demand): (K, bool, Option<Rate>),
        network: &dyn Topology<K>,
        out: &mut Vec<(PortId, Message<K>)>,
    ) {
        if !begun {
            return self.book.end(&key, from);
        }
        let hops: Vec<u32> = network.path(&key).into_iter().filter_map(|port| self.link(port)).collect();
        // The ports of the first links of a path may have no agent or no sources.
        let begins = |hop: &&u32| self.links.get(**hop as usize).is_some_and(Link::is_edge);
        let ingress = hops.iter().find(begins).copied();
        if ingress == Some(from) {
            self.book.announce(now, key, from, hops, demand);
        } else if let Some(port) = self.ports.get(from as usize) {
            // The flow begins at another port, or its route is unknown. In both cases, this port must not limit the
            // flow.
            let (flows, newcomers) = (vec![(key, Rate::MAX)], Vec::new());
            out.push((*port, Message::Grants { port: *port, flows, newcomers }));
        }
    }

    /// Computes the rates at the end of a period.
    fn update(&mut self, now: Time) {
        self.periods += 1;
        self.book.expire(now, self.kept);
        if self.periods.is_multiple_of(FORGET) {
            self.book.expire_destinations(now);
        }
        self.matrix.push(self.links.iter_mut().map(Link::end_period));
        self.add_up();
        match self.mode {
            Mode::Literal | Mode::Equal => self.divide(),
            Mode::Resolved | Mode::Incremental => self.fill(),
        }
        self.collect();
    }

    /// Computes the available capacity of each link, and adds up the flows of each path.
    fn add_up(&mut self) {
        let (book, links) = (&self.book, &self.links);
        self.paths.clear();
        self.paths.extend((0..book.paths.len() as u32).map(|path| {
            let known = |hop: &u32| links.get(*hop as usize).is_some_and(Link::is_known);
            OfPath { known: book.paths.get(path).iter().all(known), ..OfPath::default() }
        }));
        for flow in book.flows() {
            if let Some(path) = self.paths.get_mut(flow.path as usize) {
                path.flows += 1;
                path.greedy += u64::from(flow.demand == UNBOUNDED);
                path.granted = path.granted.saturating_add(flow.granted);
            }
        }
        let mut granted = vec![0u64; links.len()];
        if links.iter().any(|link| link.mode() == Mode::Incremental) {
            for (at, path) in self.paths.iter().enumerate() {
                for hop in book.paths.get(at as u32) {
                    if let Some(sum) = granted.get_mut(*hop as usize) {
                        *sum = sum.saturating_add(path.granted);
                    }
                }
            }
        }
        for (at, (available, link)) in self.available.iter_mut().zip(links).enumerate() {
            let utilisation = self.matrix.get(at, 0).unwrap_or(0.0);
            *available = link.available(utilisation, granted.get(at).copied().unwrap_or(0));
        }
    }

    /// Computes max-min fair shares of the available capacity (PAC-18, PAC-19).
    fn fill(&mut self) {
        self.claims.clear();
        // All greedy flows of a path form one claim. Each other flow is a claim of its own.
        for (at, path) in self.paths.iter_mut().enumerate().filter(|(_, path)| path.greedy > 0) {
            path.claim = self.claims.len();
            self.claims.push(Claim { path: at as u32, demand: UNBOUNDED, flows: path.greedy });
        }
        let of_paths = self.claims.len();
        let bounded = self.book.flows().iter().filter(|flow| flow.demand != UNBOUNDED);
        self.claims.extend(bounded.map(|flow| Claim { path: flow.path, demand: flow.demand, flows: 1 }));
        self.filler.fill(&self.available, &self.book.paths, &self.claims, self.floor);
        let rates = self.filler.rates();
        let mut by_flow = rates.iter().skip(of_paths);
        for flow in self.book.flows_mut() {
            let rate = match flow.demand {
                UNBOUNDED => self.paths.get(flow.path as usize).and_then(|path| rates.get(path.claim)),
                _ => by_flow.next(),
            };
            flow.granted = rate.copied().unwrap_or(self.floor);
        }
    }

    /// Applies equation 9: every path divides the smallest capacity of its links among its flows (PAC-13, PAC-14). In
    /// literal mode each path divides the residual capacity as if no other path used its links. In mode `equal`, all
    /// flows on a link divide its capacity, so that paths with a common link do not exceed it (PAC-18a).
    fn divide(&mut self) {
        let mut flows_on = vec![0u64; self.links.len()];
        for (at, path) in self.paths.iter().enumerate() {
            for hop in self.book.paths.get(at as u32) {
                if let Some(flows) = flows_on.get_mut(*hop as usize) {
                    *flows += path.flows;
                }
            }
        }
        for (at, path) in self.paths.iter_mut().enumerate() {
            // If a link sends no reports, all flows on it divide its capacity (PAC-24).
            let share = |hop: &u32| {
                let at = *hop as usize;
                let link = self.links.get(at)?;
                let by_all = self.mode == Mode::Equal || link.is_blind();
                let flows = if by_all { flows_on.get(at).copied().unwrap_or(1) } else { path.flows };
                let available = Rate::from_bytes_per_sec(self.available.get(at).copied()?);
                Some(utilisation::flow_rate(available, flows).as_bytes_per_sec())
            };
            path.share = self.book.paths.get(at as u32).iter().filter_map(share).min().unwrap_or(0);
        }
        if self.mode == Mode::Equal {
            self.take_granted();
        }
        for flow in self.book.flows_mut() {
            let share = self.paths.get(flow.path as usize).map_or(0, |path| path.share);
            flow.granted = share.max(self.floor);
        }
    }

    /// Computes the part of each link's available capacity that was not granted to any flow.
    fn take_granted(&mut self) {
        self.spare.clone_from(&self.available);
        for (at, path) in self.paths.iter().enumerate() {
            let granted = path.share.max(self.floor).saturating_mul(path.flows);
            for hop in self.book.paths.get(at as u32) {
                if let Some(left) = self.spare.get_mut(*hop as usize) {
                    *left = left.saturating_sub(granted);
                }
            }
        }
    }

    /// Returns the rate for a newcomer on this path until the next update (PAC-22). In literal mode, this is r_max of
    /// the path. In the other modes, it is the unallocated remainder of the path. The rate is at least the floor.
    fn for_newcomer(&self, path: u32) -> u64 {
        let spare = match self.mode {
            Mode::Literal => self.paths.get(path as usize).map_or(0, |path| path.share),
            Mode::Equal => {
                let left = |hop: &u32| self.spare.get(*hop as usize).copied();
                self.book.paths.get(path).iter().filter_map(left).min().unwrap_or(0)
            }
            Mode::Resolved | Mode::Incremental => self.filler.spare(self.book.paths.get(path)),
        };
        spare.max(self.floor)
    }

    /// Puts into the outbox the rates that have changed, and the unchanged rates that were not sent for [`REFRESH`]
    /// periods.
    fn collect(&mut self) {
        let (turn, paths) = (self.periods, &self.paths);
        let known = |path: u32| paths.get(path as usize).is_some_and(|path| path.known);
        for flow in self.book.flows_mut() {
            let due = differs(flow.granted, flow.said) || turn - flow.said_in.min(turn) >= REFRESH;
            if due
                && known(flow.path)
                && let Some((flows, _)) = self.outbox.get_mut(flow.ingress as usize)
            {
                (flow.said, flow.said_in) = (Some(flow.granted), turn);
                flows.push((flow.key, Rate::from_bytes_per_sec(flow.granted)));
            }
        }
        for at in 0..self.ports.len() {
            self.collect_newcomers(at);
        }
    }

    fn collect_newcomers(&mut self, at: usize) {
        let Some(destinations) = self.book.destinations.get(at) else { return };
        let known = |path: u32| self.paths.get(path as usize).is_some_and(|path| path.known);
        let mut new = self.periods % REFRESH == at as u64 % REFRESH;
        let rates: Vec<Option<u64>> = destinations
            .values()
            .map(|to| {
                let rate = known(to.path).then(|| self.for_newcomer(to.path))?;
                new |= differs(rate, to.said);
                Some(rate)
            })
            .collect();
        if let Some(begun) = self.book.begun.get_mut(at) {
            new |= core::mem::take(begun);
        }
        // Send either all rates for newcomers or none. When an ingress gets any of these rates, it forgets how much its
        // newcomers have taken.
        if new
            && let Some(destinations) = self.book.destinations.get_mut(at)
            && let Some((_, newcomers)) = self.outbox.get_mut(at)
        {
            for ((address, to), rate) in destinations.iter_mut().zip(rates) {
                if let Some(rate) = rate {
                    to.said = Some(rate);
                    newcomers.push((*address, Rate::from_bytes_per_sec(rate)));
                }
            }
        }
    }
}

/// Returns whether the new rate differs enough from the rate that was sent last.
fn differs(rate: u64, said: Option<u64>) -> bool {
    said.is_none_or(|said| rate.abs_diff(said) > said / SAME)
}

impl<K: FlowIdentity> DomainController<K> for Pacec<K> {
    fn name(&self) -> &'static str {
        "pacec"
    }

    fn on_message(
        &mut self,
        now: Time,
        from: PortId,
        message: &Message<K>,
        network: &dyn Topology<K>,
        out: &mut Vec<(PortId, Message<K>)>,
    ) {
        let Some(at) = self.link(from) else { return };
        match message {
            Message::Report(report) if report.port == from => {
                let Some(link) = self.links.get_mut(at as usize) else { return };
                if !link.is_known() {
                    // The port or the controller has just started, so the controller asks the port for its flows.
                    out.push((from, Message::Poll));
                }
                link.on_report(report);
            }
            Message::Flow { port, key, begun, demand } if *port == from => {
                self.on_flow(now, at, (*key, *begun, *demand), network, out);
            }
            Message::Report(_)
            | Message::Flow { .. }
            | Message::Poll
            | Message::Congestion { .. }
            | Message::FlowAdvertisement { .. }
            | Message::Grants { .. } => {}
        }
    }

    fn on_timer(&mut self, now: Time, _network: &dyn Topology<K>, out: &mut Vec<(PortId, Message<K>)>) {
        if now < self.next {
            return;
        }
        self.next += self.period;
        if self.next <= now {
            self.next = now + self.period;
        }
        self.update(now);
        for (port, (flows, newcomers)) in self.ports.iter().zip(&mut self.outbox) {
            if !flows.is_empty() || !newcomers.is_empty() {
                let (flows, newcomers) = (core::mem::take(flows), core::mem::take(newcomers));
                out.push((*port, Message::Grants { port: *port, flows, newcomers }));
            }
        }
    }

    fn next_timer(&self) -> Time {
        if self.ports.is_empty() { Time::NEVER } else { self.next }
    }
}
