//! Adds a congestion control algorithm to the catalogue. The algorithm has a constant window, which is its only
//! parameter. A plan selects the algorithm and sets the parameter by name.
//!
//! ```sh
//! cargo run --release -p narrows-sim --example own_controller
//! ```

use std::sync::atomic::AtomicBool;

use narrows_control::catalogue::{Catalogue, Entry, Family, Group};
use narrows_control::congestion::{Ack, Congestion, Controller, Window};
use narrows_control::parameter::{Parameters, whole};
use narrows_sim::plan::Plan;

narrows_control::parameters! {
    /// Parameters of [`Fixed`].
    pub struct Params {
        /// Number of segments in flight.
        pub segments: u32 = 40, whole(1, 1_000_000).unit("segments").from("this example");
    }
}

/// Keeps a constant number of segments in flight and ignores losses.
struct Fixed(Params);

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn on_ack(&mut self, _ack: &Ack, window: &mut Window) {
        window.cwnd = self.0.segments;
    }

    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        window.ssthresh = self.0.segments;
    }
}

/// The entry that `main` adds to the catalogue.
pub(crate) const FIXED: Entry = Entry {
    parameters: &[Group::of::<Params>("")],
    ..Entry::new("fixed", Family::Loss, "a constant window", |values| {
        Box::new(Fixed(Params::default().with("", values)))
    })
};

/// A plan with two flows, one after the other. The first flow has the default window, and the second has half of it.
const PLAN: &str = r#"{
    "seed": 1,
    "duration": 20000000000,
    "nodes": ["a", "b"],
    "links": [
        { "name": "a->b", "from": 0, "to": 1, "rate": { "kind": "steps", "steps": [[0, 6250000]] },
          "delay": [[0, 20000000]], "queue": { "kind": "fifo", "limit": { "packets": 100 } } },
        { "name": "b->a", "from": 1, "to": 0, "rate": { "kind": "steps", "steps": [[0, 6250000]] },
          "delay": [[0, 20000000]], "queue": { "kind": "fifo" } }
    ],
    "flows": [
        { "name": "default", "from": 0, "to": 1, "start": 0, "stop": 10000000000,
          "transport": { "kind": "tcp", "cc": "fixed" }, "app": { "kind": "bulk" } },
        { "name": "half", "from": 0, "to": 1, "start": 10000000000,
          "transport": { "kind": "tcp", "cc": { "name": "fixed", "segments": 20 } }, "app": { "kind": "bulk" } }
    ]
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut catalogue = Catalogue::built_in().clone();
    catalogue.add(FIXED)?;
    let plan: Plan = serde_json::from_str(PLAN)?;
    let results = narrows_sim::run_with(&plan, &AtomicBool::new(false), &catalogue)?;
    let flows = results.table("flows").ok_or("no table of flows")?;
    let goodput = flows.f64("goodput_bps").ok_or("no goodput")?;
    let names = flows.str("cc").ok_or("no names")?;
    for (name, goodput) in names.iter().zip(goodput) {
        println!("{name:20} {:.2} Mbit/s", goodput / 1e6);
    }
    Ok(())
}
