//! Tests of BRF when queues must drain, when capacities change, and when switches and SDN controllers fail and
//! return (BRF-70 to BRF-82, BRF-100 to BRF-105).

use crate::brf_common::*;
use narrows_control::units::{Rate, Time};
use narrows_sim::plan::RatePlan;

/// Returns a network with two greedy flows over a link whose rate changes. `steps` holds the times in ms and the new
/// rates in Mbit/s.
fn varying(steps: &[(u64, u64)], capacity_is_configured: bool, seconds: u64) -> Net {
    let (mut net, senders, client) = star(mbit(100), &[20, 40], resolved(), seconds);
    let steps: Vec<(Time, Rate)> = steps.iter().map(|(t, rate)| (at(*t), mbit(*rate))).collect();
    net.plan.links[0].rate = RatePlan::Steps { steps, period: None };
    net.plan.rate_controllers[0].capacity_is_configured = capacity_is_configured;
    for s in senders {
        net.add(s, client, tcp("brf"));
    }
    net
}

fn queue(r: &narrows_sim::Results, from: f64, to: f64) -> Vec<f64> {
    samples(r, "link_samples", "link", 0, "queue_bytes", from, to)
}

fn throughput(r: &narrows_sim::Results, from: f64, to: f64) -> f64 {
    mean(&samples(r, "link_samples", "link", 0, "throughput_bps", from, to)) / 1e6
}

/// A link loses three quarters of its rate. During the next RTT, data still arrives at the old rate and fills the queue.
/// BRF treats this as a standing queue, and reduces rates by the factor theta1.
#[test]
fn brf_70_to_80_a_standing_queue_is_drained_and_the_rate_recovers() {
    let r = varying(&[(0, 100), (2_000, 25)], true, 4).run();
    assert!(events(&r, "congestion-queue").iter().any(|t| (2.0..2.1).contains(t)));
    let most = queue(&r, 2.0, 2.2).into_iter().fold(0.0, f64::max);
    assert!((25_000.0..=100e6 / 8.0 * 0.06).contains(&most), "{most}");
    // At 25 Mbit/s, the link sends 940 kB in 0.3 s. This is more than the longest queue, so the queue must be short
    // from 2.3 s on.
    assert!(queue(&r, 2.3, 4.0).iter().all(|q| *q <= 12_000.0), "{:?}", queue(&r, 2.3, 4.0));
    assert_near(throughput(&r, 2.5, 4.0), 25.0 * ETA, 0.01);
    assert_near(throughput(&r, 0.5, 2.0), 100.0 * ETA, 0.01);
}

/// Ten new flows start at the same time. Each of them gets its share at once, but the old flows reduce their rates only
/// one RTT later. BRF treats the resulting queue as a burst, and reduces rates by the factor theta2.
#[test]
fn brf_81_a_burst_of_new_flows_is_absorbed() {
    let (mut net, senders, client) = star(mbit(100), &[40, 20], resolved(), 5);
    net.add(senders[0], client, tcp("brf")).count = 2;
    let new_flows = net.add(senders[1], client, tcp("brf"));
    (new_flows.count, new_flows.start) = (10, at(2_000));
    let r = net.run();
    let first = events(&r, "congestion-burst").into_iter().chain(events(&r, "congestion-queue"));
    assert!(first.into_iter().any(|t| (2.0..2.2).contains(&t)));
    assert_eq!(r.u("links", "dropped_packets", 0), 0);
    assert!(queue(&r, 2.4, 5.0).iter().all(|q| *q < 30_000.0));
    for flow in 0..12 {
        assert_near(goodput(&r, flow, 3.0, 5.0), 98.0 * PAYLOAD / 12.0, 0.04);
    }
}

/// In the paper, a port counts as congested if its load reaches the target rate. In the steady state, the load is at
/// the target rate, so the port counts as congested, and the rates of its flows oscillate (BRF-41).
#[test]
fn brf_41_the_literal_steady_state_is_congestion() {
    let found = |params| {
        let (mut net, senders, client) = star(mbit(100), &[20, 20], params, 6);
        net.add(senders[0], client, tcp("brf"));
        net.add(senders[1], client, tcp("brf"));
        let r = net.run();
        ["congestion-burst", "congestion-queue"]
            .into_iter()
            .flat_map(|kind| events(&r, kind))
            .filter(|t| *t > 2.0)
            .count()
    };
    assert!(found(literal()) >= 10);
    assert_eq!(found(resolved()), 0);
}

