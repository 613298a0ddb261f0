//! Tests of RCP, XCP, BDR and OBP in a network, with routers, headers and senders.

use crate::common::*;
use narrows_control::catalogue::Choice;
use narrows_control::units::{Rate, Time};
use narrows_sim::plan::{AppPlan, FlowPlan, SizePlan};
use serde_json::json;

#[test]
fn four_flows_share_a_link_equally_and_fill_it() {
    for (kind, least) in [("rcp", 0.97), ("xcp", 0.93), ("bdr", 0.90)] {
        let mut plan = dumbbell(kind, 40, 1_000, 12);
        plan.warmup = ms(6_000);
        plan.flows.push(group(kind, 4, 500));
        let r = run(&plan);
        let shares = shares(&r, 4, 6.0, 12.0);
        assert!(jain(&shares) > 0.99, "{kind}: {shares:?}");
        assert!(utilisation(&r) > least, "{kind}: {}", utilisation(&r));
        assert_eq!(r.u("links", "dropped_packets", 0), 0, "{kind}");
    }
}

/// RCP-1, XCP-1: a port counts the ACKs of flows in the opposite direction as input, because they use the link, too.
/// Without these ACKs, a port with flows in both directions would allocate 102 % of its link, and its queue would never
/// drain.
#[test]
fn a_port_counts_the_acks_of_flows_in_the_other_direction() {
    for (kind, queue) in [("rcp", 0.6), ("xcp", 15.0)] {
        let mut plan = dumbbell(kind, 40, 333, 20);
        plan.links[0].delay = vec![(Time::ZERO, ms(20))];
        plan.links[1] = link(1, 0, mbit(100), ms(20), fifo(packets(333)));
        let there = controller(kind, serde_json::Value::Null);
        plan.rate_controllers.push(narrows_sim::plan::ControllerPlan { link: 1, ..there });
        plan.probes.traces = true;
        plan.warmup = ms(5_000);
        for ends in [(0, 1), (1, 0)] {
            let mut flows = FlowPlan { count: 4, spacing: ms(7), ..FlowPlan::bulk("f", ends, kind) };
            if let narrows_sim::plan::TransportPlan::Tcp { pacing, .. } = &mut flows.transport {
                *pacing = true;
            }
            plan.flows.push(flows);
        }
        let r = run(&plan);
        let carried = (utilisation(&r) + r.f("links", "utilisation", 1)) / 2.0;
        let traces = r.tables.iter().find(|t| t.name == "traces").expect("traces");
        let (key, value) = (traces.str("key").expect("text"), traces.f64("value").expect("numbers"));
        let at = traces.f64("t_s").expect("numbers");
        let inputs: Vec<f64> =
            (0..at.len()).filter(|&i| key[i] == "input" && at[i] > 5.0).map(|i| value[i]).collect();
        let input = inputs.iter().sum::<f64>() / inputs.len() as f64 / 12.5e6;
        assert!((input / carried - 1.0).abs() < 0.005, "{kind}: {input} counted, {carried} carried");
        let p99 = r.f("links", "sojourn_p99_s", 0) * 1e3;
        assert!(p99 < queue, "{kind}: {p99} ms");
        assert_eq!(r.u("links", "dropped_packets", 0), 0, "{kind}");
    }
}

/// On a path without a router of their kind, senders of RCP, BDR, PACEC and OBP behave like CUBIC.
#[test]
fn without_a_router_all_but_xcp_fall_back_to_cubic() {
    for cc in ["rcp", "bdr", "pacec", "obp"] {
        let mut plan = path(mbit(20), ms(20), fifo(packets(100)), 10);
        plan.flows.push(bulk(cc));
        let alone = run(&plan);
        plan.flows[0] = bulk("cubic");
        let cubic = run(&plan);
        let (ours, theirs) = (alone.goodput(0), cubic.goodput(0));
        assert!((ours / theirs - 1.0).abs() < 0.03, "{cc}: {ours} of {theirs}");
    }
}

