//! Shares of flows and classes at one BRF port (BRF-12 to BRF-51, BRF-71, BRF-106).

use crate::brf_common::*;
use narrows_control::units::Rate;
use narrows_sim::Results;
use narrows_sim::plan::{AppPlan, FlowPlan, TransportPlan};

const RATE: u64 = 100;

/// Returns the goodput in Mbit/s of a flow with this share of the link.
fn part(share: f64) -> f64 {
    RATE as f64 * ETA * share * PAYLOAD
}

fn limited(flow: &mut FlowPlan, mbit_per_sec: u64, on_off: Option<(u64, u64)>) {
    let (on, off) = on_off.map_or((None, None), |(on, off)| (Some(ms(on)), Some(ms(off))));
    flow.app = AppPlan::Limited { rate: mbit(mbit_per_sec), on, off };
}

#[test]
fn brf_30_to_37_flows_with_different_rtts_get_equal_shares() {
    let found = |params| {
        let (mut net, senders, client) = star(mbit(RATE), &[10, 40, 150], params, 6);
        for s in senders {
            net.add(s, client, tcp("brf"));
        }
        let r = net.run();
        [0, 1, 2].map(|flow| goodput(&r, flow, 3.0, 6.0))
    };
    for mbits in found(resolved()) {
        assert_near(mbits, part(1.0 / 3.0), 0.03);
    }
    // In the literal mode, a flow that starts below its share stays below its share. The third flow starts below its
    // share, because its receive window needs five round trips of 150 ms to grow. In this time, the first two flows
    // take the rest of its share.
    let [first, second, third] = found(literal()).map(|mbits| mbits / (RATE as f64 * PAYLOAD));
    assert_near(first, second, 0.03);
    assert!((0.5..0.95).contains(&(third / first)), "{third} beside {first}");
}

/// Runs two flows. The second flow begins at 2 s. Returns the results and the longest queue from 2 s to 3 s, in
/// bytes.
fn with_a_newcomer(params: serde_json::Value) -> (Results, f64) {
    let (mut net, senders, client) = star(mbit(RATE), &[40, 40], params, 4);
    net.plan.probes.interval = ms(5);
    net.add(senders[0], client, tcp("brf"));
    net.add(senders[1], client, tcp("brf")).start = at(2_000);
    let r = net.run();
    let queue = samples(&r, "link_samples", "link", 0, "queue_bytes", 2.0, 3.0);
    let most = queue.iter().fold(0.0f64, |a, b| a.max(*b));
    (r, most)
}

/// A new flow reaches its share in the third RTT in which it sends data, because its receive window is then large
/// enough. The old flow gets its smaller rate in its next ACK (BRF-64), so the queue stays short.
#[test]
fn brf_31_to_34_a_new_flow_is_admitted_at_once() {
    let (r, most) = with_a_newcomer(resolved());
    assert_near(goodput(&r, 0, 1.0, 2.0), part(1.0), 0.01);
    // The SYN is sent at 2.00 s, and the first data at 2.04 s. At 2.06 s, 45 segments arrive. In each further round
    // trip, three times as many segments arrive as before. The share is 163 segments per round trip.
    assert_near(goodput(&r, 1, 2.06, 2.1), 45.0 * 1448.0 * 8.0 / 40e3, 0.06);
    assert_near(goodput(&r, 1, 2.18, 2.3), part(0.5), 0.03);
    assert_near(goodput(&r, 0, 2.2, 4.0), part(0.5), 0.02);
    assert!(most <= 6_000.0, "{most}");
    let later = samples(&r, "link_samples", "link", 0, "queue_bytes", 2.5, 4.0);
    assert!(mean(&later) < 1_500.0, "drained: {}", mean(&later));
}

/// With the paper's rules, a flow gets its rate only once per RTT. The bytes of the new flow therefore wait in the
/// queue until the old flow has reduced its rate (TV-12).
#[test]
fn tv_12_the_papers_rules_cause_a_queue() {
    let (_, most) = with_a_newcomer(literal());
    // The old flow gets feedback every 40 ms, and the feedback takes 20 ms to arrive. The queue therefore grows at 49
    // Mbit/s for at most 60 ms.
    assert!((10_000.0..=49e6 / 8.0 * 0.060).contains(&most), "{most}");
}

#[test]
fn brf_38_to_42_unused_shares_go_to_flows_that_can_use_them() {
    let (mut net, senders, client) = star(mbit(RATE), &[20, 20, 20], resolved(), 6);
    limited(net.add(senders[0], client, tcp("brf")), 8, None);
    net.add(senders[1], client, tcp("brf"));
    net.add(senders[2], client, tcp("brf"));
    let r = net.run();
    assert_near(goodput(&r, 0, 2.0, 6.0), 8.0, 0.01);
    // The port reserves up to 12 % more than the first flow uses (BRF-38 sets 10 %).
    let others = [1, 2].map(|f| goodput(&r, f, 2.0, 6.0) / PAYLOAD);
    for found in others {
        assert!(
            (0.5 * (98.0 - 1.12 * 8.0 / PAYLOAD)..=0.5 * (98.0 - 8.0 / PAYLOAD)).contains(&found),
            "{found}"
        );
    }
}

