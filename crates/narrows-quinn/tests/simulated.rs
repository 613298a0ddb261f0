//! Tests quinn's QUIC in the simulator.

use narrows_control::catalogue::{Catalogue, Choice, Entry, Family};
use narrows_control::congestion::{Ack, Congestion, Controller, Window};
use narrows_control::parameter::Value;
use narrows_control::units::{Bytes, Rate, Span, Time};
use narrows_quinn::{QUINN_CONTROLLERS, Quinn};
use narrows_sim::capture::{Captured, Tap};
use narrows_sim::plan::{
    AppPlan, CapturePlan, FlowPlan, LimitPlan, LinkPlan, LossPlan, MarkPlan, Plan, QueuePlan, SizePlan,
    StackPlan, TransportPlan,
};
use narrows_sim::{Column, Results, Run};

const RATE_MBIT: u64 = 20;
const RTT_MS: u64 = 40;

/// Returns a plan with two hosts, a link of 20 Mbit/s, an RTT of 40 ms and a queue of one BDP.
fn plan(flows: Vec<FlowPlan>) -> Plan {
    let rate = Rate::from_bits_per_sec(RATE_MBIT * 1_000_000);
    let link =
        |name: &str, ends, limit| LinkPlan::new(name, ends, rate, Span::from_millis(RTT_MS / 2), limit);
    let bdp = LimitPlan::bytes(rate.bytes_in(Span::from_millis(RTT_MS)));
    Plan {
        seed: 1,
        duration: Span::from_secs(10),
        warmup: Span::from_secs(2),
        nodes: vec!["sender".into(), "receiver".into()],
        links: vec![link("forward", (0, 1), bdp), link("back", (1, 0), LimitPlan::default())],
        flows,
        ..Plan::default()
    }
}

fn quic(cc: impl Into<Choice>) -> FlowPlan {
    let stack = StackPlan { name: "quinn".into(), cc: cc.into(), receive_window: None };
    FlowPlan { transport: TransportPlan::Stack(stack), ..FlowPlan::bulk("quic", (0, 1), "cubic") }
}

fn sized(bytes: u64) -> FlowPlan {
    FlowPlan { app: AppPlan::Size { bytes: Bytes::new(bytes) }, ..quic("cubic") }
}

fn run(plan: &Plan) -> Results {
    Run::new(plan).transports(&Quinn::default()).start().expect("a valid plan")
}

fn number(results: &Results, column: &str, row: usize) -> f64 {
    let table = results.table("flows").expect("the table of flows");
    match &table.columns.iter().find(|(name, _)| *name == column).expect("a column").1 {
        Column::F64(values) => values[row],
        Column::U64(values) => values[row] as f64,
        Column::Str(_) => panic!("{column} is text"),
    }
}

#[test]
fn a_flow_fills_the_link_with_each_controller() {
    for cc in
        QUINN_CONTROLLERS.into_iter().chain(["reno", "narrows:cubic", "narrows:bbr", "bbr3", "copa", "vegas"])
    {
        let mut plan = plan(vec![quic(cc)]);
        // The application gets the data after a lost packet only when the loss is repaired. So losses at the start must
        // be repaired before the measurement.
        (plan.duration, plan.warmup) = (Span::from_secs(14), Span::from_secs(6));
        let results = run(&plan);
        let goodput = number(&results, "goodput_bps", 0) / 1e6;
        let rtt = number(&results, "rtt_mean_s", 0) * 1e3;
        println!("{cc}: {goodput:.2} Mbit/s, {rtt:.1} ms, {} lost", number(&results, "retransmits", 0));
        // Headers take 4 % of a full datagram.
        assert!((0.75..0.97).contains(&(goodput / RATE_MBIT as f64)), "{cc}: {goodput}");
        assert!((40.0..125.0).contains(&rtt), "{cc}: {rtt} ms");
    }
}