/// BDR-D2: in the literal mode, all flows increase their windows by the same number of packets, so unequal shares stay
/// unequal. In the resolved mode, the shares become equal.
#[test]
fn bdr_d2_literal_gains_keep_an_unequal_split() {
    let run_of = |cc: &str, mode: &str| {
        let mut plan = dumbbell("bdr", 100, 5_000, 40);
        plan.rate_controllers[0].params = values(json!({ "mode": mode }));
        // The second flow starts 10 s later. The first flow uses the whole link by then.
        plan.flows.push(group(cc, 2, 10_000));
        let r = run(&plan);
        shares(&r, 2, 30.0, 40.0)
    };
    let literal = run_of("bdr-literal", "literal");
    let resolved = run_of("bdr", "resolved");
    assert!(literal[0] > 2.0 * literal[1], "literal: {literal:?}");
    assert!(jain(&resolved) > 0.99, "resolved: {resolved:?}");
}

/// BDR-20: the times that a flow reports in its headers add up to its lifetime. The port's estimate of the number of
/// flows is therefore right (experiment B1).
#[test]
fn a_port_counts_its_flows() {
    let mut plan = dumbbell("bdr", 100, 5_000, 20);
    plan.probes.traces = true;
    plan.flows.push(FlowPlan {
        app: AppPlan::Poisson { per_sec: 400.0, size: SizePlan::Pareto { mean: 12_500.0, shape: 1.8 } },
        ..bulk("bdr")
    });
    let r = run(&plan);
    let traces = r.tables.iter().find(|t| t.name == "traces").expect("traces");
    let (key, value) = (traces.str("key").expect("text"), traces.f64("value").expect("numbers"));
    let at = traces.f64("t_s").expect("numbers");
    let (start, fct) = (r.all("flows", "start_s"), r.all("flows", "fct_s"));
    let (mut counted, mut true_ones, mut n) = (0.0, 0.0, 0.0);
    for i in (0..at.len()).filter(|&i| key[i] == "flows" && at[i] > 5.0) {
        let lives = |f: &usize| start[*f] <= at[i] && (fct[*f].is_nan() || start[*f] + fct[*f] > at[i]);
        counted += value[i];
        true_ones += (0..start.len()).filter(lives).count() as f64;
        n += 1.0;
    }
    assert!(n > 1_000.0, "{n}");
    assert!((counted / true_ones - 1.0).abs() < 0.05, "{} counted of {}", counted / n, true_ones / n);
}

/// A short flow that fits into the first window takes two round trips, including the handshake, as in the paper
/// (experiment B2). With pacing (BDR-25), the sender spreads the packets over a part of a round trip, so the flow takes
/// longer, by at most one round trip.
#[test]
fn bdr_short_flows_take_two_round_trips_and_longer_if_paced() {
    let (plain, paced) = (short_bdr_flows_seconds(false), short_bdr_flows_seconds(true));
    assert!((0.2..0.203).contains(&plain), "{plain}");
    assert!((0.21..0.3).contains(&paced), "{paced}");
}

/// Returns the mean completion time in seconds of flows of up to ten packets. The RTT is 100 ms, and the port does not
/// redistribute unused capacity (BDR-24).
fn short_bdr_flows_seconds(pacing: bool) -> f64 {
    let mut plan = dumbbell("bdr", 100, 5_000, 20);
    plan.rate_controllers = vec![controller("bdr", json!({ "redistribution": false }))];
    let cc = Choice { params: values(json!({ "pacing": pacing })), ..Choice::from("bdr") };
    plan.flows.push(FlowPlan {
        app: AppPlan::Poisson { per_sec: 400.0, size: SizePlan::Pareto { mean: 12_500.0, shape: 1.8 } },
        transport: narrows_sim::plan::TransportPlan::Tcp {
            cc,
            ecn: false,
            pacing: false,
            receive_window: None,
            mss: 948,
            initial_window: 10,
        },
        stop: Some(at(19_000)),
        ..bulk("bdr")
    });
    let r = run(&plan);
    let fct = r.all("flows", "fct_s");
    let table = r.tables.iter().find(|t| t.name == "flows").unwrap();
    let (size, start) = (table.u64("size_bytes").unwrap(), r.all("flows", "start_s"));
    let short: Vec<f64> = (0..fct.len())
        .filter(|&i| size[i] <= 10 * 948 && start[i] > 5.0 && fct[i].is_finite())
        .map(|i| fct[i])
        .collect();
    assert!(short.len() > 1_000, "{}", short.len());
    short.iter().sum::<f64>() / short.len() as f64
}

