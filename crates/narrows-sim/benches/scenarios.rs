//! The scenarios with which the speed of the simulator is measured. `scenarios NAME` runs one scenario once. It prints
//! the numbers of events, packets and flows, sums of completion times, and the peak memory. `scenarios` without a name
//! lists all scenarios.
//!
//! The caller measures the CPU time of this program. The program can therefore also run under `perf` and callgrind.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use narrows_control::units::{Rate, Span, Time};
use narrows_sim::Results;
use narrows_sim::plan::{
    AppPlan, ControllerPlan, FlowPlan, LimitPlan, LinkPlan, MarkPlan, Plan, ProbePlan, QueuePlan, RatePlan,
    SizePlan, TransportPlan,
};

fn link(from: u32, to: u32, mbit: u64, delay: Span, packets: Option<u32>) -> LinkPlan {
    LinkPlan {
        name: format!("{from}->{to}"),
        from,
        to,
        rate: RatePlan::Steps {
            steps: vec![(Time::ZERO, Rate::from_bits_per_sec(mbit * 1_000_000))],
            period: None,
        },
        delay: vec![(Time::ZERO, delay)],
        jitter: None,
        jitter_changes: Vec::new(),
        loss: Vec::new(),
        duplicate: 0.0,
        policer: None,
        aggregation: None,
        queue: QueuePlan::Fifo { limit: LimitPlan { packets, bytes: None }, mark: MarkPlan::None },
    }
}

fn flow(from: u32, to: u32, transport: TransportPlan, app: AppPlan) -> FlowPlan {
    FlowPlan { transport, app, ..FlowPlan::bulk(format!("{from}-{to}"), (from, to), "") }
}

fn tcp(cc: &str, mss: u32) -> TransportPlan {
    TransportPlan::Tcp {
        cc: cc.into(),
        ecn: false,
        pacing: false,
        receive_window: None,
        mss,
        initial_window: 10,
    }
}

/// A dumbbell with `pairs` senders and `pairs` receivers. Each packet takes three hops.
fn dumbbell(pairs: u32, mbit: u64, rtt: Span, packets: u32, seconds: u64) -> Plan {
    let (left, right) = (2 * pairs, 2 * pairs + 1);
    let delay = rtt.scale(1, 2);
    let mut links =
        vec![link(left, right, mbit, delay, Some(packets)), link(right, left, mbit, delay, Some(packets))];
    for i in 0..pairs {
        for (a, b) in [(i, left), (right, pairs + i)] {
            links.push(link(a, b, 10 * mbit, Span::ZERO, None));
            links.push(link(b, a, 10 * mbit, Span::ZERO, None));
        }
    }
    Plan {
        seed: 1,
        duration: Span::from_secs(seconds),
        nodes: (0..right + 1).map(|n| n.to_string()).collect(),
        links,
        probes: ProbePlan {
            interval: Span::from_millis(100),
            links: vec![0],
            flows: true,
            traces: false,
            ..ProbePlan::default()
        },
        ..Plan::default()
    }
}

fn bulk(cc: &str, pairs: u32, mbit: u64, packets: u32, seconds: u64) -> Plan {
    let mut plan = dumbbell(pairs, mbit, Span::from_millis(40), packets, seconds);
    plan.flows =
        (0..pairs).map(|i| FlowPlan::bulk(format!("{i}-{}", pairs + i), (i, pairs + i), cc)).collect();
    plan
}

fn short_flows(per_sec: f64, seconds: u64) -> Plan {
    let mut plan = dumbbell(1, 1_000, Span::from_millis(100), 8_000, seconds);
    let size = SizePlan::Pareto { mean: 12_500.0, shape: 1.8 };
    plan.flows = vec![flow(0, 1, tcp("reno", 1000), AppPlan::Poisson { per_sec, size })];
    plan
}

/// Payload of each packet of experiment B3, in bytes. With its headers, a packet has 1000 bytes.
const B3_MSS: u32 = 948;