#[test]
fn the_same_seed_gives_the_same_results_and_bytes() {
    struct Bytes(Vec<u8>);
    impl Tap for Bytes {
        fn on_packet(&mut self, packet: &Captured<'_>) -> std::ops::ControlFlow<()> {
            assert_eq!(packet.contents.len(), usize::from(packet.payload));
            self.0.extend_from_slice(packet.contents);
            std::ops::ControlFlow::Continue(())
        }
    }
    let captured = |seed| {
        let mut plan = plan(vec![quic("cubic"), quic("bbr"), quic("bbr3")]);
        (plan.seed, plan.duration, plan.warmup) = (seed, Span::from_secs(2), Span::ZERO);
        plan.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: 0.01 })];
        plan.capture = Some(CapturePlan { links: vec![0, 1], hosts: vec![], snap: 65_535, qlog: false });
        let mut bytes = Bytes(Vec::new());
        let results =
            Run::new(&plan).transports(&Quinn::default()).tap(&mut bytes).start().expect("a valid plan");
        (results, bytes.0)
    };
    let first = captured(1);
    assert!(first.1.len() > 1_000_000);
    // NaN is not equal to itself, so the results are compared as text.
    let again = captured(1);
    assert_eq!(format!("{:?}", first.0), format!("{:?}", again.0));
    assert!(first.1 == again.1, "other bytes");
    assert!(first.1 != captured(2).1, "the seed has no effect");
}

#[test]
fn all_bytes_arrive_also_when_packets_are_lost_or_duplicated_or_overtaken() {
    let mut plan = plan(vec![sized(1_000_000)]);
    plan.warmup = Span::ZERO;
    plan.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: 0.02 })];
    plan.links[0].duplicate = 0.05;
    plan.links[0].jitter = Some(narrows_sim::plan::JitterPlan { max: Span::from_millis(3), reorder: true });
    let results = run(&plan);
    assert_eq!(number(&results, "delivered_bytes", 0), 1_000_000.0);
    assert!(number(&results, "retransmits", 0) > 10.0);
    let (sender, receiver) = (number(&results, "fct_s", 0), number(&results, "fct_recv_s", 0));
    assert!(receiver < sender && sender < 10.0, "{receiver} {sender}");
}

#[test]
fn a_short_transfer_takes_one_round_trip_for_the_handshake() {
    let mut plan = plan(vec![sized(1_000)]);
    plan.warmup = Span::ZERO;
    let results = run(&plan);
    // The handshake and the data take one RTT each. The transmission times on the link add a little.
    let seconds = number(&results, "fct_s", 0);
    assert!((0.080..0.090).contains(&seconds), "{seconds}");
}

#[test]
fn an_application_stops_and_its_last_data_arrive_soon_after() {
    let mut flow = quic("cubic");
    flow.stop = Some(Time::ZERO + Span::from_secs(5));
    let results = run(&plan(vec![flow]));
    let end = number(&results, "end_s", 0);
    assert!((5.0..5.5).contains(&end), "{end}");
}

#[test]
fn an_application_with_a_rate_gets_its_rate() {
    let mut flow = quic("cubic");
    flow.app = AppPlan::Limited { rate: Rate::from_bits_per_sec(4_000_000), on: None, off: None };
    let results = run(&plan(vec![flow]));
    let goodput = number(&results, "goodput_bps", 0) / 4e6;
    assert!((goodput - 1.0).abs() < 0.01, "{goodput}");
    assert!(number(&results, "rtt_p95_s", 0) < 0.046);
}

#[test]
fn the_receive_window_limits_a_flow() {
    let mut flow = quic("cubic");
    let TransportPlan::Stack(stack) = &mut flow.transport else { unreachable!() };
    stack.receive_window = Some(Bytes::new(25_000));
    let results = run(&plan(vec![flow]));
    // A window of 25 kB per RTT of 40 ms gives 5 Mbit/s. quinn opens the window in steps, so the flow gets less.
    let goodput = number(&results, "goodput_bps", 0) / 1e6;
    assert!((2.5..5.0).contains(&goodput), "{goodput}");
}

#[test]
fn quic_shares_a_link_with_tcp() {
    let tcp = FlowPlan::bulk("tcp", (0, 1), "reno");
    let mut plan = plan(vec![quic("newreno"), tcp]);
    plan.duration = Span::from_secs(60);
    let results = run(&plan);
    let (quic, tcp) = (number(&results, "goodput_bps", 0) / 1e6, number(&results, "goodput_bps", 1) / 1e6);
    assert!((18.5..19.5).contains(&(quic + tcp)), "{quic} {tcp}");
    assert!(quic.min(tcp) > 4.0, "{quic} {tcp}");
}

#[test]
fn marks_slow_a_flow_down_without_loss() {
    for cc in ["cubic", "narrows:cubic", "bbr3"] {
        let mut plan = plan(vec![quic(cc)]);
        let QueuePlan::Fifo { mark, .. } = &mut plan.links[0].queue else { unreachable!() };
        *mark = MarkPlan::Threshold { packets: 20 };
        let results = run(&plan);
        let marked = results.table("links").and_then(|links| links.u64("marks").map(|column| column[0]));
        println!("{cc}: {marked:?} marked, {} lost", number(&results, "retransmits", 0));
        assert!(marked > Some(0));
        if cc != "bbr3" {
            // The first overshoot of slow start may cause losses.
            assert!(number(&results, "rtt_p95_s", 0) < 0.065, "{cc}");
        }
    }
}

