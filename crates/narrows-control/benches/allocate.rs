//! Measures the cost of BRF at scale (BRF-103): one allocation to 100,000 flows, a change of one flow, and one packet.
//!
//! Run this benchmark with `cargo bench -p narrows-control --bench allocate`. It prints the median and the longest time
//! of several runs, and asserts nothing.

use std::time::{Duration, Instant};

use core::net::{IpAddr, Ipv4Addr};

use narrows_control::feedback::header::Header;
use narrows_control::rate::aggregate::Aggregated;
use narrows_control::rate::brf::{Brf, Params};
use narrows_control::rate::kit::demand_index::DemandIndex;
use narrows_control::rate::kit::subscriber::Share;
use narrows_control::rate::kit::waterfill;
use narrows_control::rate::{
    Action, FlowKey, PacketInfo, PerFlowController, PortCounters, Proto, RateOption, TcpFlags,
};
use narrows_control::units::{Bytes, Rate, Span, Time};

const FLOWS: u32 = 100_000;
const CAPACITY: Rate = Rate::from_bits_per_sec(100_000_000_000);

#[expect(clippy::disallowed_methods, reason = "a benchmark measures with the machine's clock")]
fn now() -> Instant {
    Instant::now()
}

/// Runs `work` several times on fresh inputs, and prints the time per operation. Each run has `per` operations.
fn report<I>(what: &str, per: u32, mut input: impl FnMut() -> I, mut work: impl FnMut(I)) {
    let mut times: Vec<Duration> = (0..11)
        .map(|_| {
            let input = input();
            let start = now();
            work(input);
            start.elapsed() / per
        })
        .collect();
    times.sort();
    println!("{what:<52} median {:>10.3?}  worst {:>10.3?}", times[5], times[10]);
}

/// Returns typical demands. One flow in ten is greedy. All other demands are random, and most are small.
fn demands() -> Vec<u64> {
    let mut state = 1u64;
    (0..FLOWS)
        .map(|i| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if i % 10 == 0 { waterfill::UNBOUNDED } else { (state >> 33) % (1 << (10 + i % 14)) }
        })
        .collect()
}

/// Returns a packet of flow `n`. Each flow has its own sender, and ten flows share a receiver.
fn packet(n: u32, payload: u64, flags: TcpFlags, option: RateOption) -> PacketInfo {
    let host = |n: u32| IpAddr::V4(Ipv4Addr::from_bits(n));
    let (saddr, daddr) = (host(0x0a00_0000 + n), host(0x0b00_0000 + n / 10));
    PacketInfo {
        key: FlowKey { saddr, daddr, sport: 40_000, dport: 443, proto: Proto::Tcp },
        size: Bytes::new(payload + 52),
        payload: Bytes::new(payload),
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

/// A port at which all flows are established.
struct Port {
    brf: Brf,
    counters: PortCounters,
    actions: Vec<Action>,
    at: Time,
}

impl Port {
    fn new(share: Share) -> Self {
        let params = Params { idle_after: Span::from_secs(60), share, ..Params::resolved() };
        let counters = PortCounters { capacity: Some(CAPACITY), ..PortCounters::default() };
        let mut port = Port {
            brf: Brf::new(params, 1, Bytes::new(1500)),
            counters,
            actions: Vec::new(),
            at: Time::ZERO,
        };
        port.brf.on_start(port.at, &port.counters, &mut port.actions);
        (0..FLOWS).for_each(|n| port.establish(n));
        port
    }

    fn establish(&mut self, n: u32) {
        let ack = TcpFlags { ack: true, ..TcpFlags::default() };
        let syn = TcpFlags { syn: true, ..TcpFlags::default() };
        self.data(&packet(n, 0, syn, RateOption::Unassigned));
        self.reverse(&packet(n, 0, TcpFlags { syn: true, ack: true, ..syn }, RateOption::Unassigned));
        self.data(&packet(n, 1448, ack, RateOption::Absent));
        self.actions.clear();
    }

    fn data(&mut self, packet: &PacketInfo) {
        self.brf.on_data(self.at, packet, &self.counters, &mut self.actions);
    }

    fn reverse(&mut self, packet: &PacketInfo) {
        self.brf.on_reverse(self.at, packet, &mut self.actions);
    }

    fn round(&mut self, packets: &[(PacketInfo, PacketInfo)]) {
        for (data, ack) in packets {
            self.data(data);
            self.reverse(ack);
        }
    }

    fn timer(&mut self) {
        self.at = self.brf.next_timer();
        self.brf.on_timer(self.at, &self.counters, &mut self.actions);
        self.actions.clear();
    }
}

fn main() {
    let demands = demands();
    report(
        "water-filling from scratch, 100,000 demands",
        1,
        || demands.clone(),
        |mut d| {
            std::hint::black_box(waterfill::level(CAPACITY.as_bytes_per_sec() / 1000, &mut d));
        },
    );
    let mut index = DemandIndex::default();
    demands.iter().for_each(|d| index.insert(*d));
    report(
        "one demand changed and the level found again",
        1000,
        || (),
        |()| {
            for i in 0..1000usize {
                index.remove(demands[i * 97]);
                index.insert(demands[i * 97]);
                std::hint::black_box(index.level(CAPACITY.as_bytes_per_sec() / 1000 + i as u64));
            }
        },
    );

    for (share, of) in [("flow", "100,000 flows"), ("receiver-address", "10,000 subscribers")] {
        println!("share = \"{share}\": {of}");
        at_port(share.parse().expect("a share"));
    }
}

/// Measures a port with 100,000 flows to 10,000 receivers.
fn at_port(share: Share) {
    let ack = TcpFlags { ack: true, ..TcpFlags::default() };
    let packets: Vec<_> = (0..FLOWS)
        .map(|n| (packet(n, 1448, ack, RateOption::Absent), packet(n, 0, ack, RateOption::Unassigned)))
        .collect();
    let mut port = Port::new(share);
    report("packet of 100,000 flows in turn, data and ACK", 2 * FLOWS, || (), |()| port.round(&packets));

    // Measures the timer that ends a window. This timer takes about 1000 times as long as any other timer.
    let mut worst = Vec::new();
    for _ in 0..5 {
        let mut longest = Duration::ZERO;
        for _ in 0..4 {
            port.round(&packets);
            let start = now();
            port.timer();
            longest = longest.max(start.elapsed());
        }
        worst.push(longest);
    }
    worst.sort();
    let flows =
        (0..FLOWS).filter(|n| port.brf.allocation(&packet(*n, 0, ack, RateOption::Absent).key).is_some());
    println!(
        "{:<52} median {:>10.3?}  worst {:>10.3?}  ({} flows)",
        "ALLOC: measure, classify, allocate, layer",
        worst[2],
        worst[4],
        flows.count()
    );
    let mut next = FLOWS;
    report(
        "newcomer among 100,000, handshake to allocation",
        100,
        || (),
        |()| {
            for _ in 0..100 {
                port.establish(next);
                next += 1;
            }
        },
    );
    let handles: Vec<_> = packets.iter().filter_map(|(data, _)| port.brf.handle(&data.key)).collect();
    report(
        "all decisions after a change of the capacity",
        1,
        || (),
        |()| {
            let told = port.counters.capacity.unwrap_or(CAPACITY);
            port.counters.capacity = Some(told.mul_f64(0.99));
            port.data(&packets[0].0);
            let at = port.at;
            handles.iter().for_each(|handle| {
                std::hint::black_box(port.brf.decide(at, *handle));
            });
        },
    );
}
