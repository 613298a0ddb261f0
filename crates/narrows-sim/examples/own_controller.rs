//! Simulates a controller that is not built in: a constant window.
//!
//! ```sh
//! cargo run --release -p narrows-sim --example own_controller
//! ```

use std::sync::atomic::AtomicBool;

use narrows_control::congestion::{Ack, Congestion, Controller, Window, registry};
use narrows_control::units::{Rate, Span};
use narrows_sim::plan::{FlowPlan, LimitPlan, LinkPlan, Plan};

/// Keeps this many segments in flight and ignores losses.
struct Fixed(u32);

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn on_ack(&mut self, _ack: &Ack, window: &mut Window) {
        window.cwnd = self.0;
    }

    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        window.ssthresh = self.0;
    }
}

/// The own controller by its name, and every built-in one.
fn controllers(name: &str) -> Option<Box<dyn Controller>> {
    match name {
        "fixed" => Some(Box::new(Fixed(40))),
        other => registry::build(other),
    }
}

fn main() -> Result<(), narrows_sim::Error> {
    let rate = Rate::from_bits_per_sec(50_000_000);
    let delay = Span::from_millis(20);
    let plan = Plan {
        duration: Span::from_secs(10),
        nodes: vec!["a".into(), "b".into()],
        links: vec![
            LinkPlan::new("a->b", (0, 1), rate, delay, LimitPlan::packets(100)),
            LinkPlan::new("b->a", (1, 0), rate, delay, LimitPlan::default()),
        ],
        flows: vec![FlowPlan::bulk("fixed", (0, 1), "fixed")],
        ..Plan::default()
    };
    let results = narrows_sim::run_with(&plan, &AtomicBool::new(false), &controllers)?;
    let goodput =
        results.table("flows").and_then(|flows| flows.f64("goodput_bps")).expect("a column of floats");
    println!("goodput: {:.2} Mbit/s", goodput[0] / 1e6);
    Ok(())
}
