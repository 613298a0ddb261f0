//! Measures the cost of each rate controller per packet and per update, at a port with a hundred flows.
//!
//! Header-based controllers process the arrival and the departure of each data packet. All other controllers process
//! the arrival of each data packet, and an ACK for every second data packet.
//!
//! Run this benchmark with `cargo bench -p narrows-control --bench port`. It prints the median and the longest time of
//! several runs, and asserts nothing.

use std::time::{Duration, Instant};

use narrows_control::feedback::header::{Bdr, Header, Obp, Rcp};
use narrows_control::parameter::Values;
use narrows_control::rate::bdr::Report;
use narrows_control::rate::{
    FlowKey, PacketInfo, PortCounters, Proto, RateController, RateOption, TcpFlags, registry, xcp,
};
use narrows_control::units::{Bytes, Rate, Span, Time};

const PACKETS: u32 = 100_000;
const SIZE: Bytes = Bytes::new(1500);
const FLOWS: u32 = 100;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures with the machine's clock")]
fn now() -> Instant {
    Instant::now()
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    println!("{what:<52} median {:>10.3?}  worst {:>10.3?}", times[times.len() / 2], times[times.len() - 1]);
}

/// The header that the sender writes into packet `n`. Each flow sends one packet per 120 us.
fn header(kind: &str, n: u32) -> Header {
    match kind {
        "rcp" => Header::Rcp(Rcp { rate: Rate::MAX, rtt: Some(Span::from_millis(40)) }),
        "xcp" => Header::Xcp(xcp::Header { rtt: 40_000, x: 120_000, delta: i64::from(i32::MAX) }),
        "obp" => {
            let own = Some(Rate::from_bytes_per_sec(12_500_000));
            Header::Obp(Obp { own, available: Rate::MAX, capacity: Rate::MAX, rate: Rate::MAX })
        }
        _ if n.is_multiple_of(10) => {
            let report = Report { t_rep: Span::from_millis(40), packet_size: SIZE, ..Report::default() };
            Header::Bdr(Bdr { report, advice: None })
        }
        _ => Header::Member,
    }
}

/// Returns a packet of flow `n`. The packet contains data if `payload` is true.
fn packet(n: u32, payload: bool, syn: bool, ack: bool) -> PacketInfo {
    let host = |net: u32| core::net::IpAddr::V4(core::net::Ipv4Addr::from_bits(net + n));
    let key = FlowKey {
        saddr: host(0x0a00_0000),
        daddr: host(0x0b00_0000),
        sport: 40_000,
        dport: 443,
        proto: Proto::Tcp,
    };
    PacketInfo {
        key,
        size: if payload { SIZE } else { Bytes::new(60) },
        payload: if payload { Bytes::new(1448) } else { Bytes::ZERO },
        flags: TcpFlags { syn, ack, ..TcpFlags::default() },
        option: if payload { RateOption::Absent } else { RateOption::Unassigned },
        unlimited: None,
        seq: 1,
        timestamps: None,
        header: Header::None,
        vlan: 0,
        mark: 0,
    }
}

/// Passes the handshakes, data and ACKs of the flows to a controller with state per flow. Returns false if the
/// controller has no state per flow.
fn open_flows(controller: &mut RateController, at: Time, port: &PortCounters) -> bool {
    let RateController::PerFlow(controller) = controller else { return false };
    let mut actions = Vec::new();
    for n in 0..FLOWS {
        controller.on_data(at, &packet(n, false, true, false), port, &mut actions);
        controller.on_reverse(at, &packet(n, false, true, true), &mut actions);
        controller.on_data(at, &packet(n, false, false, true), port, &mut actions);
    }
    true
}

fn main() {
    for kind in registry::all().iter().map(|entry| entry.name) {
        let Ok(mut controller) = registry::build::<FlowKey>(kind, &Values::new(), 0, SIZE) else { continue };
        let mut port = PortCounters {
            capacity: Some(Rate::from_bits_per_sec(10_000_000_000)),
            limit_packets: [1000; 4],
            ..PortCounters::default()
        };
        let (mut at, mut actions) = (Time::ZERO, Vec::new());
        controller.on_start(at, &port, &mut actions);
        let by_flow = open_flows(&mut controller, at, &port);
        let shown: Vec<_> =
            (0..FLOWS).map(|n| (packet(n, true, false, true), packet(n, false, false, true))).collect();
        let mut sum = 0u64;
        let (mut packets, mut updates) = (Vec::new(), Vec::new());
        for _ in 0..11 {
            let start = now();
            for n in 0..PACKETS {
                at += Span::from_nanos(1_200);
                port.departed[1] += SIZE;
                match &mut controller {
                    RateController::PerFlow(controller) => {
                        let (data, ack) = &shown[(n % FLOWS) as usize];
                        controller.on_data(at, data, &port, &mut actions);
                        if n.is_multiple_of(2) {
                            sum += u64::from(controller.on_reverse(at, ack, &mut actions).is_some());
                        }
                        if at >= controller.next_timer() {
                            controller.on_timer(at, &port, &mut actions);
                        }
                        actions.clear();
                    }
                    RateController::Headers(controller) => {
                        let mut carried = header(kind, n);
                        controller.on_arrival(at, SIZE, &mut carried, &port);
                        controller.on_departure(at, SIZE, &mut carried, port.backlog());
                        sum = sum.wrapping_add(u64::from(carried.wire_bytes()));
                    }
                }
            }
            packets.push(start.elapsed() / PACKETS);
            let start = now();
            for _ in 0..1000 {
                at = controller.next_timer().max(at + Span::from_micros(10));
                controller.on_timer(at, &port, &mut actions);
                actions.clear();
            }
            updates.push(start.elapsed() / 1000);
        }
        let what = if by_flow {
            "a packet, half an ACK, its part of updates"
        } else {
            "a packet, arrival and departure"
        };
        print(&format!("{kind}: {what}"), packets);
        print(&format!("{kind}: an update"), updates);
        assert!(sum > 0 || by_flow, "the work was done");
    }
}
