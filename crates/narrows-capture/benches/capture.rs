//! Measures the cost of captures: the CPU time of a run with captures, divided by the CPU time of the same run without
//! captures.
//!
//! Each capture writes its files to a temporary folder. The program repeats each run several times, and prints the
//! medians.

use std::error::Error;
use std::fs;
use std::path::Path;

use narrows_capture::Folder;
use narrows_control::units::{Rate, Span, Time};
use narrows_sim::Run;
use narrows_sim::plan::{CapturePlan, FlowPlan, LimitPlan, LinkPlan, MarkPlan, Plan, QueuePlan, RatePlan};

/// Repetitions of each run.
const REPETITIONS: usize = 7;

/// The captures. Each entry has a name, the captured links and the captured hosts.
const CAPTURES: [(&str, &[u32], &[u32]); 4] = [
    ("none", &[], &[]),
    ("one host", &[], &[0]),
    ("two hosts", &[], &[0, 1]),
    ("two hosts and a link", &[0], &[0, 1]),
];

fn link(from: u32, to: u32) -> LinkPlan {
    LinkPlan {
        name: format!("{from}->{to}"),
        from,
        to,
        rate: RatePlan::Steps {
            steps: vec![(Time::ZERO, Rate::from_bits_per_sec(100_000_000))],
            period: None,
        },
        delay: vec![(Time::ZERO, Span::from_millis(10))],
        jitter: None,
        jitter_changes: Vec::new(),
        loss: Vec::new(),
        duplicate: 0.0,
        policer: None,
        aggregation: None,
        queue: QueuePlan::Fifo { limit: LimitPlan { packets: Some(100), bytes: None }, mark: MarkPlan::None },
    }
}

/// Two CUBIC flows on a link of 100 Mbit/s for 30 s.
fn plan(links: &[u32], hosts: &[u32]) -> Plan {
    let flows = ["first", "second"].map(|name| FlowPlan::bulk(name, (0, 1), "cubic"));
    Plan {
        seed: 1,
        duration: Span::from_secs(30),
        nodes: vec!["a".into(), "b".into()],
        links: vec![link(0, 1), link(1, 0)],
        flows: flows.into(),
        capture: Some(CapturePlan { links: links.into(), hosts: hosts.into(), snap: 128, qlog: false }),
        ..Plan::default()
    }
}

/// Returns the CPU time of this thread in seconds (Linux `/proc/thread-self/schedstat`).
fn cpu_time() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split_whitespace().next().ok_or("an empty file")?;
    Ok(nanos.parse::<f64>()? / 1e9)
}

/// Runs a plan, and returns the CPU time in seconds.
fn run(plan: &Plan, folder: &Path) -> Result<f64, Box<dyn Error>> {
    let start = cpu_time()?;
    let mut files = Folder::create(folder, plan)?;
    Run::new(plan).tap(&mut files).start()?;
    files.finish()?;
    Ok(cpu_time()? - start)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("narrows-capture-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let plans = CAPTURES.map(|(_, links, hosts)| plan(links, hosts));
    let mut times = vec![Vec::new(); plans.len()];
    for _ in 0..REPETITIONS {
        for (plan, times) in plans.iter().zip(&mut times) {
            times.push(run(plan, &folder)?);
        }
    }
    fs::remove_dir_all(&folder)?;
    let medians = times.iter_mut().map(|times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    let medians: Vec<f64> = medians.collect();
    for ((name, ..), median) in CAPTURES.iter().zip(&medians) {
        println!("{name:20} {:6.1} ms {:5.2} times", median * 1e3, median / medians[0]);
    }
    Ok(())
}
