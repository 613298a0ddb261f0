//! Runs a plan with many seeds, and counts the rows of the results. Usage: `seeds PLAN.json COUNT THREADS`.
//!
//! `benches/throughput.py` compares the speed of sweeps in Python with the speed of this program.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use narrows_sim::plan::Plan;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [path, count, threads] = arguments.as_slice() else {
        // `cargo test` and `cargo bench` start each benchmark without these arguments.
        println!("seeds PLAN.json COUNT THREADS");
        return Ok(());
    };
    let plan: Plan = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let (count, threads): (u64, usize) = (count.parse()?, threads.parse()?);
    let next = AtomicU64::new(0);
    let rows = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    let seeded = Plan { seed: plan.seed + at, ..plan.clone() };
                    let results = narrows_sim::run(&seeded, &AtomicBool::new(false)).expect("a valid plan");
                    let made: usize = results.tables.iter().map(|table| table.rows()).sum();
                    rows.fetch_add(made as u64, Ordering::Relaxed);
                }
            });
        }
    });
    println!("{} rows", rows.into_inner());
    Ok(())
}