#[test]
fn flows_that_come_and_go_leave_nothing_behind() {
    let mut flow = quic("cubic");
    flow.app =
        AppPlan::Poisson { per_sec: 50.0, size: narrows_sim::plan::SizePlan::Exponential { mean: 20_000.0 } };
    let results = run(&plan(vec![flow]));
    let flows = results.table("flows").expect("flows").rows();
    assert!(flows > 400, "{flows} flows");
    assert!(results.counts.peak_flows < 40, "{} at one time", results.counts.peak_flows);
}

/// A controller of another crate that reads a congestion header.
struct Headed;

impl Controller for Headed {
    fn name(&self) -> &'static str {
        "headed"
    }
    fn on_ack(&mut self, _ack: &Ack, _window: &mut Window) {}
    fn on_congestion(&mut self, _event: &Congestion, _window: &mut Window) {}
    fn header_bytes(&self) -> u16 {
        16
    }
}

#[test]
fn a_controller_of_another_crate_that_needs_a_header_is_refused() {
    let mut catalogue = Catalogue::built_in().clone();
    catalogue
        .add(Entry::new("headed", Family::Loss, "with a header", |_| Box::new(Headed)))
        .expect("a free name");
    let plan = plan(vec![quic("headed")]);
    let quinn = Quinn::default();
    let run = Run::new(&plan).transports(&quinn).controllers(&catalogue);
    let error = run.start().expect_err("refused").to_string();
    assert!(error.contains("(quic).cc: found \"headed\""), "{error}");
    assert!(error.contains("this one needs rates from the network"), "{error}");
}

#[test]
fn what_cannot_run_is_refused_with_its_key() {
    let refused = |flow: FlowPlan| {
        Run::new(&plan(vec![flow])).transports(&Quinn::default()).start().expect_err("refused").to_string()
    };
    for (cc, expected) in [
        ("none", "flows[0] (quic).cc: found \"none\", expected the name of a congestion controller"),
        ("dctcp", "this one needs each ECN mark"),
        ("lp", "this one needs TCP timestamps"),
        ("brf", "this one needs rates from the network"),
        ("narrows:newreno", "found \"newreno\""),
    ] {
        let error = refused(quic(cc));
        assert!(error.contains(expected), "{error}");
    }
    let with = Choice::from("cubic").with("beta", Value::Number(0.5));
    let error = refused(quic(with));
    assert!(
        error.contains("flows[0] (quic).cc: found \"beta\", expected no parameters for quinn's cubic"),
        "{error}"
    );
    let mut flow = quic("cubic");
    let TransportPlan::Stack(stack) = &mut flow.transport else { unreachable!() };
    stack.name = "quiche".into();
    let error = refused(flow);
    assert!(
        error.contains("flows[0] (quic).transport: found \"quiche\", expected tcp, udp or quinn"),
        "{error}"
    );
    let error =
        narrows_sim::run(&plan(vec![quic("cubic")]), &Default::default()).expect_err("refused").to_string();
    assert!(error.contains("this program has no other transports"), "{error}");
}

#[test]
fn parameters_reach_a_controller_of_the_catalogue() {
    let sent = |beta| {
        let cc = Choice::from("narrows:cubic").with("beta", Value::Number(beta));
        let results = run(&plan(vec![quic(cc)]));
        number(&results, "rtt_mean_s", 0)
    };
    // A smaller reduction of the window leaves a longer queue.
    assert!(sent(0.9) > sent(0.5) + 0.002);
}

#[test]
fn the_bandwidth_of_a_catalogue_controller_is_traced_and_is_that_of_the_link() {
    let mut plan = plan(vec![quic("bbr3")]);
    plan.probes.traces = true;
    let results = run(&plan);
    let traces = results.table("traces").expect("traces");
    let (keys, values) = (traces.str("key").expect("keys"), traces.f64("value").expect("values"));
    let last = keys.iter().zip(values).rev().find(|(key, _)| *key == "bw").expect("a bandwidth").1;
    // `last` is in bytes/s.
    let share = last * 8.0 / (RATE_MBIT as f64 * 1e6);
    assert!((0.97..1.03).contains(&share), "{share}");
}

