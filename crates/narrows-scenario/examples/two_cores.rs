//! Measures how much one run could gain from two cores: an upper bound, with the real event loop.
//!
//! A fat tree is divided into two halves of its pods. Parallel simulators with conservative windows (Unison, EuroSys
//! 2024) let each half simulate for one window, the *lookahead*, and then wait for the other half. A packet needs at
//! least one window from one half to the other. In this program, no flow crosses from one half to the other, so the
//! halves hand over no packets. The measured speed-up is therefore above the speed-up of a real parallel run.
//!
//! ```sh
//! cargo run --release -p narrows-scenario --example two_cores -- 8 1400 20
//! ```
//!
//! The arguments are the ports of each switch, the window in ns and the duration in ms.

// A benchmark reads the clock.
#![allow(clippy::disallowed_methods)]

use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use narrows_control::units::{Span, Time};
use narrows_plan::Plan;
use narrows_scenario::{NoFiles, Scenario, Settings, expand, resolve};
use narrows_sim::Run;

const ROUNDS: usize = 7;

/// A run of the fat tree. In each of the parts, each host sends to another host of the same part.
fn plan(k: u32, duration_ms: u32, seed: u32, parts: &[std::ops::Range<u32>]) -> Result<Plan, Box<dyn Error>> {
    let mut text = format!(
        "seed = {seed}\nduration = \"{duration_ms}ms\"\necmp = true\n[topology]\nname = \"fat-tree\"\nk = {k}\nrate = \"1gbit\"\n\
         [probes]\nflows = false\n"
    );
    for part in parts {
        let hosts = part.clone().map(|i| format!("\"h{}\"", i + 1)).collect::<Vec<_>>().join(", ");
        text += &format!(
            "[[flows]]\npattern = \"permutation\"\ncc = \"dctcp\"\nstart_jitter = \"100us\"\nfrom = [{hosts}]\n"
        );
    }
    let scenario = Scenario::parse(&text, "two_cores", &[])?;
    let run = expand(&scenario, None)?.into_iter().next().ok_or("no run")?;
    Ok(resolve(&run.scenario(), &Settings::simulator(&NoFiles))?)
}

/// The last window that a thread has finished, in a cache line of its own.
#[repr(align(128))]
struct Progress(AtomicU64);

/// The work of one thread.
struct Done {
    took: Duration,
    /// Number of events in each window.
    events: Vec<u32>,
}

/// The work of two threads.
struct Both {
    /// Time until the last thread ended.
    took: Duration,
    /// Number of events of each thread in each window.
    events: [Vec<u32>; 2],
}

/// Simulates a plan in windows. After each window, waits until the other thread has finished its window.
fn simulate(
    plan: &Plan,
    window: Option<Span>,
    own: &Progress,
    other: &Progress,
) -> Result<Done, narrows_sim::Error> {
    let mut running = Run::new(plan).begin()?;
    let meet = |round: u64| {
        own.0.store(round, Ordering::Release);
        while other.0.load(Ordering::Acquire) < round {
            std::hint::spin_loop();
        }
    };
    let (mut events, mut round, mut until) = (Vec::new(), 1, Time::ZERO);
    meet(round);
    let began = Instant::now();
    while !running.is_complete() {
        let before = running.events();
        until = window.map_or(Time::NEVER, |window| until + window);
        running.advance(until);
        if window.is_some() {
            events.push(u32::try_from(running.events() - before).unwrap_or(u32::MAX));
            round += 1;
            meet(round);
        }
    }
    let took = began.elapsed();
    own.0.store(u64::MAX, Ordering::Release);
    Ok(Done { took, events })
}

/// Simulates each plan on its own thread.
fn together(plans: [&Plan; 2], window: Option<Span>) -> Result<Both, Box<dyn Error>> {
    let progress = [Progress(AtomicU64::new(0)), Progress(AtomicU64::new(0))];
    let [one, two] = thread::scope(|scope| {
        [0, 1]
            .map(|i| {
                let (plan, own, other) = (plans[i], &progress[i], &progress[1 - i]);
                scope.spawn(move || simulate(plan, window, own, other))
            })
            .map(thread::ScopedJoinHandle::join)
    });
    let (one, two) = (one.map_err(|_| "a thread panicked")??, two.map_err(|_| "a thread panicked")??);
    Ok(Both { took: one.took.max(two.took), events: [one.events, two.events] })
}

fn alone(plan: &Plan) -> Result<Duration, Box<dyn Error>> {
    let nobody = Progress(AtomicU64::new(u64::MAX));
    Ok(simulate(plan, None, &Progress(AtomicU64::new(0)), &nobody)?.took)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(k: u32, window_ns: u64, duration_ms: u32) -> Result<(), Box<dyn Error>> {
    let hosts = k * k * k / 4;
    let halves = [0..hosts / 2, hosts / 2..hosts];
    let whole = plan(k, duration_ms, 1, &halves)?;
    let [first, second] = halves;
    let (first, second) = (plan(k, duration_ms, 1, &[first])?, plan(k, duration_ms, 2, &[second])?);
    let window = Some(Span::from_nanos(window_ns));
    let (mut free, mut sequential, mut windows, mut counts) = (vec![], vec![], vec![], None);
    for _ in 0..ROUNDS {
        // The variants alternate, so that a disturbance of the machine affects all of them.
        let one = alone(&whole)?.as_secs_f64();
        sequential.push(one / (alone(&first)? + alone(&second)?).as_secs_f64());
        free.push(one / together([&first, &second], None)?.took.as_secs_f64());
        let Both { took, events } = together([&first, &second], window)?;
        windows.push(one / took.as_secs_f64());
        counts = Some(events);
    }
    let [a, b] = counts.ok_or("no rounds")?;
    let total: u64 = a.iter().chain(&b).map(|&n| u64::from(n)).sum();
    let longest: u64 = a.iter().zip(&b).map(|(&a, &b)| u64::from(a.max(b))).sum();
    println!("k = {k}, {hosts} hosts, windows of {window_ns} ns, {total} events, medians of {ROUNDS}");
    println!("events per window: {:.1}", total as f64 / a.len() as f64);
    println!("speed-up if only the larger half of each window counted: {:.2}", total as f64 / longest as f64);
    println!("both halves in turn on one core:    {:.2} times the speed of the whole", median(sequential));
    println!("both halves on two cores, no waits: {:.2}", median(free));
    println!("both halves on two cores, windows:  {:.2}", median(windows));
    Ok(())
}

fn main() -> ExitCode {
    let numbers: Vec<u32> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let result = match numbers[..] {
        [k, window, duration] => measure(k, window.into(), duration),
        _ => Err("usage: two_cores PORTS WINDOW_NS DURATION_MS".into()),
    };
    result.map_or_else(
        |error| {
            eprintln!("{error}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}
