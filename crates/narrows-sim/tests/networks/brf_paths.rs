//! Feedback over several switches, and paths without a BRF switch (BRF-60 to BRF-64, BRF-90 to BRF-94).

use crate::brf_common::*;
use narrows_control::units::Span;
use narrows_sim::plan::LossPlan;

/// Returns a network with a line of switches and a host at each end. `rates` holds the rates of the links between the
/// switches in the direction of the data, in Mbit/s.
fn line(rates: &[u64], seconds: u64) -> (Net, u32, u32) {
    let mut net = Net::new(seconds);
    let nodes: Vec<u32> = (0..=rates.len()).map(|i| net.node(format!("R{i}"))).collect();
    for (ends, rate) in nodes.windows(2).zip(rates) {
        let link = net.duplex(ends[0], ends[1], [mbit(*rate), mbit(1000)], ms(3));
        net.brf(link, resolved());
    }
    net.sdn();
    let (a, b) = (net.host(nodes[0], ms(4)), net.host(nodes[rates.len()], ms(1)));
    (net, a, b)
}

#[test]
fn brf_60_to_62_the_slowest_link_of_several_switches_sets_the_rate() {
    for rates in [&[40, 100][..], &[100, 40], &[60, 100, 40], &[60, 40, 100], &[40, 60, 100]] {
        let (mut net, a, b) = line(rates, 5);
        net.add(a, b, tcp("brf"));
        let r = net.run();
        assert_near(goodput(&r, 0, 2.0, 5.0), 40.0 * ETA * PAYLOAD, 0.02);
        // If each switch wrote its rate independently of the others, the sender's rate would alternate
        // between the switches' rates.
        let paces = samples(&r, "flow_samples", "flow", 0, "pacing_bps", 2.0, 5.0);
        assert!(paces.iter().all(|p| (p / 39.2e6 - 1.0).abs() < 0.02), "{rates:?}: {paces:?}");
    }
}

/// Returns the goodput in Mbit/s and the mean queue at switch B in bytes, from 4 s to 6 s.
///
/// Data passes switch A (100 Mbit/s) before switch B (30 Mbit/s). ACKs pass only A. With an SDN controller, B sends its
/// rate to A after a second without ACKs, and A writes this rate into ACKs (BRF-63). By 3.6 s, the queue at B has
/// drained.
fn asymmetric(sdn: bool) -> (f64, f64) {
    let mut net = Net::new(6);
    let [a, b, client, detour] = ["A", "B", "C", "D"].map(|name| net.node(name));
    let first = net.duplex(a, b, [mbit(100), mbit(1000)], ms(3));
    let second = net.duplex(b, client, [mbit(30), mbit(1000)], ms(3));
    net.duplex(a, detour, [mbit(1000); 2], ms(10));
    net.duplex(detour, client, [mbit(1000); 2], ms(10));
    net.brf(first, resolved());
    net.brf(second, resolved()).limit = packets(100_000);
    if sdn {
        net.sdn();
    }
    let sender = net.host(a, ms(4));
    net.add(sender, client, tcp("brf")).return_path = Some(vec![client, detour, a, sender]);
    let r = net.run();
    let queue = samples(&r, "link_samples", "link", u64::from(second), "queue_bytes", 4.0, 6.0);
    (goodput(&r, 0, 4.0, 6.0), mean(&queue))
}

#[test]
fn brf_63_another_switch_writes_the_rate_of_a_switch_without_acks() {
    let (with, queue) = asymmetric(true);
    assert_near(with, 30.0 * ETA * PAYLOAD, 0.02);
    assert!(queue < 3_000.0, "{queue}");
    let (_, queue) = asymmetric(false);
    assert!(queue > 100_000.0, "without a controller the rate is not written: {queue}");
}

/// Data passes only switch A, and ACKs pass only switch B. B did not see the SYN, so it writes no rate into the
/// SYN-ACK, and the flow starts with CUBIC (BRF-93). After a second without ACKs, A sends the rate to B. B writes this
/// rate into ACKs, and the sender uses the rate, because both ends support BRF.
#[test]
fn brf_63_a_switch_without_the_syn_writes_the_rate_of_a_switch_without_acks() {
    let mut net = Net::new(8);
    let [entry, a, client, b] = ["E", "A", "C", "B"].map(|name| net.node(name));
    net.duplex(entry, a, [mbit(1000); 2], ms(1));
    let bottleneck = net.duplex(a, client, [mbit(100), mbit(1000)], ms(9));
    net.duplex(client, b, [mbit(1000); 2], ms(5));
    let back = net.duplex(b, entry, [mbit(50), mbit(1000)], ms(5));
    net.brf(bottleneck, resolved());
    net.brf(back, resolved());
    net.sdn();
    for start in [0, 500] {
        let sender = net.host(entry, ms(1));
        let flow = net.add(sender, client, tcp("brf"));
        flow.return_path = Some(vec![client, b, entry, sender]);
        flow.start = at(start);
    }
    let r = net.run();
    for flow in 0..2 {
        assert_near(goodput(&r, flow, 3.0, 8.0), 49.0 * PAYLOAD, 0.03);
        let paces = samples(&r, "flow_samples", "flow", flow, "pacing_bps", 3.0, 8.0);
        assert!(paces.iter().all(|p| (p / 49e6 - 1.0).abs() < 0.03), "flow {flow} is not rated: {paces:?}");
    }
    // 62,500 bytes are a queue of 5 ms at 100 Mbit/s.
    let mut queue = samples(&r, "link_samples", "link", u64::from(bottleneck), "queue_bytes", 4.0, 8.0);
    queue.sort_by(f64::total_cmp);
    let p95 = queue[queue.len() * 95 / 100];
    assert!(p95 < 62_500.0, "{p95}");
}