#[test]
fn the_window_is_reduced_once_for_each_episode_of_loss() {
    let mut plan = plan(vec![quic("reno")]);
    plan.duration = Span::from_secs(60);
    let QueuePlan::Fifo { limit, .. } = &mut plan.links[0].queue else { unreachable!() };
    *limit = LimitPlan::bytes(Bytes::new(50_000));
    plan.probes.interval = Span::from_millis(10);
    let results = run(&plan);
    let ssthresh =
        results.table("flow_samples").and_then(|samples| samples.f64("ssthresh")).expect("samples");
    let mut steps: Vec<f64> = ssthresh.iter().copied().filter(|value| value.is_finite()).collect();
    steps.dedup();
    assert!(steps.len() >= 3, "{steps:?}");
    // After slow start, each episode begins with the same full queue, so consecutive values are almost equal.
    let (least, most) = steps[2..].iter().fold((f64::MAX, 0f64), |(a, b), &v| (a.min(v), b.max(v)));
    assert!(least > 0.8 * most, "{steps:?}");
    assert!(number(&results, "goodput_bps", 0) > 0.85 * RATE_MBIT as f64 * 1e6);
}

fn requesting(size: SizePlan, parallel: u32, count: Option<u32>, think: u64) -> FlowPlan {
    let app = AppPlan::Requests { size, parallel, count, think: Span::from_millis(think) };
    FlowPlan { app, ..quic("cubic") }
}

/// The times of request and receipt in seconds, and the size in bytes, of each object.
fn objects(results: &Results) -> Vec<(f64, f64, u64)> {
    let table = results.table("requests").expect("the table of requests");
    let (requested, received) = (table.f64("requested_s").unwrap(), table.f64("received_s").unwrap());
    let sizes = table.u64("size_bytes").unwrap();
    (0..sizes.len()).map(|i| (requested[i], received[i], sizes[i])).collect()
}

#[test]
fn a_single_request_takes_an_rtt_and_the_transmission_time() {
    let size = SizePlan::Fixed { bytes: 1_000.0 };
    let mut plan = plan(vec![requesting(size, 1, Some(5), 100)]);
    plan.warmup = Span::ZERO;
    let results = run(&plan);
    let objects = objects(&results);
    assert_eq!(objects.len(), 5, "{objects:?}");
    let rtt = RTT_MS as f64 / 1e3;
    // The handshake ends at the receiver after 1.5 RTTs.
    assert!((objects[0].0 - 1.5 * rtt).abs() < 0.002, "{objects:?}");
    for (i, (requested, received, size)) in objects.iter().enumerate() {
        assert_eq!(*size, 1_000);
        assert!((received - requested - rtt).abs() < 0.002, "object {i}: {objects:?}");
    }
    for pair in objects.windows(2) {
        assert!((pair[1].0 - pair[0].1 - 0.1).abs() < 1e-9, "100 ms between objects: {objects:?}");
    }
    assert_eq!(number(&results, "delivered_bytes", 0), 5_000.0);
    let end = objects[4].1;
    assert!((number(&results, "fct_recv_s", 0) - end).abs() < 1e-9);
    assert!(number(&results, "end_s", 0) < end + 0.5, "the connection is closed after the last object");
    assert!(results.table("events").unwrap().str("kind").unwrap().is_empty(), "no connection was lost");
}

#[test]
fn parallel_requests_share_the_link_and_all_objects_arrive() {
    let size = SizePlan::Exponential { mean: 60_000.0 };
    for (parallel, loss) in [(1, 0.0), (8, 0.0), (8, 0.02), (200, 0.01)] {
        let mut plan = plan(vec![requesting(size.clone(), parallel, Some(150), 0)]);
        plan.warmup = Span::ZERO;
        plan.duration = Span::from_secs(60);
        plan.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: loss })];
        let results = run(&plan);
        let objects = objects(&results);
        assert_eq!(objects.len(), 150, "{parallel}, {loss}");
        assert!(objects.iter().all(|(requested, received, _)| received > requested), "{objects:?}");
        let bytes: u64 = objects.iter().map(|object| object.2).sum();
        assert_eq!(number(&results, "delivered_bytes", 0), bytes as f64);
        // At no time are more requests open than allowed.
        for (at, _, _) in &objects {
            let open = objects.iter().filter(|(from, to, _)| from <= at && at < to).count();
            assert!(open <= parallel as usize, "{open} open at {at}, {parallel}, {loss}");
        }
        assert!(number(&results, "end_s", 0).is_finite(), "{parallel}, {loss}");
    }
}

