//! Tests PACEC in a network: the reports of ports, the controller of the domain, and the ingress switches (PAC-1 to
//! PAC-24).

use crate::brf_common::{self, Net, assert_near, goodput};
use crate::common::*;
use narrows_control::units::Span;
use narrows_sim::plan::{AppPlan, ControllerPlan, LimitPlan};
use serde_json::{Value, json};

/// Payload bytes of a full packet, divided by its L3 bytes.
const PAYLOAD: f64 = 1448.0 / 1500.0;
const ETA: f64 = 0.98;

/// Returns a network of the routers R0 - R1 - R2 - R3 in a line. The links have 100, 40 and 100 Mbit/s and a delay of
/// 10 ms each. PACEC runs at every port towards R3.
fn line(seconds: u64, params: Value) -> (Net, Vec<u32>) {
    let mut net = Net::new(seconds);
    let routers: Vec<u32> = (0..4).map(|i| net.node(format!("R{i}"))).collect();
    for (i, rate) in [100, 40, 100].into_iter().enumerate() {
        let link = net.duplex(routers[i], routers[i + 1], [mbit(rate), mbit(1000)], ms(10));
        net.plan.rate_controllers.push(ControllerPlan {
            kind: "pacec".into(),
            link,
            shape: None,
            capacity_is_configured: true,
            limit: LimitPlan::default(),
            params: values(params.clone()),
            outages: Vec::new(),
        });
        net.plan.probes.links.push(link);
    }
    net.sdn().delay = ms(5);
    (net, routers)
}

/// TV-P4: the first two links have 100 and 40 Mbit/s. Flow a uses the first link, flow b both links, and flow
/// c the second link. Their shares are 80, 20 and 20 Mbit/s.
#[test]
fn tv_p4_max_min_over_a_line() {
    for (signal, cc) in [("out-of-band", "pacec"), ("in-band", "brf")] {
        let (mut net, r) = line(8, json!({ "signal": signal }));
        let hosts: Vec<u32> = (0..6).map(|i| net.host(r[[0, 0, 1, 1, 2, 2][i]], Span::ZERO)).collect();
        for (from, to) in [(0, 2), (1, 4), (3, 5)] {
            net.add(hosts[from], hosts[to], tcp(cc));
        }
        let results = net.run();
        for (flow, share) in [80.0, 20.0, 20.0].into_iter().enumerate() {
            let expected = share * ETA * PAYLOAD;
            assert_near(goodput(&results, flow as u64, 4.0, 8.0), expected, 0.03);
        }
        assert_eq!(results.u("links", "dropped_packets", 0) + results.u("links", "dropped_packets", 2), 0);
    }
}

/// PAC-4: with any control period, a rate applies until the next update. A lone flow gets the same rate in each
/// period, and keeps the link full.
#[test]
fn pac_4_a_flow_keeps_its_rate_with_any_control_period() {
    for (signal, cc) in [("out-of-band", "pacec"), ("in-band", "brf")] {
        for tc in [10, 30, 50, 70, 120, 150, 300, 500, 700, 1_000, 1_500, 2_000] {
            let sample = Span::from_micros(tc * 200).as_nanos();
            let (mut net, r) = line(20, json!({ "signal": signal, "sample": sample }));
            let (from, to) = (net.host(r[0], Span::ZERO), net.host(r[1], Span::ZERO));
            net.add(from, to, tcp(cc));
            let found = goodput(&net.run(), 0, 5.0, 20.0);
            let expected = 100.0 * ETA * PAYLOAD;
            assert!((found / expected - 1.0).abs() < 0.01, "{cc} {signal}, Tc = {tc} ms: {found}");
        }
    }
}