/// The plan of experiment B3 of the BDR study (python/narrows/studies/library/bdr/b3.toml). With Reno, it is the case
/// `reno-10`. For 30 s, 2000 flows/s start on a link of 1 Gbit/s with an RTT of 100 ms.
fn b3(cc: &str) -> Plan {
    let deep = Some(5000);
    let half_way = Span::from_millis(25);
    let limit = LimitPlan { packets: deep, bytes: None };
    let size = SizePlan::Pareto { mean: 11_850.0, shape: 1.8 };
    Plan {
        seed: 1,
        duration: Span::from_secs(30),
        warmup: Span::from_secs(3),
        nodes: ["S", "R1", "R2", "D"].map(String::from).to_vec(),
        links: [
            (0, 1, 2_400, Span::ZERO, None),
            (1, 2, 1_000, half_way, deep),
            (2, 3, 2_400, half_way, Some(1000)),
        ]
        .into_iter()
        .flat_map(|(a, b, mbit, delay, packets)| {
            [link(a, b, mbit, delay, packets), link(b, a, mbit, delay, packets)]
        })
        .collect(),
        flows: vec![flow(0, 3, tcp(cc, B3_MSS), AppPlan::Poisson { per_sec: 2_000.0, size })],
        rate_controllers: (cc == "bdr").then(|| controller(cc, B3_BOTTLENECK, limit)).into_iter().collect(),
        probes: ProbePlan {
            interval: Span::from_millis(100),
            links: vec![B3_BOTTLENECK],
            flows: true,
            traces: false,
            ..ProbePlan::default()
        },
        ..Plan::default()
    }
}

/// Index of B3's bottleneck link in the plan.
const B3_BOTTLENECK: u32 = 2;

fn controller(kind: &str, link: u32, limit: LimitPlan) -> ControllerPlan {
    ControllerPlan {
        kind: kind.into(),
        link,
        shape: None,
        capacity_is_configured: true,
        limit,
        params: Default::default(),
        outages: Vec::new(),
    }
}

/// A chain of `hops` links. Each link has a delay of `delay`. Datagrams are sent over the chain at 10 Gbit/s for a
/// second.
fn chain(hops: u32, delay: Span) -> Plan {
    Plan {
        seed: 1,
        duration: Span::from_secs(1),
        nodes: (0..=hops).map(|n| n.to_string()).collect(),
        links: (0..hops)
            .flat_map(|i| [(i, i + 1), (i + 1, i)])
            .map(|(a, b)| link(a, b, 10_000, delay, Some(1000)))
            .collect(),
        flows: vec![flow(
            0,
            hops,
            TransportPlan::Udp { rate: Rate::from_bits_per_sec(10_000_000_000), packet: 1500 },
            AppPlan::Bulk,
        )],
        probes: ProbePlan {
            interval: Span::ZERO,
            links: vec![],
            flows: false,
            traces: false,
            ..ProbePlan::default()
        },
        ..Plan::default()
    }
}

/// 100,000 concurrent connections, each with little data.
fn many_flows() -> Plan {
    let mut plan = dumbbell(1, 10_000, Span::from_millis(20), 100_000, 3);
    let app = AppPlan::Limited { rate: Rate::from_bytes_per_sec(1448), on: None, off: None };
    plan.flows = vec![FlowPlan {
        count: 100_000,
        spacing: Span::from_micros(10),
        app,
        ..FlowPlan::bulk("0-1", (0, 1), "cubic")
    }];
    plan.probes.flows = false;
    plan
}

/// Returns the peak memory of this process in KiB. (The rusage that the caller gets can include memory of the caller.)
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Returns the sum of a column of a table. Returns 0 if the table or the column does not exist.
fn total(results: &Results, table: &str, column: &str) -> u64 {
    let table = results.tables.iter().find(|t| t.name == table);
    table.and_then(|t| t.u64(column)).map_or(0, |v| v.iter().sum())
}

/// Completion times of flows with a fixed size, for comparison with ns-3.
///
/// Flows that start within [`MARGIN`] of the start or the end of the run are left out. A flow near the end may not have
/// time to finish. `workload` and `largest` include all flows. Times are sums over the flows, in ns.
#[derive(Default)]
struct Completions {
    workload: u64,
    begun: u64,
    finished: u64,
    finished_bytes: u64,
    largest: u64,
    all_ns: u64,
    short: u64,
    short_ns: u64,
    long: u64,
    long_ns: u64,
}

/// [`Completions`] leaves out flows that start within this time of the start or the end of the run. The BDR study also
/// leaves out flows that start in the first three seconds.
const MARGIN: Span = Span::from_secs(3);
/// Largest number of packets of a short flow, as in figures 5 and 6 of the BDR paper.
const SHORT_PACKETS: u64 = 30;
/// Smallest number of packets of a long flow, as in the BDR study.
const LONG_PACKETS: u64 = 100;

