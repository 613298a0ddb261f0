//! Simulates a CUBIC flow and a BBR flow at one bottleneck, and prints their goodputs.
//!
//! ```sh
//! cargo run --release -p narrows-sim --example two_flows
//! ```

use std::sync::atomic::AtomicBool;

use narrows_control::units::{Rate, Span};
use narrows_sim::plan::{FlowPlan, LimitPlan, LinkPlan, Plan};

fn main() -> Result<(), narrows_sim::Error> {
    let bottleneck = Rate::from_bits_per_sec(100_000_000);
    let delay = Span::from_millis(10);
    let plan = Plan {
        seed: 1,
        duration: Span::from_secs(30),
        warmup: Span::from_secs(3),
        nodes: vec!["sender".into(), "receiver".into()],
        links: vec![
            LinkPlan::new("forward", (0, 1), bottleneck, delay, LimitPlan::packets(167)),
            LinkPlan::new("back", (1, 0), bottleneck, delay, LimitPlan::default()),
        ],
        flows: vec![FlowPlan::bulk("cubic", (0, 1), "cubic"), FlowPlan::bulk("bbr", (0, 1), "bbr")],
        ..Plan::default()
    };

    let results = narrows_sim::run(&plan, &AtomicBool::new(false))?;
    let flows = results.table("flows").expect("every run has a table of flows");
    let goodput = flows.f64("goodput_bps").expect("a column of floats");
    for (flow, bps) in plan.flows.iter().zip(goodput) {
        println!("{:6} {:6.2} Mbit/s", flow.name, bps / 1e6);
    }
    Ok(())
}