/// On a path without a BRF switch, the sender uses CUBIC from the first packet (BRF-93).
#[test]
fn brf_93_without_a_switch_the_sender_is_cubic() {
    let found = |cc: &str| {
        let mut plan = path(mbit(20), ms(40), fifo(packets(60)), 10);
        plan.flows = vec![bulk(cc)];
        let r = run(&plan);
        (r.goodput(0), r.u("flows", "retransmits", 0))
    };
    let ((brf, lost), (cubic, lost_by_cubic)) = (found("brf"), found("cubic"));
    // A small difference is allowed, because BRF's handshake segments carry one more option than those of CUBIC.
    assert_near(brf, cubic, 0.01);
    assert!(lost > 0 && lost.abs_diff(lost_by_cubic) <= lost_by_cubic / 5 + 5, "{lost}, {lost_by_cubic}");
}

/// In the resolved and in the literal mode, loss after the switch reduces goodput only by the lost packets (BRF-91).
#[test]
fn brf_91_a_loss_never_changes_the_rate() {
    // In the literal mode, the detector reduces rates slightly in every second period (BRF-41).
    for (params, cc, eta, within) in [(resolved(), "brf", ETA, 0.01), (literal(), "brf-literal", 1.0, 0.05)] {
        let (mut net, senders, client) = star(mbit(50), &[20], params, 8);
        net.plan.links[0].loss = vec![(at(0), LossPlan::Bernoulli { p: 0.05 })];
        net.add(senders[0], client, tcp(cc));
        let r = net.run();
        assert_near(goodput(&r, 0, 1.0, 8.0), 50.0 * eta * 0.95 * PAYLOAD, within);
        // The window is at most twice the data that the sender sends at 49 Mbit/s in an RTT of 25 ms (BRF-91).
        if eta < 1.0 {
            let in_flight = samples(&r, "flow_samples", "flow", 0, "in_flight", 1.0, 8.0);
            assert!(in_flight.iter().all(|n| *n <= 2.0 * 49e6 / 8.0 * 0.025 / 1500.0), "{in_flight:?}");
        }
    }
}

/// A fifth of the data is lost before it reaches the switch. The flow's data therefore arrives at a lower rate than the
/// flow's allocation. The switch must not reduce the allocation for this reason (BRF-100).
#[test]
fn brf_100_loss_before_the_switch_does_not_reduce_the_allocation() {
    let (mut net, senders, client) = star(mbit(20), &[20, 30], resolved(), 60);
    for (i, sender) in senders.into_iter().enumerate() {
        net.plan.links[2 + 2 * i].loss = vec![(at(0), LossPlan::Bernoulli { p: 0.2 })];
        net.add(sender, client, tcp("brf")).start = at(100 * i as u64);
    }
    net.plan.probes.interval = ms(1_000);
    let r = net.run();
    for flow in 0..2 {
        let sent = samples(&r, "flow_samples", "flow", flow, "send_bps", 2.5, 60.5);
        assert!(sent.len() == 58 && sent.iter().all(|s| *s >= 0.95 * 9.8e6), "flow {flow}: {sent:?}");
    }
}

/// Two thousand SYNs per second get no answers. They must not affect established flows, and the switch's table of
/// half-open flows must not exceed its limit (BRF-104).
#[test]
fn brf_104_a_flood_of_syns_evicts_no_established_flow() {
    let (mut net, senders, client) = star(mbit(100), &[20, 20, 20], resolved(), 6);
    net.plan.probes.traces = true;
    let nowhere = net.host(client, ms(1));
    let back = net.plan.links.len() - 2;
    net.plan.links[back].loss = vec![(at(0), LossPlan::Bernoulli { p: 1.0 })];
    net.add(senders[0], client, tcp("brf"));
    net.add(senders[1], client, tcp("brf"));
    let flood = net.add(senders[2], nowhere, tcp("brf"));
    (flood.count, flood.start, flood.spacing) = (8_000, at(1_000), Span::from_micros(500));
    let r = net.run();
    for flow in 0..2 {
        assert_near(goodput(&r, flow, 2.0, 6.0), 49.0 * PAYLOAD, 0.04);
    }
    let half_open = traces(&r, "half_open");
    let most = half_open.iter().fold(0.0f64, |a, b| a.max(*b));
    assert!((4_000.0..=4_096.0).contains(&most), "{most}");
}

/// Returns the values of a traced variable.
fn traces(r: &narrows_sim::Results, key: &str) -> Vec<f64> {
    let table = r.tables.iter().find(|t| t.name == "traces").unwrap();
    let values = table.str("key").unwrap().iter().zip(table.f64("value").unwrap());
    values.filter(|(k, _)| *k == key).map(|(_, v)| *v).collect()
}
