//! Tests that the simulator allocates no memory per packet, and that the memory per flow and per packet in flight is
//! bounded.
#![allow(missing_docs)]

#[allow(dead_code, unreachable_pub)]
#[path = "networks/common.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use narrows_control::units::{Span, Time};
use narrows_sim::plan::{AppPlan, ControllerPlan, LimitPlan, Plan, TransportPlan};

use common::{fifo, flow, mbit, ms, packets, path, tcp};

/// Counts allocations and calls the system allocator.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// The number of bytes in use, and its peak since the last reset.
static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
/// The counters are global, so only one test may run at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn grow(bytes: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    let live = LIVE.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

fn shrink(bytes: usize) {
    LIVE.fetch_sub(bytes as u64, Ordering::Relaxed);
}

// SAFETY: every call goes to the system allocator unchanged.
#[allow(unsafe_code, reason = "a global allocator is an unsafe trait")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller meets the requirements of the system allocator's function.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller meets the requirements of the system allocator's function.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        shrink(layout.size());
        // SAFETY: the caller meets the requirements of the system allocator's function.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs the plan for this time. Returns the number of allocations and the number of packet-hops. Each row of the table
/// `events` allocates two names, which are not counted.
fn cost(mut plan: Plan, seconds: u64) -> (u64, u64) {
    plan.duration = Span::from_secs(seconds);
    plan.probes.interval = Span::ZERO;
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let results = narrows_sim::run(&plan, &AtomicBool::new(false)).expect("a valid plan");
    let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
    (made - 2 * results.table("events").map_or(0, |events| events.rows() as u64), results.counts.packet_hops)
}

fn two_flows(cc: &str) -> Plan {
    let mut plan = path(mbit(50), ms(20), fifo(packets(100)), 1);
    plan.flows = vec![flow(tcp(cc), AppPlan::Bulk), flow(tcp(cc), AppPlan::Bulk)];
    plan
}

fn under_brf() -> Plan {
    let mut plan = two_flows("brf");
    plan.rate_controllers = vec![ControllerPlan {
        kind: "brf".into(),
        link: 0,
        shape: None,
        capacity_is_configured: true,
        limit: LimitPlan { packets: Some(100), bytes: None },
        params: Default::default(),
        outages: Vec::new(),
    }];
    plan
}

#[test]
fn a_longer_run_does_not_allocate_more() {
    let _alone = ONE_AT_A_TIME.lock().expect("no test has panicked");
    for (name, plan) in [("cubic", two_flows("cubic")), ("bbr", two_flows("bbr")), ("brf", under_brf())] {
        let (short, few) = cost(plan.clone(), 10);
        let (long, many) = cost(plan, 20);
        assert!(many > few + 50_000, "{name}: {few} and {many} packet-hops");
        // In the second half of the longer run, a ring buffer or a table may still grow once or twice.
        assert!(long <= short + 40, "{name}: {short} allocations in 10 s, {long} in 20 s");
    }
}

/// Runs the plan, and returns the peak of the bytes in use.
fn peak(plan: &Plan) -> u64 {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    narrows_sim::run(plan, &AtomicBool::new(false)).expect("a valid plan");
    PEAK.load(Ordering::Relaxed) - before
}

/// Returns a plan with `n` connections. Each of them sends a segment from time to time.
fn idle_flows(n: u32) -> Plan {
    let mut plan = path(mbit(10_000), ms(20), fifo(LimitPlan::default()), 2);
    let mut flows = flow(tcp("cubic"), AppPlan::Limited { rate: mbit(1).mul_f64(0.02), on: None, off: None });
    flows.count = n;
    plan.flows = vec![flows];
    plan.probes.flows = false;
    plan
}

/// Returns a plan whose link is always full and has a delay of one second. As many packets are in flight as the link
/// sends in one second.
fn packets_in_flight(rate_mbit: u64) -> Plan {
    let mut plan = path(mbit(rate_mbit), ms(0), fifo(LimitPlan::default()), 1);
    plan.links[0].delay = vec![(Time::ZERO, ms(1_000))];
    plan.flows = vec![flow(TransportPlan::Udp { rate: mbit(rate_mbit), packet: 1500 }, AppPlan::Bulk)];
    plan.probes.interval = Span::ZERO;
    plan
}

#[test]
fn an_idle_flow_takes_less_than_two_kibibytes_and_a_packet_in_flight_less_than_200_bytes() {
    let _alone = ONE_AT_A_TIME.lock().expect("no test has panicked");
    // The memory of a flow includes its row in the results and the spare capacity of vectors.
    let flow = (peak(&idle_flows(32_768)) - peak(&idle_flows(1))) / 32_767;
    assert!(flow < 2048, "{flow} bytes for each idle flow");
    // A packet has 12,000 bits, so the two plans have 65,500 and 667 packets in flight.
    let packet = (peak(&packets_in_flight(786)) - peak(&packets_in_flight(8))) / 64_833;
    assert!(packet < 200, "{packet} bytes for each packet in flight");
}
