//! Runs a QUIC flow in the simulator, for developers of quinn:
//!
//! ```sh
//! cargo run --release -p narrows-quinn --example bulk -- cc=bbr rate=20 rtt=40 queue=4 jitter=600 seconds=15
//! ```
//!
//! The example prints the row of the flow in the results, and the time that the simulation took. If the connection
//! ended, it also prints the reason.

use std::collections::BTreeMap;
use std::time::Instant;

use narrows_control::units::{Bytes, Rate, Span};
use narrows_quinn::Quinn;
use narrows_sim::plan::{FlowPlan, JitterPlan, LimitPlan, LinkPlan, Plan, StackPlan, TransportPlan};
use narrows_sim::{Column, Run};

/// The settings with their defaults.
const SETTINGS: [(&str, &str, &str); 8] = [
    ("cc", "cubic", "bbr, cubic or newreno of quinn, or narrows:NAME"),
    ("rate", "100", "rate of the bottleneck, Mbit/s"),
    ("rtt", "40", "RTT without a queue, ms"),
    ("queue", "1", "queue of the bottleneck, in bandwidth-delay products"),
    ("jitter", "0", "largest random delay of a packet on the way back, us"),
    ("window", "1250000", "window of the receiver, bytes; the default is quinn's"),
    ("seconds", "60", "simulated time"),
    ("seed", "1", "seed of all random values"),
];

fn settings() -> Result<BTreeMap<&'static str, String>, String> {
    let mut settings = BTreeMap::from(SETTINGS.map(|(name, value, _)| (name, value.to_owned())));
    for argument in std::env::args().skip(1) {
        let known = argument.split_once('=').and_then(|(name, value)| Some((settings.get_mut(name)?, value)));
        let Some((setting, value)) = known else {
            let list = SETTINGS.map(|(name, value, meaning)| format!("  {name}={value}  {meaning}"));
            return Err(format!("found {argument}, expected NAME=VALUE with one of\n{}", list.join("\n")));
        };
        *setting = value.to_owned();
    }
    Ok(settings)
}

#[expect(clippy::disallowed_methods, reason = "measures the time that the simulation takes")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = settings()?;
    let number = |name: &str| {
        settings[name].parse::<f64>().map_err(|error| format!("{name}={}: {error}", settings[name]))
    };
    let rate = Rate::from_bits_per_sec((number("rate")? * 1e6) as u64);
    let rtt = Span::from_secs_f64(number("rtt")? / 1e3);
    let queue = LimitPlan::bytes(Bytes::new((rate.bytes_in(rtt).as_f64() * number("queue")?) as u64));
    let mut back = LinkPlan::new("back", (1, 0), rate, rtt.scale(1, 2), LimitPlan::default());
    let jitter = Span::from_secs_f64(number("jitter")? / 1e6);
    back.jitter = (jitter > Span::ZERO).then_some(JitterPlan { max: jitter, reorder: false });
    let stack = StackPlan {
        name: "quinn".to_owned(),
        cc: settings["cc"].as_str().into(),
        receive_window: Some(Bytes::new(number("window")? as u64)),
    };
    let plan = Plan {
        seed: number("seed")? as u64,
        duration: Span::from_secs_f64(number("seconds")?),
        nodes: vec!["sender".into(), "receiver".into()],
        links: vec![LinkPlan::new("forward", (0, 1), rate, rtt.scale(1, 2), queue), back],
        flows: vec![FlowPlan {
            transport: TransportPlan::Stack(stack),
            ..FlowPlan::bulk("quic", (0, 1), "cubic")
        }],
        ..Plan::default()
    };
    let begin = Instant::now();
    let results = Run::new(&plan).transports(&Quinn::default()).start()?;
    let took = begin.elapsed();
    for (name, column) in &results.table("flows").ok_or("no table of flows")?.columns {
        let value = match column {
            Column::F64(values) => values.first().map(f64::to_string),
            Column::U64(values) => values.first().map(u64::to_string),
            Column::Str(values) => values.first().cloned(),
        };
        println!("{name}: {}", value.unwrap_or_default());
    }
    let events = results.table("events").ok_or("no table of events")?;
    for (at, kind) in events.f64("t_s").into_iter().flatten().zip(events.str("kind").into_iter().flatten()) {
        println!("{at:.3} s: {kind}");
    }
    println!("{:.2} s for {} data packets", took.as_secs_f64(), results.counts.delivered_packets);
    Ok(())
}
