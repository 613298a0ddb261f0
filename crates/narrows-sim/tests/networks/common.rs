//! Functions that build small plans and read results.

use std::sync::atomic::AtomicBool;

use narrows_control::parameter::Values;
use narrows_control::units::{Bytes, Rate, Span, Time};
use narrows_sim::Results;
use narrows_sim::plan::{
    AppPlan, ControllerPlan, FlowPlan, LimitPlan, LinkPlan, MarkPlan, Plan, ProbePlan, QueuePlan, RatePlan,
    TransportPlan,
};
use serde_json::Value;

pub fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

pub fn at(n: u64) -> Time {
    Time::ZERO + ms(n)
}

pub fn mbit(n: u64) -> Rate {
    Rate::from_bits_per_sec(n * 1_000_000)
}

pub fn constant(rate: Rate) -> RatePlan {
    RatePlan::Steps { steps: vec![(Time::ZERO, rate)], period: None }
}

pub fn packets(n: u32) -> LimitPlan {
    LimitPlan { packets: Some(n), bytes: None }
}

pub fn fifo(limit: LimitPlan) -> QueuePlan {
    QueuePlan::Fifo { limit, mark: MarkPlan::None }
}

pub fn link(from: u32, to: u32, rate: Rate, delay: Span, queue: QueuePlan) -> LinkPlan {
    LinkPlan {
        name: format!("{from}->{to}"),
        from,
        to,
        rate: constant(rate),
        delay: vec![(Time::ZERO, delay)],
        jitter: None,
        jitter_changes: Vec::new(),
        loss: Vec::new(),
        duplicate: 0.0,
        policer: None,
        aggregation: None,
        queue,
    }
}

/// Returns a plan with two nodes. Link 0 is the bottleneck. Link 1 is the reverse link, and is a thousand times as
/// fast. Only link 1 has a delay, so that a change of the bottleneck's rate affects the receiver at once.
pub fn path(rate: Rate, rtt: Span, queue: QueuePlan, seconds: u64) -> Plan {
    let back = Rate::from_bytes_per_sec(rate.as_bytes_per_sec() * 1_000);
    Plan {
        seed: 1,
        duration: Span::from_secs(seconds),
        nodes: vec!["a".into(), "b".into()],
        links: vec![link(0, 1, rate, Span::ZERO, queue), link(1, 0, back, rtt, fifo(LimitPlan::default()))],
        probes: ProbePlan {
            interval: ms(10),
            links: vec![0],
            flows: true,
            traces: false,
            ..ProbePlan::default()
        },
        ..Plan::default()
    }
}

pub fn tcp(cc: &str) -> TransportPlan {
    bulk(cc).transport
}

pub fn ecn(cc: &str) -> TransportPlan {
    TransportPlan::Tcp {
        cc: cc.into(),
        ecn: true,
        pacing: false,
        receive_window: None,
        mss: 1448,
        initial_window: 10,
    }
}

pub fn bulk(cc: &str) -> FlowPlan {
    FlowPlan::bulk("f", (0, 1), cc)
}

pub fn flow(transport: TransportPlan, app: AppPlan) -> FlowPlan {
    FlowPlan { transport, app, ..bulk("") }
}

pub fn sized(cc: &str, bytes: u64) -> FlowPlan {
    FlowPlan { app: AppPlan::Size { bytes: Bytes::new(bytes) }, ..bulk(cc) }
}

/// Returns a flow that sends a constant stream of 1500-byte packets.
pub fn udp(rate: Rate) -> FlowPlan {
    flow(TransportPlan::Udp { rate, packet: 1500 }, AppPlan::Bulk)
}

/// Converts a JSON object to parameters. Its numbers are in base units. Null means no parameters.
pub fn values(params: Value) -> Values {
    if params.is_null() {
        Values::new()
    } else {
        serde_json::from_value(params).expect("flags, numbers and words")
    }
}

/// Returns a rate controller for link 0.
pub fn controller(kind: &str, params: Value) -> ControllerPlan {
    ControllerPlan {
        kind: kind.into(),
        link: 0,
        shape: None,
        capacity_is_configured: true,
        limit: LimitPlan::default(),
        params: values(params),
        outages: Vec::new(),
    }
}

/// Returns a plan with one bottleneck of 100 Mbit/s and a rate controller. `rtt` is in ms, and `buffer` in packets.
pub fn dumbbell(kind: &str, rtt: u64, buffer: u32, seconds: u64) -> Plan {
    let mut plan = path(mbit(100), ms(rtt), fifo(packets(buffer)), seconds);
    plan.rate_controllers.push(controller(kind, Value::Null));
    plan
}

pub fn group(cc: &str, count: u32, spacing: u64) -> FlowPlan {
    FlowPlan { count, spacing: ms(spacing), ..bulk(cc) }
}

/// Returns the mean goodput of each flow from `from` to `to` seconds, in Mbit/s.
pub fn shares(r: &Results, flows: usize, from: f64, to: f64) -> Vec<f64> {
    let (at, flow, goodput) =
        (r.all("flow_samples", "t_s"), column(r, "flow"), r.all("flow_samples", "goodput_bps"));
    (0..flows)
        .map(|f| {
            let of_flow = (0..at.len()).filter(|&i| flow[i] == f as u64 && at[i] > from && at[i] <= to);
            let values: Vec<f64> = of_flow.map(|i| goodput[i]).collect();
            values.iter().sum::<f64>() / values.len() as f64 / 1e6
        })
        .collect()
}

fn column(r: &Results, name: &str) -> Vec<u64> {
    let table = r.tables.iter().find(|t| t.name == "flow_samples").expect("samples");
    table.u64(name).expect("whole numbers").to_vec()
}

pub fn utilisation(r: &Results) -> f64 {
    r.f("links", "utilisation", 0)
}

pub fn run(plan: &Plan) -> Results {
    narrows_sim::run(plan, &AtomicBool::new(false)).expect("the plan is valid")
}

/// Reads single values and columns of the result tables.
pub trait Read {
    fn f(&self, table: &str, column: &str, row: usize) -> f64;
    fn u(&self, table: &str, column: &str, row: usize) -> u64;
    fn all(&self, table: &str, column: &str) -> Vec<f64>;
    fn rows(&self, table: &str) -> usize;
    /// Returns the goodput of a flow, in Mbit/s.
    fn goodput(&self, flow: usize) -> f64 {
        self.f("flows", "goodput_bps", flow) / 1e6
    }
}

fn table<'r>(results: &'r Results, name: &str) -> &'r narrows_sim::Table {
    results.tables.iter().find(|t| t.name == name).expect("a table of this name")
}

impl Read for Results {
    fn f(&self, name: &str, column: &str, row: usize) -> f64 {
        table(self, name).f64(column).expect("a column of floats")[row]
    }
    fn u(&self, name: &str, column: &str, row: usize) -> u64 {
        table(self, name).u64(column).expect("a column of whole numbers")[row]
    }
    fn all(&self, name: &str, column: &str) -> Vec<f64> {
        table(self, name).f64(column).expect("a column of floats").to_vec()
    }
    fn rows(&self, name: &str) -> usize {
        table(self, name).rows()
    }
}

/// Returns Jain's fairness index.
pub fn jain(x: &[f64]) -> f64 {
    let (sum, squares): (f64, f64) = x.iter().fold((0.0, 0.0), |(s, q), v| (s + v, q + v * v));
    sum * sum / (x.len() as f64 * squares)
}
