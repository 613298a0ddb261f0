//! Measures the cost of PACEC's controller at scale, with 1,000 links and 100,000 flows on paths of 2 to 8 links.
//!
//! Run this benchmark with `cargo bench -p narrows-control --bench pacec`. It prints the median and the longest time of
//! several runs, and asserts nothing.

use std::time::{Duration, Instant};

use core::net::{IpAddr, Ipv4Addr};

use narrows_control::rate::domain::{DomainController, Topology};
use narrows_control::rate::pacec::fill::{Claim, Filler, Paths, UNBOUNDED};
use narrows_control::rate::pacec::{Mode, Pacec, Params};
use narrows_control::rate::{FlowKey, Message, PortId, Proto, Report};
use narrows_control::units::{Bytes, Rate, Span, Time};

const LINKS: u32 = 1_000;
const FLOWS: u32 = 100_000;
const CAPACITY: Rate = Rate::from_bits_per_sec(10_000_000_000);

#[expect(clippy::disallowed_methods, reason = "a benchmark measures with the machine's clock")]
fn now() -> Instant {
    Instant::now()
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    println!("{what:<64} median {:>10.3?}  worst {:>10.3?}", times[times.len() / 2], times[times.len() - 1]);
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// The paths of the flows. Each path has 2 to 8 links.
struct Routes(Vec<Vec<PortId>>);

impl Routes {
    fn new(routes: u32) -> Self {
        let mut random = Random(1);
        let route = |_| (0..2 + random.below(7)).map(|_| random.below(u64::from(LINKS)) as PortId).collect();
        Routes((0..routes).map(route).collect())
    }

    fn of(&self, flow: u32) -> &Vec<PortId> {
        &self.0[flow as usize % self.0.len()]
    }
}

impl Topology for Routes {
    fn path(&self, flow: &FlowKey) -> Vec<PortId> {
        match flow.saddr {
            IpAddr::V4(address) => self.of(address.to_bits()).clone(),
            IpAddr::V6(_) => Vec::new(),
        }
    }
}

/// Returns the demand of a flow. One in `greedy` flows has an unbounded demand.
fn demand(random: &mut Random, flow: u32, greedy: u32) -> u64 {
    if flow.is_multiple_of(greedy) { UNBOUNDED } else { random.below(1 << (14 + flow % 14)) }
}

fn fill(routes: u32, greedy: u32) {
    let (network, mut random) = (Routes::new(routes), Random(2));
    let mut paths = Paths::new(LINKS as usize);
    for route in &network.0 {
        paths.push(route);
    }
    let claims: Vec<Claim> = (0..FLOWS)
        .map(|n| Claim { path: n % routes, demand: demand(&mut random, n, greedy), flows: 1 })
        .collect();
    let capacities: Vec<u64> =
        (0..LINKS).map(|_| CAPACITY.as_bytes_per_sec() / 100 * (1 + random.below(100))).collect();
    let mut filler = Filler::default();
    let times = (0..21).map(|n| {
        let start = now();
        // A new floor in each run prevents the filler from reusing earlier results.
        filler.fill(&capacities, &paths, &claims, 60_000 + n);
        std::hint::black_box(filler.rates());
        start.elapsed()
    });
    let what = format!("fill: {routes} paths, one flow in {greedy} greedy, each with a claim");
    print(&what, times.collect());
}

/// The change between two updates.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Change {
    /// Nothing changes.
    Nothing,
    /// The capacity of every link changes.
    Links,
    /// The demand of one flow changes.
    OneFlow,
}

fn update(mode: Mode, routes: u32, greedy: u32, change: Change) {
    let (network, mut random) = (Routes::new(routes), Random(3));
    let params =
        Params { mode, max_flows: FLOWS as usize, idle_after: Span::from_secs(3600), ..Params::default() };
    let mut pacec = Pacec::new((0..LINKS).map(|port| (port, params.clone())), Bytes::new(1500), Time::ZERO);
    let mut out = Vec::new();
    let (mut announced, start) = (Vec::new(), now());
    let key = |n: u32| {
        let host = |n: u32| IpAddr::V4(Ipv4Addr::from_bits(n));
        let (saddr, daddr) = (host(n), host(0x0b00_0000 + n % routes));
        FlowKey { saddr, daddr, sport: 1, dport: 2, proto: Proto::Tcp }
    };
    for n in 0..FLOWS {
        let key = key(n);
        let demand = demand(&mut random, n, greedy);
        let demand = (demand != UNBOUNDED).then(|| Rate::from_bytes_per_sec(demand));
        let port = network.of(n)[0];
        let message = Message::Flow { port, key, begun: true, demand };
        pacec.on_message(Time::ZERO, port, &message, &network, &mut out);
    }
    announced.push(start.elapsed() / FLOWS);
    let (mut reports, mut all, mut grants) = (Vec::new(), Vec::new(), 0);
    let background: Vec<u64> = (0..LINKS).map(|_| random.below(10_000_000)).collect();
    let mut departed: Vec<u64> = vec![0; LINKS as usize];
    for sample in 0..=105u64 {
        let at = Time::ZERO + Span::from_millis(10 * sample);
        let started = now();
        for port in 0..LINKS {
            let more = if change == Change::Links { random.below(10_000) } else { 0 };
            departed[port as usize] += background[port as usize] + more;
            let departed = Bytes::new(departed[port as usize]);
            let report = Report {
                port,
                at,
                capacity: CAPACITY,
                rated_share: CAPACITY,
                rated_arrived: Bytes::ZERO,
                rated_departed: Bytes::ZERO,
                departed,
                queued: Bytes::ZERO,
                departed_packets: 0,
                rated_queued: Bytes::ZERO,
                rated_packets: (0, 0),
                all_packets: (0, 0),
                period: params.sample,
            };
            pacec.on_message(at, port, &Message::Report(report), &network, &mut out);
        }
        reports.push(started.elapsed() / LINKS);
        if change == Change::OneFlow {
            let (key, demand) = (key(7), Some(Rate::from_bytes_per_sec(100_000 + sample)));
            let port = network.of(7)[0];
            let message = Message::Flow { port, key, begun: true, demand };
            pacec.on_message(at, port, &message, &network, &mut out);
        }
        out.clear();
        if pacec.next_timer() <= at {
            let started = now();
            pacec.on_timer(at, &network, &mut out);
            all.push(started.elapsed());
            for (_, message) in out.drain(..) {
                grants += if let Message::Grants { flows, .. } = message { flows.len() } else { 0 };
            }
        }
    }
    println!(
        "{mode:?}, {routes} paths, one flow in {greedy} greedy, {} flows, changes: {change:?}:",
        pacec.flows()
    );
    print("  a flow announced", announced);
    print("  a report", reports);
    let periods = all.len();
    print("  an update, with its messages", all);
    println!("  {} rates sent per update", grants / periods.max(1));
}

fn main() {
    for (routes, greedy) in [(2_000, 10), (2_000, 1), (FLOWS, 10), (FLOWS, 1)] {
        fill(routes, greedy);
    }
    for mode in [Mode::Resolved, Mode::Incremental, Mode::Literal] {
        update(mode, 2_000, 10, Change::Links);
    }
    for routes in [2_000, FLOWS] {
        for change in [Change::Nothing, Change::Links, Change::OneFlow] {
            update(Mode::Resolved, routes, 10, change);
        }
    }
}
