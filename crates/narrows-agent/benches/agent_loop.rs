//! Measures the cost of one iteration of the switch agent's loop. The real loop and controller use a flow table in
//! plain memory. It has the layout of the table that the agent shares with the eBPF program (192 bytes per slot).
//!
//! `cargo bench -p narrows-agent --bench agent_loop [-- FLOWS...]` prints one line of JSON for each number of flows.
//! The benchmark asserts nothing. Times are CPU times.
//!
//! All flows are active in every tick of 10 ms. Each flow sends whole packets at its allocation, but every tenth flow
//! sends only at half of its allocation. The RTT is 20 ms. In each tick, each flow has a new sample of the RTT between
//! the switch and the sender, and one of the RTT between the switch and the receiver.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use narrows_agent::switch::core::{Port, Switch};
use narrows_agent::switch::table::{Flags, FlowTable, Head, Orders, Tags, Tail};
use narrows_control::feedback::code::RateCode;
use narrows_control::rate::aggregate::Aggregated;
use narrows_control::rate::brf::{Brf, Params};
use narrows_control::rate::{FlowKey, LEAVES, PortCounters, Proto};
use narrows_control::units::{Bytes, Rate, Span, Time};
use nix::time::{ClockId, clock_gettime};

const TICK: Span = Span::from_millis(10);
const HALF_RTT_US: u32 = 10_000;
const MTU: u64 = 1500;
/// At this rate, a flow sends one and a third packets per tick.
const BYTES_PER_SEC_PER_FLOW: u64 = 200_000;
const WARM_UP: Span = Span::from_secs(2);
const MEASURED: Span = Span::from_secs(6);

/// Number of bytes that are allocated at present.
static HELD: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator. This type only adds up sizes.
#[allow(unsafe_code, reason = "counts what the agent allocates")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// CPU time of this thread. Other programs affect it only through shared caches.
fn clock() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// A slot of three cache lines, with the layout of `struct nrw_slot` (bpf/include/maps.h).
#[repr(C, align(64))]
#[derive(Default)]
struct Slot {
    key: Cell<[u64; 5]>,
    data_us: Cell<u32>,
    flags: Cell<u32>,
    bytes: Cell<u64>,
    seq_next: Cell<u32>,
    missing: Cell<u32>,
    // Second cache line.
    last_ns: Cell<u64>,
    paired_seen: Cell<[u8; 8]>,
    rtt_receiver_us: Cell<u32>,
    rtt_sender_us: Cell<u32>,
    rtt_n: Cell<[u16; 2]>,
    waits: Cell<[u32; 4]>,
    marked_unlimited: Cell<u16>,
    marked_limited: Cell<u16>,
    passed: Cell<[u16; 2]>,
    code: Cell<u16>,
    leaf: Cell<u8>,
    port: Cell<u8>,
    /// `gate_us` in `struct nrw_slot`. In this field, the benchmark stores the bytes that a flow may send, but that do
    /// not fill a packet yet.
    credit: Cell<u32>,
    rtt_us: Cell<u32>,
    /// Third cache line, which only the eBPF program uses.
    belief: Cell<[u32; 16]>,
}
const _: () = assert!(size_of::<Slot>() == 192);

#[derive(Clone)]
struct Plane(Rc<[Slot]>);

impl Plane {
    fn slot(&self, slot: u32) -> &Slot {
        &self.0[slot as usize]
    }

    /// Opens a slot, as the eBPF program does after a handshake.
    fn open(&self, slot: u32, grant: RateCode) {
        let s = self.slot(slot);
        s.flags.set(Flags::LIVE.0 | Flags::RATED.0 | Flags::SENDER_SEEN.0 | Flags::RECEIVER_SEEN.0);
        s.rtt_receiver_us.set(HALF_RTT_US);
        s.rtt_sender_us.set(HALF_RTT_US);
        s.rtt_n.set([1, 1]);
        s.code.set(grant.to_bits());
    }

    /// Simulates the packets that all flows send during the time `span`.
    fn run(&self, now: Time, span: Span) {
        for (number, s) in self.0.iter().enumerate().filter(|(_, s)| s.flags.get() != 0) {
            let rate = RateCode::from_bits(s.code.get()).decode().unwrap_or(Rate::ZERO);
            let rate = if number % 10 == 0 { rate.mul_f64(0.5) } else { rate };
            let credit = u64::from(s.credit.get()) + rate.bytes_in(span).get();
            let packets = credit / MTU;
            s.credit.set((credit % MTU) as u32);
            s.bytes.set(s.bytes.get() + packets * MTU);
            s.last_ns.set(now.as_nanos());
            s.rtt_n.set(s.rtt_n.get().map(|n| n.wrapping_add(1)));
            s.marked_unlimited.set(s.marked_unlimited.get().wrapping_add(packets as u16));
        }
    }

    fn arrived(&self) -> Bytes {
        Bytes::new(self.0.iter().map(|s| s.bytes.get()).sum())
    }
}