#[test]
fn requests_end_when_the_flow_stops_and_the_last_objects_still_arrive() {
    let flow = FlowPlan {
        stop: Some(Time::ZERO + Span::from_secs(3)),
        ..requesting(SizePlan::Fixed { bytes: 30_000.0 }, 4, None, 0)
    };
    let mut plan = plan(vec![flow]);
    plan.warmup = Span::ZERO;
    let results = run(&plan);
    let objects = objects(&results);
    assert!(objects.len() > 50, "{}", objects.len());
    assert!(objects.iter().all(|(requested, received, _)| *requested < 3.0 && received.is_finite()));
    assert!(number(&results, "end_s", 0) < 4.0);
}

#[test]
fn requests_need_a_transport_with_streams() {
    let size = SizePlan::Fixed { bytes: 1e3 };
    let tcp = FlowPlan {
        transport: FlowPlan::bulk("", (0, 1), "cubic").transport,
        ..requesting(size.clone(), 1, None, 0)
    };
    let error =
        Run::new(&plan(vec![tcp])).transports(&Quinn::default()).start().expect_err("TCP").to_string();
    assert!(error.contains("expected a transport with streams"), "{error}");
    for flow in [requesting(size.clone(), 0, None, 0), requesting(size, 1, Some(0), 0)] {
        assert!(Run::new(&plan(vec![flow])).transports(&Quinn::default()).start().is_err());
    }
}

#[test]
fn without_a_pause_each_request_follows_the_object_before_it() {
    for parallel in [1, 6] {
        let mut plan = plan(vec![requesting(SizePlan::Fixed { bytes: 1_000.0 }, parallel, Some(60), 0)]);
        plan.warmup = Span::ZERO;
        let objects = objects(&run(&plan));
        assert_eq!(objects.len(), 60);
        let received: Vec<f64> = objects.iter().map(|object| object.1).collect();
        for (requested, ..) in &objects[parallel as usize..] {
            assert!(received.contains(requested), "{parallel}: a request at {requested}: {objects:?}");
        }
        // 60 objects in groups of `parallel`, one RTT for each group.
        let end = received.iter().copied().fold(0.0, f64::max);
        let expected = (1.5 + 60.0 / f64::from(parallel)) * RTT_MS as f64 / 1e3;
        assert!((end / expected - 1.0).abs() < 0.1, "{parallel}: {end}, expected {expected}");
    }
}

#[test]
fn parallel_objects_of_equal_size_arrive_at_the_same_time() {
    let mut plan = plan(vec![requesting(SizePlan::Fixed { bytes: 500_000.0 }, 6, Some(6), 0)]);
    plan.warmup = Span::ZERO;
    let received: Vec<f64> = objects(&run(&plan)).iter().map(|object| object.1).collect();
    let (first, last) =
        (received.iter().copied().fold(f64::MAX, f64::min), received.iter().copied().fold(0.0, f64::max));
    assert!(first > 0.9 * last, "{received:?}");
}

#[test]
fn a_flow_ends_with_its_last_object_even_if_the_pause_would_be_longer() {
    for (parallel, count, think) in [(1, 1, 3_000), (2, 4, 20_000), (1, 1, 40_000)] {
        let mut plan =
            plan(vec![requesting(SizePlan::Fixed { bytes: 10_000.0 }, parallel, Some(count), think)]);
        (plan.warmup, plan.duration) = (Span::ZERO, Span::from_secs(60));
        let results = run(&plan);
        let last = objects(&results).iter().map(|object| object.1).fold(0.0, f64::max);
        assert_eq!(number(&results, "fct_recv_s", 0), last, "{parallel}, {count}");
        assert!(number(&results, "end_s", 0) < last + 0.5, "{parallel}, {count}");
    }
}

#[test]
fn a_lost_connection_of_requests_is_reported() {
    let mut plan = plan(vec![requesting(SizePlan::Fixed { bytes: 100_000.0 }, 4, None, 0)]);
    plan.duration = Span::from_secs(60);
    for link in &mut plan.links {
        link.loss = vec![(Time::ZERO + Span::from_secs(1), LossPlan::Bernoulli { p: 1.0 })];
    }
    let results = run(&plan);
    let kinds = results.table("events").unwrap().str("kind").unwrap().to_vec();
    assert!(kinds.iter().any(|kind| kind.starts_with("connection-lost: ")), "{kinds:?}");
    assert!(objects(&results).iter().any(|object| object.1.is_nan()), "the last objects are incomplete");
}
