//! Runs a scenario file in the simulator, and writes the result tables of each run as Arrow files. The first argument
//! is the file, the second one the folder of the results. Further arguments set keys, such as `topology.rate=20mbit`.
//!
//! ```sh
//! cargo run --release -p narrows-scenario --example run_scenario -- scenarios/two-flows.toml results seed=2
//! ```

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use narrows_scenario::{Disk, Scenario, Settings, expand, parse_override, resolve};

fn run(file: &str, folder: &str, overrides: &[String]) -> Result<(), Box<dyn Error>> {
    let disk = Disk::default();
    let overrides = overrides.iter().map(|text| parse_override(text)).collect::<Result<Vec<_>, _>>()?;
    let scenario = Scenario::load(file, &overrides, &disk)?;
    for run in expand(&scenario, None)? {
        let plan = resolve(&run.scenario(), &Settings::simulator(&disk))?;
        let results = narrows_sim::run(&plan, &AtomicBool::new(false))?;
        results.write_arrow(&Path::new(folder).join(format!("run-{}", run.id)))?;
        println!("run {}: seed {}, {} events", run.id, run.seed, results.counts.events);
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.as_slice() {
        [file, folder, overrides @ ..] => run(file, folder, overrides),
        _ => Err("usage: run_scenario FILE FOLDER [KEY=VALUE]...".into()),
    };
    result.map_or_else(
        |error| {
            eprintln!("{error}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}
