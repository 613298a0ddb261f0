//! Tests with crowds. A crowd has so many flows that the fair share is less than one packet per RTT (BRF-16, BRF-30,
//! BRF-80, BRF-90).

use crate::brf_common::*;
use narrows_sim::Results;
use narrows_sim::plan::{AppPlan, SizePlan};

/// Runs a crowd whose flows start in 20 groups. The first group starts at 0.1 s. The other groups start at equal
/// intervals within `arrive_ms` ms.
fn crowd(flows: u32, rate_mbit: u64, arrive_ms: u64) -> Results {
    const GROUPS: u64 = 20;
    let (mut net, senders, client) = star(mbit(rate_mbit), &[20], resolved(), 8);
    net.plan.probes.interval = ms(5);
    for i in 0..GROUPS {
        let group = net.add(senders[0], client, tcp("brf"));
        (group.count, group.start) = (flows / GROUPS as u32, at(100 + i * arrive_ms / GROUPS));
    }
    net.run()
}

/// Returns the 99th percentile of the queueing delay in ms, measured from `from` seconds on.
fn p99(r: &Results, rate_mbit: u64, from: f64) -> f64 {
    let mut queue = samples(r, "link_samples", "link", 0, "queue_bytes", from, 8.0);
    queue.sort_by(f64::total_cmp);
    queue[queue.len() * 99 / 100] * 8.0 / (rate_mbit as f64 * 1e3)
}

fn throughput(r: &Results, from: f64) -> f64 {
    mean(&samples(r, "link_samples", "link", 0, "throughput_bps", from, 8.0)) / 1e6
}

/// Each flow's share is one packet in 15 RTTs. All flows have started by 1.1 s.
#[test]
fn the_queue_of_2500_flows_on_100_mbit_is_short_two_seconds_after_they_arrived() {
    let r = crowd(2500, 100, 1000);
    let delay = p99(&r, 100, 3.1);
    println!("p99 {delay:.1} ms at {:.1} Mbit/s", throughput(&r, 3.1));
    assert!(delay < 10.0, "{delay}");
    assert!(throughput(&r, 3.1) > 92.0, "{}", throughput(&r, 3.1));
}

/// All flows start at the same time. The queue drains because the port reduces their rates below the usual minimum of a
/// flow's rate: a reduction also applies to this minimum (BRF-47).
#[test]
fn the_queue_of_100_simultaneous_flows_on_10_mbit_drains_within_two_seconds() {
    let r = crowd(100, 10, 0);
    let delay = p99(&r, 10, 2.1);
    println!("p99 {delay:.1} ms at {:.1} Mbit/s", throughput(&r, 2.1));
    // The transmission of a packet takes 1.2 ms, so a delay of 30 ms is a queue of 25 packets. A short queue is normal,
    // because the packets of different flows arrive at random times.
    assert!(delay < 30.0, "{delay}");
    assert!(throughput(&r, 2.1) > 9.0, "{}", throughput(&r, 2.1));
}

#[test]
fn events_name_flows_that_have_ended_by_plan_and_slot() {
    let (mut net, senders, client) = star(mbit(100), &[20], resolved(), 5);
    let flow = net.add(senders[0], client, tcp("brf"));
    flow.name = "web".into();
    flow.app = AppPlan::Poisson { per_sec: 50.0, size: SizePlan::Fixed { bytes: 20_000.0 } };
    let r = net.run();
    let events = r.table("events").expect("events");
    let (kinds, entities) = (events.str("kind").expect("kinds"), events.str("entity").expect("entities"));
    // Events of the kind `state-...` are about the port, not about a flow.
    let of_flows = kinds.iter().zip(entities).filter(|(kind, _)| !kind.starts_with("state-"));
    let entities: Vec<&String> = of_flows.map(|(_, entity)| entity).collect();
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    let is_live = |name: &&&String| name.strip_prefix("web.").is_some_and(is_number);
    let slot =
        |name: &&String| name.strip_prefix("web (ended, slot ")?.strip_suffix(')')?.parse::<u32>().ok();
    let ended: Vec<_> = entities.iter().filter_map(slot).collect();
    assert!(!ended.is_empty() && ended.iter().all(|slot| *slot < 10), "{ended:?}");
    assert_eq!(entities.iter().filter(is_live).count() + ended.len(), entities.len(), "{entities:?}");
}
