//! What RCP, XCP and BDR cost a port for each packet that carries their header, and for each update.
//!
//! `cargo bench -p narrows-control --bench headers`. Prints the median and the worst of some runs; asserts nothing.

use std::time::{Duration, Instant};

use narrows_control::feedback::header::{Bdr, Header, Rcp};
use narrows_control::rate::bdr::Report;
use narrows_control::rate::{PortCounters, registry, xcp};
use narrows_control::units::{Bytes, Rate, Span, Time};

const PACKETS: u32 = 100_000;
const SIZE: Bytes = Bytes::new(1500);

#[expect(clippy::disallowed_methods, reason = "a benchmark measures with the machine's clock")]
fn now() -> Instant {
    Instant::now()
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    println!("{what:<52} median {:>10.3?}  worst {:>10.3?}", times[times.len() / 2], times[times.len() - 1]);
}

/// A sender's header: packet `n` of flows that send one each 120 us.
fn header(kind: &str, n: u32) -> Header {
    match kind {
        "rcp" => Header::Rcp(Rcp { rate: Rate::MAX, rtt: Some(Span::from_millis(40)) }),
        "xcp" => Header::Xcp(xcp::Header { rtt: 40_000, x: 120_000, delta: i64::from(i32::MAX) }),
        _ if n.is_multiple_of(10) => {
            let report = Report { t_rep: Span::from_millis(40), packet_size: SIZE, ..Report::default() };
            Header::Bdr(Bdr { report, advice: None })
        }
        _ => Header::Member,
    }
}

fn main() {
    for kind in ["rcp", "xcp", "bdr"] {
        let none = serde::de::value::MapDeserializer::<_, serde::de::value::Error>::new(
            core::iter::empty::<(&str, f64)>(),
        );
        let Ok(mut controller) = registry::build(kind, none, 0, SIZE) else { continue };
        let mut port = PortCounters {
            capacity: Some(Rate::from_bits_per_sec(10_000_000_000)),
            limit_packets: [1000; 4],
            ..PortCounters::default()
        };
        let (mut at, mut actions) = (Time::ZERO, Vec::new());
        controller.on_start(at, &port, &mut actions);
        let mut sum = 0u64;
        let (mut packets, mut updates) = (Vec::new(), Vec::new());
        for _ in 0..11 {
            let start = now();
            for n in 0..PACKETS {
                at += Span::from_nanos(1_200);
                let mut carried = header(kind, n);
                controller.on_arrival(at, SIZE, &mut carried, &port);
                controller.on_departure(at, SIZE, &mut carried, port.backlog());
                port.departed[1] += SIZE;
                sum = sum.wrapping_add(u64::from(carried.wire_bytes()));
            }
            packets.push(start.elapsed() / PACKETS);
            let start = now();
            for _ in 0..1000 {
                at = controller.next_timer().max(at + Span::from_micros(10));
                controller.on_timer(at, &port, &mut actions);
            }
            updates.push(start.elapsed() / 1000);
        }
        print(&format!("{kind}: a packet, arrival and departure"), packets);
        print(&format!("{kind}: an update"), updates);
        assert!(sum > 0 || kind == "none", "the work was done");
    }
}