/// Each of two flows needs only a tenth of the link, but always has an allocation of almost half of the link. If the
/// demand of a flow jumps, the flow can use this allocation at once. It need not wait until the port has measured the
/// new demand.
#[test]
fn brf_42_a_jump_of_demand_is_served_at_once() {
    let (mut net, senders, client) = star(mbit(RATE), &[20, 20], resolved(), 4);
    net.plan.probes.interval = ms(10);
    limited(net.add(senders[0], client, tcp("brf")), 10, None);
    limited(net.add(senders[1], client, tcp("brf")), 10, None);
    let r = net.run();
    for flow in 0..2 {
        let allocated = samples(&r, "flow_samples", "flow", flow, "allocation_bps", 2.0, 4.0);
        assert!(allocated.iter().all(|a| *a > 40e6), "{allocated:?}");
        assert_near(goodput(&r, flow, 1.0, 4.0), 10.0, 0.01);
    }
}

/// An idle flow has no allocation, and gets its share an RTT after it resumes.
#[test]
fn brf_16_idle_and_restart() {
    let (mut net, senders, client) = star(mbit(RATE), &[20, 20], resolved(), 10);
    limited(net.add(senders[0], client, tcp("brf")), 40, Some((2_000, 2_000)));
    net.add(senders[1], client, tcp("brf"));
    let r = net.run();
    assert_near(goodput(&r, 0, 1.0, 1.9), 40.0, 0.02);
    assert_near(goodput(&r, 1, 2.4, 3.9), part(1.0), 0.02);
    let held = samples(&r, "flow_samples", "flow", 0, "allocation_bps", 2.6, 3.9);
    assert!(held.iter().all(|a| a.is_nan()), "an idle flow has an allocation: {held:?}");
    // The flow resumes at 4.0 s, restarts with ten packets per RTT (BRF-94), and doubles its rate in each further RTT.
    assert_near(goodput(&r, 0, 4.1, 4.4), 40.0, 0.1);
    assert_near(goodput(&r, 0, 4.4, 5.9), 40.0, 0.02);
    assert!(goodput(&r, 1, 4.4, 5.9) > 47.0);
}

/// If shares are by subscriber (sender address or mark), nine flows of one subscriber together get as much as one flow
/// of another subscriber (BRF-106). If shares are by flow, the nine flows together get nine times as much as the one
/// flow. Shares by receiver address give the same result, because all flows have the same receiver.
#[test]
fn brf_106_a_subscriber_has_one_share_for_all_its_flows() {
    let found = |share: &str| {
        let params = serde_json::json!({ "share": share });
        let (mut net, senders, client) = star(mbit(RATE), &[20, 20], params, 6);
        net.add(senders[0], client, tcp("brf"));
        for _ in 0..9 {
            net.add(senders[1], client, tcp("brf")).class = 1;
        }
        let r = net.run();
        (0..10).map(|flow| goodput(&r, flow, 3.0, 6.0)).collect::<Vec<_>>()
    };
    for share in ["sender-address", "mark"] {
        let flows = found(share);
        assert_near(flows[0], part(0.5), 0.02);
        flows[1..].iter().for_each(|mbits| assert_near(*mbits, part(0.5 / 9.0), 0.03));
    }
    for share in ["flow", "receiver-address"] {
        found(share).into_iter().for_each(|mbits| assert_near(mbits, part(0.1), 0.03));
    }
}

/// One subscriber has a single BRF flow. The other subscriber has nine flows in the class of CUBIC. The first
/// subscriber still gets half of the link (BRF-20).
#[test]
fn brf_106_connections_do_not_enlarge_the_class_of_a_subscriber() {
    let found = |share: &str| {
        let params = serde_json::json!({ "share": share });
        let (mut net, senders, client) = star(mbit(RATE), &[20, 20], params, 10);
        net.add(senders[0], client, tcp("brf"));
        for _ in 0..9 {
            net.add(senders[1], client, tcp("cubic"));
        }
        goodput(&net.run(), 0, 5.0, 10.0)
    };
    assert_near(found("flow"), part(0.1), 0.05);
    assert_near(found("sender-address"), part(0.5), 0.05);
}