impl FlowTable for Plane {
    fn capacity(&self) -> u32 {
        self.0.len() as u32
    }
    fn head(&self, slot: u32) -> Head {
        let s = self.slot(slot);
        let flags = Flags(s.flags.get());
        Head { live: flags.0 != 0, flags, bytes: s.bytes.get(), missing: s.missing.get() }
    }
    fn tail(&self, slot: u32) -> Tail {
        let s = self.slot(slot);
        let ([receiver_n, sender_n], [passed, passed_n]) = (s.rtt_n.get(), s.passed.get());
        Tail {
            last_ns: s.last_ns.get(),
            rtt_receiver: (s.rtt_receiver_us.get(), receiver_n),
            rtt_sender: (s.rtt_sender_us.get(), sender_n),
            marked_unlimited: s.marked_unlimited.get(),
            marked_limited: s.marked_limited.get(),
            passed: (passed, passed_n),
            code: s.code.get(),
        }
    }
    fn owner(&self, slot: u32) -> Option<(FlowKey, usize)> {
        let saddr = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + slot));
        let daddr = IpAddr::V4(Ipv4Addr::new(11, 0, 0, 1));
        Some((FlowKey { saddr, daddr, sport: 40_000, dport: 443, proto: Proto::Tcp }, 0))
    }
    fn tags(&self, _slot: u32) -> Tags {
        Tags::default()
    }
    fn order(&self, slot: u32, orders: Orders) {
        let s = self.slot(slot);
        s.code.set(orders.code.to_bits());
        s.leaf.set(orders.leaf as u8);
        s.rtt_us.set(orders.rtt_us);
    }
    fn release(&mut self, slot: u32) -> io::Result<()> {
        self.slot(slot).flags.set(0);
        Ok(())
    }
    fn confirm(&self, _slot: u32) {}
    fn begin_tick(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The CPU time of an iteration, and whether the iteration computed new allocations.
type Turn = (Duration, bool);

/// Median and 99th percentile of `turns`, in microseconds.
fn figures(turns: &[Duration]) -> [f64; 2] {
    let mut sorted = turns.to_vec();
    sorted.sort();
    let at = |part: usize| sorted.get(sorted.len() * part / 100).map_or(0.0, |d| d.as_secs_f64() * 1e6);
    [at(50), at(99)]
}

/// Returns the slots in random order, so that the controller does not store the flows in the order of their slots. On a
/// real switch, the order of the flows becomes random within hours, because flows come and go.
fn shuffled(flows: u32) -> Vec<u32> {
    let mut slots: Vec<u32> = (0..flows).collect();
    let mut state = 1u64;
    for at in (1..slots.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        slots.swap(at, (state >> 33) as usize % (at + 1));
    }
    slots
}

fn measure(flows: u32, order: &[u32], name: &str) {
    let capacity = Rate::from_bytes_per_sec(BYTES_PER_SEC_PER_FLOW * u64::from(flows));
    let plane = Plane((0..flows).map(|_| Slot::default()).collect());
    let before = HELD.load(Ordering::Relaxed);
    let counters =
        PortCounters { capacity: Some(capacity), limit_packets: [1000; LEAVES], ..PortCounters::default() };
    let params = Params { max_flows: flows as usize, ..Params::resolved() };
    let controller: Box<dyn Aggregated> = Box::new(Brf::new(params, 0, Bytes::new(MTU)));
    let port = Port::new(controller, counters);
    let mut switch = Switch::new(plane.clone(), vec![port]);
    let (mut now, mut asked) = (Time::from_nanos(5_000_000_000), Vec::new());
    switch.start(now, &mut asked);
    // Unconfirmed flows must not outnumber confirmed ones, so opening all flows takes several steps (BRF-104).
    let mut waiting = order;
    while !waiting.is_empty() {
        let (some, rest) = waiting.split_at(switch.work().live.max(32).min(waiting.len()));
        waiting = rest;
        let grant = switch.grants::<1>(0)[0];
        some.iter().for_each(|slot| plane.open(*slot, grant));
        switch.newcomers(now, some, &mut asked);
        now += Span::from_millis(1);
        switch.tick(now, &mut asked);
    }

    let (mut turns, mut ordered, mut reported) = (Vec::<Turn>::new(), 0, 0);
    let from = now + WARM_UP;
    let (mut next, mut last) = (now, now);
    let mut version = 0;
    while now < from + MEASURED {
        // `Runner::run` computes this time in the same way.
        let due = next.min(switch.next_timer()).max(last + Span::from_millis(1));
        (last, now) = (now, due);
        plane.run(now, now.since(last));
        let arrived = plane.arrived();
        for port in switch.ports_mut() {
            port.counters.arrived[1] = arrived;
        }
        asked.clear();
        let start = clock();
        switch.tick(now, &mut asked);
        let took = clock().saturating_sub(start);
        let after = switch.ports_mut()[0].controller.version();
        let changed = core::mem::replace(&mut version, after) != after;
        if now >= from {
            turns.push((took, changed));
            (ordered, reported) = (ordered + switch.work().ordered, reported + switch.work().reported);
        }
        while next <= now {
            next += TICK;
        }
    }
    let held = HELD.load(Ordering::Relaxed) - before;
    let all: Vec<Duration> = turns.iter().map(|(took, _)| *took).collect();
    let alloc: Vec<Duration> = turns.iter().filter(|(_, alloc)| *alloc).map(|(took, _)| *took).collect();
    let ([median, p99], [alloc_median, alloc_p99]) = (figures(&all), figures(&alloc));
    let per_turn = |sum: usize| sum as f64 / turns.len().max(1) as f64;
    println!(
        "{{\"flows\": {flows}, \"records\": \"{name}\", \"turns\": {}, \"median_us\": {median:.1}, \"p99_us\": {p99:.1}, \
         \"alloc_turns\": {}, \"alloc_median_us\": {alloc_median:.1}, \"alloc_p99_us\": {alloc_p99:.1}, \
         \"reported\": {:.0}, \"ordered\": {:.0}, \"bytes_per_flow\": {}, \"live\": {}}}",
        turns.len(),
        alloc.len(),
        per_turn(reported),
        per_turn(ordered),
        held / flows.max(1) as usize,
        switch.work().live,
    );
}

fn main() {
    let asked: Vec<u32> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    for flows in if asked.is_empty() { vec![1_000, 10_000, 100_000] } else { asked } {
        measure(flows, &(0..flows).collect::<Vec<_>>(), "in order");
        measure(flows, &shuffled(flows), "shuffled");
    }
}
