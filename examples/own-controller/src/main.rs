//! Runs a plan in which flows may use the controllers of this example: `own-controller PLAN.json`.

use std::error::Error;

use narrows_control::catalogue::Catalogue;
use narrows_sim::Run;
use narrows_sim::plan::Plan;
use own_controller::CONSTANT;
use own_controller::hpcc::{HPCC, TELEMETRY};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("found no argument, expected the file of a plan")?;
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let plan: Plan = serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
    let mut catalogue = Catalogue::built_in().clone();
    catalogue.add(CONSTANT)?;
    catalogue.add(HPCC)?;
    catalogue.add_rate_controller(TELEMETRY)?;
    let results = Run::new(&plan).controllers(&catalogue).start()?;
    let flows = results.table("flows").ok_or("no table of flows")?;
    let names = flows.str("name").ok_or("no names")?;
    let controllers = flows.str("cc").ok_or("no controllers")?;
    let goodput = flows.f64("goodput_bps").ok_or("no goodput")?;
    for ((name, cc), goodput) in names.iter().zip(controllers).zip(goodput) {
        println!("{name:8} {cc:24} {:6.2} Mbit/s", goodput / 1e6);
    }
    Ok(())
}