/// Each flow gets at least two packets per period, or its equal share if its equal share is smaller. Greedy flows do
/// not starve a flow that sends little data (BRF-47).
#[test]
fn brf_47_no_flow_is_starved() {
    let (mut net, senders, client) = star(mbit(RATE), &[20, 20], resolved(), 5);
    net.add(senders[0], client, tcp("brf")).count = 40;
    limited(net.add(senders[1], client, tcp("brf")), 1, Some((20, 400)));
    let r = net.run();
    let floor = (2.0 * 1500.0 * 8.0 / 0.045f64).min(98e6 / 41.0);
    for flow in 0..41 {
        let allocated = samples(&r, "flow_samples", "flow", flow, "allocation_bps", 0.5, 5.0);
        assert!(allocated.iter().filter(|a| !a.is_nan()).all(|a| *a >= floor), "flow {flow}: {allocated:?}");
    }
}

#[test]
fn brf_20_to_22_classes_share_by_their_number_of_flows_and_borrow() {
    // Number of BRF flows, and number of CUBIC flows.
    for (rated, other) in [(1, 1), (3, 1), (1, 3)] {
        let (mut net, senders, client) = star(mbit(RATE), &[20, 20], resolved(), 12);
        net.plan.rate_controllers[0].limit = packets(200);
        net.add(senders[0], client, tcp("brf")).count = rated;
        // The results list flows in the order of their starts. The CUBIC flows start later, so the BRF flows come
        // first.
        let cubic = net.add(senders[1], client, tcp("cubic"));
        (cubic.count, cubic.start) = (other, at(10));
        let r = net.run();
        let n = u64::from(rated + other);
        let sum = |flows: std::ops::Range<u64>| flows.map(|f| goodput(&r, f, 4.0, 12.0)).sum::<f64>();
        let share = f64::from(rated) / n as f64;
        assert_near(sum(0..u64::from(rated)), part(share), 0.03);
        // CUBIC may borrow unused capacity, so eta does not limit it.
        let cubic = sum(u64::from(rated)..n) / (RATE as f64 * PAYLOAD);
        assert!((0.95 * (1.0 - share)..=1.0 - ETA * share + 0.005).contains(&cubic), "{cubic}");
    }
}

/// A BRF flow uses a tenth of its half of the link, and CUBIC borrows the rest of this half (BRF-22).
#[test]
fn brf_22_an_unused_share_is_borrowed() {
    let (mut net, senders, client) = star(mbit(RATE), &[20, 20], resolved(), 12);
    net.plan.rate_controllers[0].limit = packets(200);
    limited(net.add(senders[0], client, tcp("brf")), 5, None);
    net.add(senders[1], client, tcp("cubic"));
    let r = net.run();
    assert_near(goodput(&r, 0, 4.0, 12.0), 5.0, 0.02);
    let cubic = goodput(&r, 1, 4.0, 12.0);
    assert!(cubic > 0.92 * (RATE as f64 * PAYLOAD - 5.0), "{cubic}");
}

#[test]
fn brf_21_and_23_udp_is_policed_to_its_share_and_never_queued() {
    let (mut net, senders, client) = star(mbit(RATE), &[20, 20], resolved(), 6);
    net.add(senders[0], client, tcp("brf"));
    net.add(senders[1], client, TransportPlan::Udp { rate: mbit(40), packet: 1500 });
    let r = net.run();
    assert_near(goodput(&r, 0, 2.0, 6.0), part(0.95), 0.02);
    let udp = r.u("flows", "delivered_bytes", 1) as f64 * 8.0 / 6e6;
    assert!((0.9 * 5.0..=5.0 * 1500.0 / 1472.0).contains(&udp), "{udp}");
}

/// The port has a ceiling for UDP. While no TCP flow is active, a UDP flood may use up to this ceiling. While TCP flows
/// are active, the flood gets only UDP's share. A UDP flow with a small rate loses no packets.
#[test]
fn brf_23_udp_borrows_what_tcp_leaves_idle() {
    let params = serde_json::json!({ "udp_ceiling": 0.95 });
    let (mut net, senders, client) = star(mbit(RATE), &[20, 20, 20, 20], params, 10);
    net.plan.rate_controllers[0].limit = packets(1000);
    for (sender, rate) in [(senders[0], 200), (senders[1], 2)] {
        net.add(sender, client, TransportPlan::Udp { rate: mbit(rate), packet: 1500 });
    }
    for sender in &senders[2..] {
        net.add(*sender, client, tcp("brf")).start = at(3_000);
    }
    let r = net.run();
    // Converts the goodput to L3 bytes: a packet of 1500 bytes has 1472 bytes of payload.
    let udp = |flow, from, to| goodput(&r, flow, from, to) / (1472.0 / 1500.0);
    assert_near(udp(0, 1.0, 3.0) + udp(1, 1.0, 3.0), 95.0, 0.01);
    assert_near(udp(0, 5.0, 10.0) + udp(1, 5.0, 10.0), 5.0, 0.1);
    for (from, to) in [(1.0, 3.0), (5.0, 10.0)] {
        assert_near(udp(1, from, to), 2.0, 0.01);
    }
    for flow in [2, 3] {
        assert_near(goodput(&r, flow, 5.0, 10.0), part(0.95 / 2.0), 0.02);
    }
}

