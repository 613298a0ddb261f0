//! Nothing is allocated per packet: a run twice as long carries twice the packets and allocates as often.
#![allow(missing_docs)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use narrows_control::units::Span;
use narrows_sim::plan::{AppPlan, ControllerPlan, LimitPlan, Plan};

use common::{fifo, flow, mbit, ms, packets, path, tcp};

/// Counts allocations and passes them on.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system allocator unchanged.
#[allow(unsafe_code, reason = "a global allocator is an unsafe trait")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's obligations are the system allocator's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations and packet-hops of a run of this length.
fn cost(mut plan: Plan, seconds: u64) -> (u64, u64) {
    plan.duration = Span::from_secs(seconds);
    plan.probes.interval = Span::ZERO;
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let results = narrows_sim::run(&plan, &AtomicBool::new(false)).expect("a valid plan");
    (ALLOCATIONS.load(Ordering::Relaxed) - before, results.counts.packet_hops)
}

fn two_flows(cc: &str) -> Plan {
    let mut plan = path(mbit(50), ms(20), fifo(packets(100)), 1);
    plan.flows = vec![flow(tcp(cc), AppPlan::Bulk), flow(tcp(cc), AppPlan::Bulk)];
    plan
}

fn under_brf() -> Plan {
    let mut plan = two_flows("brf");
    plan.controllers = vec![ControllerPlan {
        kind: "brf".into(),
        link: 0,
        shape: None,
        told: true,
        limit: LimitPlan { packets: Some(100), bytes: None },
        params: serde_json::Value::Null,
        outages: Vec::new(),
    }];
    plan
}

#[test]
fn a_longer_run_allocates_no_more() {
    for (name, plan) in [("cubic", two_flows("cubic")), ("bbr", two_flows("bbr")), ("brf", under_brf())] {
        let (short, few) = cost(plan.clone(), 10);
        let (long, many) = cost(plan, 20);
        assert!(many > few + 50_000, "{name}: {few} and {many} packet-hops");
        // A ring or a table may still grow once or twice.
        assert!(long <= short + 40, "{name}: {short} allocations in 10 s, {long} in 20 s");
    }
}