/// BRF-101: if the capacity is configured, a change takes effect after a few RTTs. The feedback takes one RTT, and a
/// sender at most doubles its rate per RTT.
#[test]
fn brf_101_a_configured_capacity_is_followed_up_and_down() {
    let r = varying(&[(0, 10), (2_000, 80), (4_000, 10), (6_000, 40)], true, 8).run();
    for (from, to, rate) in [(0.5, 2.0, 10.0), (2.5, 4.0, 80.0), (4.5, 6.0, 10.0), (6.3, 8.0, 40.0)] {
        assert_near(throughput(&r, from, to), rate * ETA, 0.02);
    }
    assert!(queue(&r, 4.6, 6.0).iter().all(|q| *q <= 12_000.0));
}

/// BRF-101: if the capacity is measured, the port probes for a higher capacity. Each probe is twice as large as the
/// previous one, up to a maximum. The port notices a lower capacity because its queue grows.
#[test]
fn brf_101_a_measured_capacity_is_followed_up_and_down() {
    let r = varying(&[(0, 10), (2_000, 80), (5_000, 10), (7_000, 40)], false, 10).run();
    for (from, to, rate) in [(1.0, 2.0, 10.0), (3.5, 5.0, 80.0), (6.0, 7.0, 10.0), (8.5, 10.0, 40.0)] {
        let found = throughput(&r, from, to);
        assert!(found >= 0.9 * rate, "{found} of {rate}");
        // The mean queue must be shorter than 20 ms.
        assert!(mean(&queue(&r, from, to)) < rate * 1e6 / 8.0 * 0.02);
    }
}

/// The link is down for two seconds. The flows recover within half a second.
#[test]
fn brf_101_flows_recover_from_an_outage() {
    for configured in [true, false] {
        let mut net = varying(&[(0, 50)], configured, 8);
        let steps = vec![(at(0), mbit(50)), (at(3_000), Rate::ZERO), (at(5_000), mbit(50))];
        net.plan.links[0].rate = RatePlan::Steps { steps, period: None };
        let r = net.run();
        let found = throughput(&r, 5.5, 8.0);
        assert!(found > 0.93 * 50.0, "capacity configured: {configured}, {found}");
    }
}

/// BRF-105, BRF-92: the switch fails for two seconds. The senders detect the failure, halve their rates and then use
/// CUBIC. After the switch has returned, the senders get their shares again. No connection is reset.
#[test]
fn brf_92_and_105_flows_survive_a_failure_of_their_switch() {
    let (mut net, senders, client) = star(mbit(50), &[60, 60], resolved(), 8);
    net.plan.rate_controllers[0].outages = vec![(at(2_000), at(4_000))];
    net.plan.probes.traces = true;
    for s in senders {
        net.add(s, client, tcp("brf"));
    }
    let r = net.run();
    let share = 24.5 * PAYLOAD;
    for flow in 0..2 {
        assert_near(goodput(&r, flow, 1.0, 2.0), share, 0.02);
        // Missing feedback is detected after 4 RTTs (240 ms, or 12 samples).
        let paces = samples(&r, "flow_samples", "flow", flow, "pacing_bps", 2.0, 4.0);
        let fallen = paces.iter().position(|p| *p < 0.6 * 24.5e6).unwrap();
        assert!((10..=17).contains(&fallen), "after {fallen} x 20 ms");
        let cubic = goodput(&r, flow, 3.0, 4.0);
        assert!(cubic > 0.4 * share, "{cubic}");
        assert_near(goodput(&r, flow, 4.8, 8.0), share, 0.03);
    }
}

/// Only the SDN controller fails. The switch then uses its own detector (BRF-73), and the flows keep their shares.
#[test]
fn brf_105_a_switch_works_without_its_controller() {
    let (mut net, senders, client) = star(mbit(100), &[20, 40, 20], resolved(), 8);
    net.sdn().outages = vec![(at(2_000), at(6_000))];
    net.add(senders[0], client, tcp("brf"));
    net.add(senders[1], client, tcp("brf"));
    let new_flows = net.add(senders[2], client, tcp("brf"));
    (new_flows.count, new_flows.start) = (8, at(4_000));
    let r = net.run();
    assert_near(goodput(&r, 0, 2.0, 4.0), 49.0 * PAYLOAD, 0.02);
    let reductions = events(&r, "congestion-burst").into_iter().chain(events(&r, "congestion-queue"));
    assert!(reductions.into_iter().any(|t| (4.0..4.3).contains(&t)), "no congestion was detected");
    for flow in 0..10 {
        assert_near(goodput(&r, flow, 5.0, 8.0), 98.0 * PAYLOAD / 10.0, 0.04);
    }
}