/// PAC-18: the law as printed in the paper also subtracts the flows' own traffic from the capacity, and divides only
/// the rest among the flows. When two flows fill the link, their next rates are therefore almost zero. The rates after
/// these are half of the link again. In this network, a new rate takes effect only after a part of the control period.
/// Each measurement therefore includes traffic at the old and at the new rate, and the oscillation decays. (If the new
/// rate applies for a fraction `a` of the period, the eigenvalues are the roots of x^2 + a x + 1 - a.) When the
/// oscillation has ended, half of the link stays idle.
#[test]
fn the_printed_law_oscillates_and_wastes_half_of_the_link() {
    let sent = |params: Value| {
        let (mut net, r) = line(6, params);
        net.plan.probes.interval = ms(50);
        let (from, to) = (net.host(r[0], Span::ZERO), net.host(r[1], Span::ZERO));
        for _ in 0..2 {
            net.add(from, to, tcp("pacec"));
        }
        let results = net.run();
        let between =
            |from, to| brf_common::samples(&results, "flow_samples", "flow", 0, "send_bps", from, to);
        let (early, late) = (between(0.15, 1.5), between(3.0, 6.0));
        let least = early.iter().fold(f64::MAX, |l, v| l.min(*v)) / 1e6;
        let most = early.iter().fold(0.0f64, |m, v| m.max(*v)) / 1e6;
        (least, most, brf_common::mean(&late) / 1e6)
    };
    let (least, most, end) = sent(json!({ "mode": "literal" }));
    assert!(most > 40.0 && least < 15.0, "literal: {least} to {most}");
    assert_near(end, 25.0, 0.03);
    let (least, _, end) = sent(json!({ "mode": "resolved" }));
    assert!(least > 45.0, "resolved: {least}");
    assert_near(end, 49.0, 0.02);
}

/// PAC-22, PAC-21: a new flow is admitted at once. When a flow ends, the other flows get its share within two
/// periods.
#[test]
fn a_new_flow_is_admitted_and_the_share_of_an_ended_one_is_reused() {
    let (mut net, r) = line(9, Value::Null);
    let (from, to) = (net.host(r[0], Span::ZERO), net.host(r[1], Span::ZERO));
    net.add(from, to, tcp("pacec"));
    let late = net.add(from, to, tcp("pacec"));
    late.start = at(3_000);
    late.stop = Some(at(6_000));
    let results = net.run();
    assert_near(goodput(&results, 0, 1.0, 3.0), 100.0 * ETA * PAYLOAD, 0.02);
    for flow in 0..2 {
        assert_near(goodput(&results, flow, 3.5, 6.0), 50.0 * ETA * PAYLOAD, 0.05);
    }
    assert_near(goodput(&results, 0, 7.5, 9.0), 100.0 * ETA * PAYLOAD, 0.03);
}

/// PACEC subtracts background traffic from the capacity, and divides the rest among the flows (PAC-18). If a flow does
/// not use its whole rate, other flows get the unused part.
#[test]
fn background_traffic_is_subtracted_and_unused_grants_are_shared() {
    let (mut net, r) = line(10, Value::Null);
    let (from, to) = (net.host(r[0], Span::ZERO), net.host(r[1], Span::ZERO));
    net.add(from, to, tcp("pacec"));
    net.add(from, to, tcp("pacec")).app = AppPlan::Limited { rate: mbit(10), on: None, off: None };
    net.add(from, to, narrows_sim::plan::TransportPlan::Udp { rate: mbit(20), packet: 1500 });
    let results = net.run();
    assert_near(goodput(&results, 1, 5.0, 10.0), 10.0, 0.03);
    let left = (100.0 * ETA - 20.0) * PAYLOAD - 10.0;
    assert_near(goodput(&results, 0, 5.0, 10.0), left, 0.06);
}

/// The controller fails for four seconds in the middle of the run. At first, the sources keep their rates. After some
/// time, they use CUBIC (PAC-4). After the controller has returned, they use its rates again.
#[test]
fn flows_survive_a_failure_of_the_controller() {
    let (mut net, r) = line(14, Value::Null);
    let (from, to) = (net.host(r[0], Span::ZERO), net.host(r[1], Span::ZERO));
    for _ in 0..2 {
        net.add(from, to, tcp("pacec"));
    }
    net.sdn().outages = vec![(at(4_000), at(8_000))];
    let results = net.run();
    let sum = |from, to| goodput(&results, 0, from, to) + goodput(&results, 1, from, to);
    assert!(sum(4.0, 8.0) > 60.0, "{}", sum(4.0, 8.0));
    for flow in 0..2 {
        assert_near(goodput(&results, flow, 10.0, 14.0), 50.0 * ETA * PAYLOAD, 0.05);
    }
}

#[test]
fn pacec_without_a_controller_is_refused() {
    let (mut net, r) = line(1, Value::Null);
    let (from, to) = (net.host(r[0], Span::ZERO), net.host(r[1], Span::ZERO));
    net.add(from, to, tcp("pacec"));
    net.plan.sdn = None;
    let error = narrows_sim::run(&net.plan, &std::sync::atomic::AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("sdn"), "{error}");
}