impl Completions {
    fn of(results: &Results, duration: Span) -> Self {
        let mut sums = Completions::default();
        let Some(flows) = results.tables.iter().find(|t| t.name == "flows") else { return sums };
        let (Some(starts), Some(sizes), Some(times)) =
            (flows.f64("start_s"), flows.u64("size_bytes"), flows.f64("fct_s"))
        else {
            return sums;
        };
        for ((&start, &size), &time) in starts.iter().zip(sizes).zip(times) {
            let start = Span::from_secs_f64(start);
            // A checksum of all flows, independent of their order. It shows whether two runs had the same flows.
            sums.workload = sums.workload.wrapping_add(start.as_nanos().wrapping_mul(size));
            sums.largest = sums.largest.max(size);
            if start < MARGIN || start + MARGIN >= duration {
                continue;
            }
            sums.begun += 1;
            if !time.is_finite() {
                continue;
            }
            let (ns, packets) = (Span::from_secs_f64(time).as_nanos(), size.div_ceil(B3_MSS.into()));
            sums.finished += 1;
            sums.finished_bytes += size;
            sums.all_ns += ns;
            if packets <= SHORT_PACKETS {
                sums.short += 1;
                sums.short_ns += ns;
            } else if packets >= LONG_PACKETS {
                sums.long += 1;
                sums.long_ns += ns;
            }
        }
        sums
    }
}

fn main() -> ExitCode {
    type Scenario = (&'static str, &'static str, fn() -> Plan);
    let plans: [Scenario; 11] = [
        ("A", "2 CUBIC flows, 100 Mbit/s, 40 ms, 1000 packets, 60 s", || bulk("cubic", 2, 100, 1000, 60)),
        ("B", "2 BBR flows, 100 Mbit/s, 40 ms, 1000 packets, 60 s", || bulk("bbr", 2, 100, 1000, 60)),
        ("C", "100 CUBIC flows, 1 Gbit/s, 40 ms, 4000 packets, 10 s", || bulk("cubic", 100, 1_000, 4000, 10)),
        ("D", "Reno, 2000 Pareto flows/s, 1 Gbit/s, 100 ms, 10 s", || short_flows(2_000.0, 10)),
        ("E", "10 Gbit/s UDP over 5 hops, 1 s", || chain(5, Span::from_millis(1))),
        ("F", "100,000 concurrent CUBIC flows, 3 s", many_flows),
        ("G", "833,333 packets in flight: 10 Gbit/s UDP, one hop of 1 s", || chain(1, Span::from_secs(1))),
        ("H", "B3 of the BDR study with Reno, 30 s", || b3("reno")),
        ("I", "B3 of the BDR study with BDR, 30 s", || b3("bdr")),
        ("J", "2 Reno flows, 100 Mbit/s, 40 ms, 1000 packets, 60 s", || bulk("reno", 2, 100, 1000, 60)),
        ("K", "2 BBR v3 flows, 100 Mbit/s, 40 ms, 1000 packets, 60 s", || bulk("bbr3", 2, 100, 1000, 60)),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let Some((_, _, plan)) = plans.iter().find(|(name, ..)| wanted.first().is_some_and(|w| w == name)) else {
        for (name, what, _) in plans {
            println!("{name}  {what}");
        }
        return ExitCode::SUCCESS;
    };
    let plan = plan();
    match narrows_sim::run(&plan, &AtomicBool::new(false)) {
        Ok(results) => {
            let c = results.counts;
            let done = Completions::of(&results, plan.duration);
            let figures = [
                ("events", c.events),
                ("packet_hops", c.packet_hops),
                ("delivered_packets", c.delivered_packets),
                ("peak_flows", c.peak_flows),
                ("flows", results.tables.iter().find(|t| t.name == "flows").map_or(0, |t| t.rows() as u64)),
                ("delivered_bytes", total(&results, "flows", "delivered_bytes")),
                ("drops", total(&results, "links", "dropped_packets")),
                ("retransmits", total(&results, "flows", "retransmits")),
                ("workload", done.workload),
                ("largest_flow", done.largest),
                ("begun", done.begun),
                ("finished", done.finished),
                ("finished_bytes", done.finished_bytes),
                ("fct_ns", done.all_ns),
                ("short", done.short),
                ("short_fct_ns", done.short_ns),
                ("long", done.long),
                ("long_fct_ns", done.long_ns),
                ("peak_kib", peak_kib()),
            ];
            let json: Vec<String> = figures.iter().map(|(name, n)| format!("\"{name}\": {n}")).collect();
            println!("{{{}}}", json.join(", "));
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}
