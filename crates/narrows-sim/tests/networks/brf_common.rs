//! Networks with BRF switches, and functions that read their results.

use narrows_control::units::{Rate, Span};
use narrows_sim::Results;
use narrows_sim::plan::{
    AppPlan, ControllerPlan, FlowPlan, JitterPlan, LimitPlan, Plan, ProbePlan, SdnPlan, TransportPlan,
};

pub use crate::common::*;

/// Payload bytes of a full packet, divided by its L3 bytes.
pub const PAYLOAD: f64 = 1448.0 / 1500.0;
/// `eta` of the resolved mode (BRF-21).
pub const ETA: f64 = 0.98;

/// Builds a plan. Links come in pairs: a link with an even index is a forward link, and the next link is its reverse
/// link.
pub struct Net {
    pub plan: Plan,
}

impl Net {
    pub fn new(seconds: u64) -> Net {
        let plan = Plan {
            seed: 1,
            duration: Span::from_secs(seconds),
            probes: ProbePlan {
                interval: ms(20),
                links: Vec::new(),
                flows: true,
                traces: false,
                ..ProbePlan::default()
            },
            ..Plan::default()
        };
        Net { plan }
    }

    pub fn node(&mut self, name: impl Into<String>) -> u32 {
        self.plan.nodes.push(name.into());
        self.plan.nodes.len() as u32 - 1
    }

    /// Adds two links with unlimited queues, one in each direction. Returns the index of the forward link.
    pub fn duplex(&mut self, a: u32, b: u32, rates: [Rate; 2], delay: Span) -> u32 {
        let queue = || fifo(LimitPlan::default());
        let index = self.plan.links.len() as u32;
        self.plan.links.push(link(a, b, rates[0], delay, queue()));
        self.plan.links.push(link(b, a, rates[1], delay, queue()));
        index
    }

    /// Adds a host and connects it to `router` by a fast link in each direction, with this delay. The link from the
    /// host to the router also has jitter.
    pub fn host(&mut self, router: u32, delay: Span) -> u32 {
        let host = self.node(format!("h{}", self.plan.nodes.len()));
        let index = self.duplex(host, router, [mbit(10_000); 2], delay);
        let jitter = JitterPlan { max: Span::from_micros(50), reorder: false };
        self.plan.links[index as usize].jitter = Some(jitter);
        host
    }

    /// Adds BRF at the port of `link`.
    pub fn brf(&mut self, link: u32, params: serde_json::Value) -> &mut ControllerPlan {
        self.controller("brf", link, params)
    }

    /// Adds a rate controller at the port of `link`.
    pub fn controller(&mut self, kind: &str, link: u32, params: serde_json::Value) -> &mut ControllerPlan {
        self.plan.rate_controllers.push(ControllerPlan {
            kind: kind.into(),
            link,
            shape: None,
            capacity_is_configured: true,
            limit: packets(1000),
            params: values(params),
            outages: Vec::new(),
        });
        self.plan.probes.links.push(link);
        self.plan.rate_controllers.last_mut().expect("just added")
    }

    pub fn sdn(&mut self) -> &mut SdnPlan {
        self.plan.sdn.insert(SdnPlan { poll: None, delay: ms(1), outages: Vec::new() })
    }

    pub fn add(&mut self, from: u32, to: u32, transport: TransportPlan) -> &mut FlowPlan {
        let flow = FlowPlan { from, to, ..flow(transport, AppPlan::Bulk) };
        self.plan.flows.push(flow);
        self.plan.flows.last_mut().expect("just added")
    }

    pub fn run(&self) -> Results {
        run(&self.plan)
    }
}

/// Returns a network, its senders and its client C1. All of them are connected to the router R0. Link 0 (R0 to C1) is
/// the bottleneck, and has BRF at its port. `rtts` holds the RTT of each sender in ms.
pub fn star(rate: Rate, rtts: &[u64], params: serde_json::Value, seconds: u64) -> (Net, Vec<u32>, u32) {
    let mut net = Net::new(seconds);
    let (router, client) = (net.node("R0"), net.node("C1"));
    net.duplex(router, client, [rate, mbit(1000)], Span::ZERO);
    net.brf(0, params);
    net.sdn();
    let senders = rtts.iter().map(|rtt| net.host(router, ms(*rtt).scale(1, 2))).collect();
    (net, senders, client)
}

pub fn resolved() -> serde_json::Value {
    serde_json::json!({ "mode": "resolved" })
}

pub fn literal() -> serde_json::Value {
    serde_json::json!({ "mode": "literal" })
}

/// Returns the values of a column for one flow or link, from samples at times in `[from, to)` (in seconds). `of` is the
/// name of the column with the index of the flow or link.
pub fn samples(r: &Results, table: &str, of: &str, index: u64, column: &str, from: f64, to: f64) -> Vec<f64> {
    let table = r.tables.iter().find(|t| t.name == table).expect("a table of this name");
    let (ids, times) = (table.u64(of).expect("ids"), table.f64("t_s").expect("times"));
    let value = |i: usize| {
        table.f64(column).map(|c| c[i]).or(table.u64(column).map(|c| c[i] as f64)).expect("a number")
    };
    (0..table.rows()).filter(|&i| ids[i] == index && times[i] >= from && times[i] < to).map(value).collect()
}

/// Returns the mean goodput of a flow in Mbit/s, from samples at times in `[from, to)` (in seconds).
pub fn goodput(r: &Results, flow: u64, from: f64, to: f64) -> f64 {
    mean(&samples(r, "flow_samples", "flow", flow, "goodput_bps", from, to)) / 1e6
}

pub fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// Returns the times of all events of one kind.
pub fn events(r: &Results, kind: &str) -> Vec<f64> {
    let table = r.tables.iter().find(|t| t.name == "events").expect("events");
    let (kinds, times) = (table.str("kind").expect("kinds"), table.f64("t_s").expect("times"));
    kinds.iter().zip(times).filter(|(k, _)| *k == kind).map(|(_, t)| *t).collect()
}

/// Asserts that `found` differs from `expected` by at most the fraction `part` of `expected`.
#[track_caller]
pub fn assert_near(found: f64, expected: f64, part: f64) {
    assert!((found - expected).abs() <= part * expected.abs(), "{found:.3}, not {expected:.3} within {part}");
}