#[test]
fn brf_21_udp_reserves_only_what_it_needs() {
    let params = serde_json::json!({ "udp_ceiling": 0.95 });
    let (mut net, senders, client) = star(mbit(RATE), &[20, 20], params, 6);
    net.add(senders[0], client, tcp("brf"));
    net.add(senders[1], client, TransportPlan::Udp { rate: Rate::from_bits_per_sec(20_000), packet: 100 });
    let r = net.run();
    assert_near(goodput(&r, 0, 2.0, 6.0), part(1.0 - 0.05 / 16.0), 0.01);
    assert_near(goodput(&r, 1, 2.0, 6.0), 0.02 * 72.0 / 100.0, 0.05);
}

/// A mouse is a flow with a small rate, and an elephant is a flow with a large rate. Packets of mice are sent before
/// packets of elephants (BRF-50, BRF-51).
#[test]
fn brf_50_and_51_a_mouse_does_not_wait_behind_elephants() {
    let rtt = |layers: bool, elephants: u32| {
        let params = serde_json::json!({ "mode": "resolved", "layers": layers });
        let (mut net, senders, client) = star(mbit(20), &[20, 20], params, 8);
        let mouse = net.add(senders[1], client, tcp("brf"));
        mouse.app = AppPlan::Limited { rate: Rate::from_bits_per_sec(500_000), on: None, off: None };
        let elephant = net.add(senders[0], client, tcp("brf"));
        (elephant.start, elephant.count) = (at(100), elephants);
        let r = net.run();
        let rtts = samples(&r, "flow_samples", "flow", 0, "rtt_s", 2.0, 8.0);
        assert_near(goodput(&r, 0, 2.0, 8.0), 0.5, 0.03);
        1e3 * mean(&rtts)
    };
    let (alone, with, without) = (rtt(true, 1), rtt(true, 8), rtt(false, 8));
    // If an elephant's packet is already being sent, the mouse's packet must wait for the rest of its transmission.
    // This takes at most 0.6 ms.
    assert!(with - alone < 0.3, "{with}, alone {alone}");
    assert!(without - alone > 2.0 * (with - alone), "{without}, with layers {with}, alone {alone}");
}

/// In the literal mode (BRF-71), the detector measures the queue of the whole port, and CUBIC always has a queue. The
/// detector therefore reduces the rates of BRF flows, and CUBIC borrows the freed capacity. In the resolved mode, the
/// detector measures only the queue of the BRF class.
#[test]
fn brf_71_a_port_wide_detector_lets_cubic_starve_brf() {
    let share = |params| {
        let (mut net, senders, client) = star(mbit(RATE), &[20, 20], params, 10);
        net.plan.rate_controllers[0].limit = packets(200);
        net.add(senders[0], client, tcp("brf"));
        net.add(senders[1], client, tcp("cubic"));
        let r = net.run();
        goodput(&r, 0, 4.0, 10.0) / (RATE as f64 * PAYLOAD)
    };
    let (as_printed, as_meant) = (share(literal()), share(resolved()));
    assert!(as_printed < 0.1, "{as_printed}");
    assert_near(as_meant, 0.49, 0.03);
}

/// A hundred flows on a link of 10 Mbit/s get 98 kbit/s each, which is a sixth of a packet per RTT. If senders sent
/// faster than this, the queue would never drain. BRF-104 lets a sender ignore rates below one segment per second, but
/// these rates are higher.
#[test]
fn shares_of_less_than_a_packet_per_rtt_leave_no_queue() {
    let (mut net, senders, client) = star(mbit(10), &[20], resolved(), 40);
    let flows = net.add(senders[0], client, tcp("brf"));
    (flows.count, flows.spacing) = (100, ms(20));
    net.plan.probes.interval = ms(100);
    let r = net.run();
    let mut queue = samples(&r, "link_samples", "link", 0, "queue_bytes", 20.0, 40.0);
    queue.sort_by(f64::total_cmp);
    let p95 = queue[queue.len() * 95 / 100];
    // If packets arrived at random times at 98 % of the link's rate, the queue would have 24 packets on average
    // (M/D/1). Paced flows must have a shorter queue.
    assert!(p95 <= 36_000.0, "{p95}");
    for flow in 0..100 {
        assert_near(goodput(&r, flow, 20.0, 40.0), 0.098 * PAYLOAD, 0.02);
    }
}
