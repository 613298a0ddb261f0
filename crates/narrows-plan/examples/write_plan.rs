//! Prints a plan as JSON. The plan is a download over a link with a rate of 10 Mbit/s and a delay of 20 ms.
//!
//! ```sh
//! cargo run -p narrows-plan --example write_plan
//! ```

use narrows_control::units::{Rate, Span};
use narrows_plan::{FlowPlan, LimitPlan, LinkPlan, Plan};

fn main() -> Result<(), serde_json::Error> {
    let (rate, delay) = (Rate::from_bits_per_sec(10_000_000), Span::from_millis(20));
    let plan = Plan {
        duration: Span::from_secs(10),
        nodes: vec!["server".into(), "client".into()],
        links: vec![
            LinkPlan::new("down", (0, 1), rate, delay, LimitPlan::packets(50)),
            LinkPlan::new("up", (1, 0), rate, delay, LimitPlan::default()),
        ],
        flows: vec![FlowPlan::bulk("download", (0, 1), "reno")],
        ..Plan::default()
    };
    println!("{}", serde_json::to_string_pretty(&plan)?);
    Ok(())
}