/// RCP-7: if many flows start, RCP builds a queue before its rate R falls. The queue of XCP is less than a third as
/// long.
#[test]
fn rcp_7_a_burst_of_new_flows_queues_more_with_rcp_than_with_xcp() {
    let peak = |kind: &str| {
        let mut plan = dumbbell(kind, 40, 100_000, 10);
        plan.flows.push(bulk(kind));
        plan.flows.push(FlowPlan { start: Time::ZERO + ms(5_000), ..group(kind, 50, 0) });
        let r = run(&plan);
        let samples = r.tables.iter().find(|t| t.name == "link_samples").expect("samples");
        samples.u64("queue_bytes").expect("whole numbers").iter().copied().max().expect("samples") as f64
    };
    let (rcp, xcp) = (peak("rcp"), peak("xcp"));
    assert!(rcp > 3.0 * xcp, "RCP {rcp}, XCP {xcp}");
}

/// OBP-1: two flows share a link equally, and their queue never exceeds four BDP. With OBP's factor a' = 0.9, the law
/// has an equilibrium only for up to 1 + 1 / a' = 2.1 flows. Four flows also get similar shares, but their queue grows
/// until the buffer (here 300 BDP) is full.
#[test]
fn obp_is_stable_with_two_flows_and_not_with_four() {
    let run_of = |flows: u32| {
        let mut plan = dumbbell("obp", 40, 100_000, 20);
        plan.warmup = ms(8_000);
        plan.flows.push(group("obp", flows, 1_000));
        let r = run(&plan);
        let samples = r.tables.iter().find(|t| t.name == "link_samples").expect("samples");
        let queued =
            samples.u64("queue_bytes").expect("whole numbers").iter().copied().max().expect("samples");
        (utilisation(&r), shares(&r, flows as usize, 8.0, 20.0), queued as f64 / 500_000.0)
    };
    let (used, two, queue) = run_of(2);
    assert!(jain(&two) > 0.99 && used > 0.93, "{used} of the link, {two:?}");
    assert!(queue < 4.0, "{queue} BDP");
    let (_, four, queue) = run_of(4);
    assert!(jain(&four) > 0.9 && queue > 20.0, "{queue} BDP, {four:?}");
}

/// The header takes its bytes from the payload of a full packet, so goodput is lower by the header's share of the
/// packet.
#[test]
fn headers_reduce_goodput_by_their_size() {
    let goodput = |kind: &str| {
        let mut plan = dumbbell(kind, 40, 1_000, 20);
        plan.warmup = ms(10_000);
        plan.flows.push(bulk(kind));
        let r = run(&plan);
        r.goodput(0) / (utilisation(&r) * 100.0)
    };
    for (kind, header) in [("rcp", 12.0), ("xcp", 20.0), ("obp", 20.0)] {
        let part = goodput(kind);
        let expected = (1448.0 - header) / 1500.0;
        assert!((part - expected).abs() < 0.002, "{kind}: {part}, expected {expected}");
    }
}

#[test]
fn a_controller_that_cannot_measure_the_capacity_is_refused_without_it() {
    let mut plan = dumbbell("rcp", 20, 100, 1);
    plan.flows.push(bulk("rcp"));
    plan.rate_controllers[0].capacity_is_configured = false;
    let error = narrows_sim::run(&plan, &std::sync::atomic::AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("told"), "{error}");
}

#[test]
fn the_same_seed_gives_the_same_results() {
    for kind in ["rcp", "xcp", "bdr", "obp"] {
        let mut plan = dumbbell(kind, 40, 200, 3);
        plan.probes.traces = true;
        plan.flows.push(group(kind, 3, 100));
        plan.flows.push(FlowPlan { start: at(1_000), ..udp(Rate::from_bits_per_sec(10_000_000)) });
        // The test compares the text of the results, because NaN differs from itself.
        assert!(format!("{:?}", run(&plan)) == format!("{:?}", run(&plan)), "{kind}");
    }
}
