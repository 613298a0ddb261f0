//! A QUIC flow in the simulator: `cargo run --release --example bulk [cc] [Mbit/s] [seconds]`.
//!
//! Prints the flow's goodput, its RTT and losses, and the CPU time that the simulation took.

use std::time::Instant;

use narrows_control::units::{Bytes, Rate, Span};
use narrows_quinn::Quinn;
use narrows_sim::plan::{FlowPlan, LimitPlan, LinkPlan, Plan, StackPlan, TransportPlan};
use narrows_sim::{Column, Run};

#[expect(clippy::disallowed_methods, reason = "measures the time that the simulation takes")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let cc = arguments.next().unwrap_or_else(|| "cubic".to_owned());
    let rate =
        Rate::from_bits_per_sec(arguments.next().map_or(Ok(100), |text| text.parse::<u64>())? * 1_000_000);
    let duration = Span::from_secs(arguments.next().map_or(Ok(60), |text| text.parse::<u64>())?);
    let half = Span::from_millis(20);
    // The queue holds one BDP.
    let queue = LimitPlan::bytes(rate.bytes_in(half + half));
    let stack = StackPlan {
        name: "quinn".to_owned(),
        cc: cc.as_str().into(),
        receive_window: Some(Bytes::new(16 << 20)),
    };
    let plan = Plan {
        duration,
        nodes: vec!["sender".into(), "receiver".into()],
        links: vec![
            LinkPlan::new("forward", (0, 1), rate, half, queue),
            LinkPlan::new("back", (1, 0), rate, half, LimitPlan::default()),
        ],
        flows: vec![FlowPlan {
            transport: TransportPlan::Stack(stack),
            ..FlowPlan::bulk("quic", (0, 1), cc.as_str())
        }],
        ..Plan::default()
    };
    let begin = Instant::now();
    let results = Run::new(&plan).transports(&Quinn::default()).start()?;
    let took = begin.elapsed();
    let flows = results.table("flows").ok_or("no table of flows")?;
    for (name, column) in &flows.columns {
        let value = match column {
            Column::F64(values) => values.first().map(f64::to_string),
            Column::U64(values) => values.first().map(u64::to_string),
            Column::Str(values) => values.first().cloned(),
        };
        println!("{name}: {}", value.unwrap_or_default());
    }
    println!("{:.2} s for {} data packets", took.as_secs_f64(), results.counts.delivered_packets);
    Ok(())
}
