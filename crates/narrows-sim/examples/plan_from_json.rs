//! Runs a plan that is stored as JSON, and prints the size of each result table.
//!
//! The first argument is the file of the plan. Without this argument, the example runs a small plan of its own. The
//! second argument is a folder. The example writes the tables into this folder, as Arrow files.
//!
//! ```sh
//! cargo run --release -p narrows-sim --example plan_from_json -- plan.json results
//! ```

use std::error::Error;
use std::sync::atomic::AtomicBool;

use narrows_sim::plan::Plan;

/// A small plan. Times are in nanoseconds, and rates are in bytes/s.
const SMALL: &str = r#"{
    "seed": 7,
    "duration": 5000000000,
    "nodes": ["a", "b"],
    "links": [
        {"name": "a->b", "from": 0, "to": 1, "delay": [[0, 10000000]],
         "rate": {"kind": "steps", "steps": [[0, 1250000]]},
         "queue": {"kind": "fifo", "limit": {"packets": 50}}},
        {"name": "b->a", "from": 1, "to": 0, "delay": [[0, 10000000]],
         "rate": {"kind": "steps", "steps": [[0, 1250000]]},
         "queue": {"kind": "fifo"}}
    ],
    "flows": [
        {"name": "download", "from": 0, "to": 1, "start": 0,
         "transport": {"kind": "tcp", "cc": "reno"},
         "app": {"kind": "size", "bytes": 1000000}}
    ]
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let text = match std::env::args().nth(1) {
        Some(path) => std::fs::read_to_string(path)?,
        None => SMALL.to_owned(),
    };
    let plan: Plan = serde_json::from_str(&text)?;
    let results = narrows_sim::run(&plan, &AtomicBool::new(false))?;
    for table in &results.tables {
        println!("{:14} {:5} rows, {:2} columns", table.name, table.rows(), table.columns.len());
    }
    if let Some(folder) = std::env::args().nth(2) {
        results.write_arrow(folder.as_ref())?;
    }
    println!("{} events, {} packets delivered", results.counts.events, results.counts.delivered_packets);
    Ok(())
}
