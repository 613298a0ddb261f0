//! Tests properties of every run: the results are deterministic, links carry at most their capacity, flows of a given
//! size end, and no plan causes a panic.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::common::*;
use narrows_control::catalogue::Choice;
use narrows_control::congestion::{Ack, Congestion, Controller, Window};
use narrows_control::units::{Bytes, Rate, Span, Time};
use narrows_sim::plan::{
    AppPlan, ControllerPlan, FlowPlan, HtbClassPlan, JitterPlan, LimitPlan, LossPlan, MarkPlan, Plan,
    QueuePlan, RatePlan, SdnPlan, SizePlan, TransportPlan,
};
use narrows_sim::{Error, Monitor, Results, Run, Table};
use proptest::prelude::*;

fn busy(seed: u64) -> Plan {
    let mut plan = path(mbit(20), ms(30), fifo(packets(40)), 5);
    plan.seed = seed;
    plan.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: 0.01 })];
    plan.links[0].jitter = Some(JitterPlan { max: ms(2), reorder: true });
    let size = SizePlan::Pareto { mean: 20_000.0, shape: 1.5 };
    plan.flows = vec![
        bulk("cubic"),
        bulk("bbr"),
        flow(tcp("reno"), AppPlan::Poisson { per_sec: 20.0, size }),
        udp(mbit(1)),
    ];
    plan
}

#[test]
fn the_same_plan_gives_the_same_results() {
    // The test compares the text of the results, because NaN differs from itself.
    let text = |seed| format!("{:?}", run(&busy(seed)));
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
}

/// The handshake takes one RTT. Then slow start sends the 30 packets of the flow. For example, with an initial window
/// of 1, it sends 1, 2, 4, 8 and 15 packets in successive round trips. With an initial window of 10, it needs only two
/// round trips, for 10 and for 20 packets.
#[test]
fn the_initial_window_determines_the_round_trips_of_a_short_flow() {
    for (initial, rtts) in [(1, 6.0), (2, 5.0), (10, 3.0), (30, 2.0)] {
        let mut plan = path(mbit(1_000), ms(100), fifo(packets(1_000)), 2);
        let mut short = flow(tcp("reno"), AppPlan::Size { bytes: Bytes::new(30 * 1448) });
        let TransportPlan::Tcp { initial_window, .. } = &mut short.transport else { unreachable!() };
        *initial_window = initial;
        plan.flows = vec![short];
        let seconds = run(&plan).f("flows", "fct_s", 0);
        assert!((seconds / 0.1 - rtts).abs() < 0.05, "{initial}: {seconds}");
    }
}

#[test]
fn the_arrivals_of_a_source_do_not_depend_on_other_flows() {
    let starts = |plan: &Plan| {
        let r = run(plan);
        let flows = r.tables.iter().find(|t| t.name == "flows").unwrap();
        let source = flows.str("source").unwrap();
        let rows = source.iter().zip(flows.f64("start_s").unwrap()).zip(flows.u64("size_bytes").unwrap());
        let mut of: Vec<(u64, u64)> =
            rows.filter(|((s, _), _)| *s == "web").map(|((_, t), b)| ((t * 1e9) as u64, *b)).collect();
        of.sort_unstable();
        of
    };
    let mut plan = busy(3);
    plan.flows[2].name = "web".into();
    let with = starts(&plan);
    plan.flows[0].app = AppPlan::Size { bytes: Bytes::new(1) };
    plan.flows[3].transport = tcp("reno");
    assert!(with.len() > 50);
    assert_eq!(with, starts(&plan));
}

#[test]
fn the_losses_of_a_link_do_not_depend_on_the_jitter_of_another() {
    let lost = |jitter| {
        let mut plan = path(mbit(20), ms(0), fifo(packets(40)), 5);
        plan.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: 0.01 })];
        plan.links[1].jitter = jitter;
        plan.flows = vec![udp(mbit(10))];
        run(&plan).u("links", "random_losses", 0)
    };
    assert_eq!(lost(None), lost(Some(JitterPlan { max: ms(9), reorder: true })));
}

/// The link has an outage of a second, and then a fifth of its earlier rate. A flow's window may be too large for this
/// rate and the queue. In this case the queue stays full, and each retransmission of the first lost segment is dropped
/// until the window reacts to the losses.
#[test]
fn a_flow_recovers_after_an_outage() {
    for cc in ["bic", "cubic", "reno", "scalable", "veno", "yeah", "bbr"] {
        let mut plan = path(mbit(50), ms(40), fifo(packets(60)), 25);
        let steps = vec![(at(0), mbit(50)), (at(10_000), mbit(0)), (at(11_000), mbit(10))];
        plan.links[0].rate = RatePlan::Steps { steps, period: None };
        plan.probes.interval = ms(100);
        plan.flows = vec![bulk(cc)];
        let r = run(&plan);
        let samples = r.tables.iter().find(|t| t.name == "flow_samples").unwrap();
        let (times, goodput) = (samples.f64("t_s").unwrap(), samples.f64("goodput_bps").unwrap());
        let after = times.iter().zip(goodput).filter(|(t, _)| **t > 12.0);
        let (mut longest, mut silent) = (0, 0);
        for (_, goodput) in after {
            silent = if *goodput > 0.0 { 0 } else { silent + 1 };
            longest = longest.max(silent);
        }
        assert!(longest < 10, "{cc}: no delivery for {longest} tenths of a second");
    }
}

fn any_queue() -> impl Strategy<Value = QueuePlan> {
    let limit = prop_oneof![
        (1u32..200).prop_map(packets),
        (3_000u64..200_000).prop_map(|b| LimitPlan { packets: None, bytes: Some(Bytes::new(b)) }),
    ];
    let red = MarkPlan::Red { min: 5.0, max: 15.0, max_p: 0.1, weight: 0.01, ecn: true };
    limit.prop_flat_map(move |l| {
        prop_oneof![
            Just(fifo(l)),
            Just(QueuePlan::Fifo { limit: l, mark: MarkPlan::Threshold { packets: 10 } }),
            Just(QueuePlan::Fifo { limit: l, mark: red.clone() }),
            Just(QueuePlan::Codel { limit: l, target: ms(5), interval: ms(100), ecn: true }),
            Just(QueuePlan::FqCodel {
                limit: l,
                target: ms(5),
                interval: ms(100),
                quantum: Bytes::new(1514),
                queues: 16,
                ecn: false
            }),
            Just(QueuePlan::Priority { classes: vec![l, l] }),
            Just(QueuePlan::Htb {
                classes: (1..3)
                    .map(|r| HtbClassPlan { rate: mbit(r), ceil: mbit(10), limit: l, priority: 0 })
                    .collect()
            }),
        ]
    })
}

fn any_flow() -> impl Strategy<Value = FlowPlan> {
    let cc = prop_oneof![Just("reno"), Just("cubic"), Just("bbr")];
    (cc, any::<bool>(), any::<bool>(), 1u64..400_000, 0u64..500, 0u8..3).prop_map(
        |(cc, e, pacing, bytes, start, class)| {
            let mut f = sized(cc, bytes);
            if e {
                f.transport = ecn(cc);
            }
            if let TransportPlan::Tcp { pacing: p, .. } = &mut f.transport {
                *p = pacing;
            }
            f.start = at(start);
            f.class = class;
            f
        },
    )
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let impairment = (0.0f64..0.08, 0.0f64..0.05, 0u64..20, any::<bool>());
    (any::<u32>(), 1u64..50, 0u64..80, any_queue(), impairment, prop::collection::vec(any_flow(), 1..5))
        .prop_map(|(seed, rate, rtt, queue, (loss, duplicate, jitter, reorder), flows)| {
            let mut plan = path(mbit(rate), ms(rtt), queue, 400);
            plan.seed = seed as u64;
            plan.probes.interval = ms(500);
            for link in &mut plan.links {
                link.loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: loss })];
                link.duplicate = duplicate;
                link.jitter = Some(JitterPlan { max: ms(jitter), reorder });
            }
            plan.flows = flows;
            plan
        })
}

/// Adds more features to a plan that has only flows of a given size: all other kinds of TCP sources, a UDP flow, links
/// with traces and steps, a rate controller and an SDN controller.
fn with_all_features(mut plan: Plan) -> Plan {
    let size = SizePlan::Pareto { mean: 5_000.0, shape: 1.5 };
    let on_off = AppPlan::Limited { rate: mbit(3), on: Some(ms(3)), off: Some(ms(2)) };
    plan.flows.push(flow(tcp("bbr"), AppPlan::Poisson { per_sec: 500.0, size }));
    plan.flows.push(flow(ecn("cubic"), on_off));
    plan.flows.push(flow(tcp("brf"), AppPlan::Bulk));
    plan.flows.push(udp(mbit(2)));
    for f in plan.flows.iter_mut().take(2) {
        f.start = Time::ZERO;
        f.stop = Some(at(15));
    }
    let mut trace = link(1, 0, mbit(1), ms(1), fifo(packets(100)));
    trace.rate = RatePlan::Opportunities { millis: vec![1, 1, 3, 5], period_millis: 5, bytes: 1500 };
    plan.links[1].delay.push((at(5), ms(3)));
    plan.links.push(trace);
    let mut stepped = link(0, 1, mbit(1), ms(1), fifo(packets(100)));
    stepped.rate =
        RatePlan::Steps { steps: vec![(Time::ZERO, mbit(5)), (at(3), Rate::ZERO)], period: Some(ms(7)) };
    plan.links.push(stepped);
    plan.rate_controllers = vec![ControllerPlan {
        kind: "brf".into(),
        link: 0,
        shape: Some(vec![(Time::ZERO, mbit(8)), (at(10), mbit(4))]),
        capacity_is_configured: true,
        limit: packets(50),
        params: Default::default(),
        outages: vec![(at(8), at(12))],
    }];
    plan.sdn = Some(SdnPlan { poll: None, delay: ms(1), outages: vec![(at(4), at(6))] });
    plan
}

/// Checks conditions that the links of every run must meet.
fn assert_laws(plan: &Plan, r: &narrows_sim::Results) {
    let flows: f64 = r.all("flows", "goodput_bps").iter().filter(|g| g.is_finite()).sum();
    assert!(flows >= 0.0);
    for (i, link) in plan.links.iter().enumerate() {
        let capacity = r.f("links", "capacity_bps", i) / 8.0 * (plan.duration - plan.warmup).as_secs_f64();
        let carried = r.f("links", "utilisation", i) * capacity;
        assert!(carried <= capacity + 1_600.0, "link {i}: {carried} of {capacity} bytes");
        assert!(r.u("links", "dropped_packets", i) <= r.u("links", "offered_packets", i));
        let limit = match &link.queue {
            QueuePlan::Fifo { limit, .. }
            | QueuePlan::Codel { limit, .. }
            | QueuePlan::FqCodel { limit, .. } => *limit,
            _ => LimitPlan::default(),
        };
        // A rate controller replaces the queue of its port by an HTB.
        let controlled = plan.rate_controllers.iter().any(|c| c.link == i as u32);
        let limit = if controlled { LimitPlan::default() } else { limit };
        let samples = r.tables.iter().find(|t| t.name == "link_samples").unwrap();
        let rows = samples.u64("link").unwrap().iter();
        let queued = samples.u64("queue_packets").unwrap().iter().zip(samples.u64("queue_bytes").unwrap());
        for (_, (p, b)) in rows.zip(queued).filter(|(l, _)| **l == i as u64) {
            assert!(limit.packets.is_none_or(|most| *p <= most as u64));
            assert!(limit.bytes.is_none_or(|most| *b <= most.get()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// In any network, every flow with a given size delivers exactly this size and ends.
    #[test]
    fn every_sized_flow_completes(plan in any_plan()) {
        let r = run(&plan);
        assert_laws(&plan, &r);
        prop_assert_eq!(r.rows("flows"), plan.flows.len());
        let sizes: Vec<u64> = plan.flows.iter().map(|f| match &f.app {
            AppPlan::Size { bytes } => bytes.get(),
            _ => 0,
        }).collect();
        for i in 0..r.rows("flows") {
            let size = r.u("flows", "size_bytes", i);
            prop_assert!(sizes.contains(&size));
            prop_assert_eq!(r.u("flows", "delivered_bytes", i), size);
            prop_assert!(r.f("flows", "end_s", i).is_finite(), "flow {} of {} bytes is still in the table", i, size);
        }
    }

    #[test]
    fn plans_with_absurd_values_are_refused_or_run(
        plan in any_plan(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..9), 1..4),
    ) {
        let mut plan = with_all_features(plan);
        plan.duration = ms(20);
        let mut json = serde_json::to_value(&plan).unwrap();
        for (which, with) in changes {
            let mut leaves = Vec::new();
            leaf_paths(&json, String::new(), &mut leaves);
            let path = &leaves[which.index(leaves.len())];
            *json.pointer_mut(path).unwrap() = absurd(with);
        }
        if let Ok(mut plan) = serde_json::from_value::<Plan>(json) {
            // To keep the test short, limit the length of the run, the samples, and the numbers of flows and packets.
            plan.duration = plan.duration.as_nanos().min(20_000_000).into_span();
            plan.probes.interval = Span::ZERO;
            for f in &mut plan.flows {
                f.count = f.count.min(3);
                if let AppPlan::Poisson { per_sec, .. } = &mut f.app {
                    *per_sec = per_sec.min(1e4);
                }
                if let TransportPlan::Udp { rate, .. } = &mut f.transport
                    && *rate > mbit(1_000)
                    && *rate < Rate::MAX
                {
                    *rate = mbit(1_000);
                }
            }
            let _ = narrows_sim::run(&plan, &AtomicBool::new(false));
        }
    }
}

trait IntoSpan {
    fn into_span(self) -> Span;
}
impl IntoSpan for u64 {
    fn into_span(self) -> Span {
        Span::from_nanos(self)
    }
}

/// Adds to `out` the JSON pointers of all values that are neither objects nor arrays, and of empty arrays.
fn leaf_paths(value: &serde_json::Value, at: String, out: &mut Vec<String>) {
    match value {
        serde_json::Value::Array(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                leaf_paths(item, format!("{at}/{i}"), out);
            }
        }
        serde_json::Value::Object(fields) => {
            for (key, item) in fields {
                leaf_paths(item, format!("{at}/{key}"), out);
            }
        }
        _ => out.push(at),
    }
}

fn absurd(which: usize) -> serde_json::Value {
    use serde_json::json;
    [
        json!(0),
        json!(u64::MAX),
        json!(-1),
        json!(1e300),
        json!(null),
        json!("x"),
        json!([]),
        json!(1),
        json!(u32::MAX),
    ][which]
        .clone()
}

#[test]
fn a_plan_with_all_features_runs() {
    let mut plan = with_all_features(path(mbit(10), ms(5), fifo(packets(50)), 2));
    plan.flows[0].stop = Some(at(1_500));
    plan.flows[1].stop = Some(at(700));
    let r = run(&plan);
    assert_laws(&plan, &r);
    assert!(r.rows("flows") > 500);
}

#[test]
fn a_plan_with_old_names_is_read() {
    let plan = with_all_features(busy(1));
    let mut json = serde_json::to_value(&plan).unwrap();
    let table = json.as_object_mut().unwrap();
    let controllers = table.remove("rate_controllers").unwrap();
    table.insert("controllers".into(), controllers);
    json["links"][0]["queue"] = serde_json::json!({ "kind": "priority", "bands": [{ "packets": 5 }] });
    let read: Plan = serde_json::from_value(json).unwrap();
    assert_eq!(read.rate_controllers.len(), 1);
    assert_eq!(read.rate_controllers[0].kind, plan.rate_controllers[0].kind);
    assert!(matches!(&read.links[0].queue, QueuePlan::Priority { classes } if classes.len() == 1));
}

#[test]
fn an_invalid_plan_is_refused_with_the_location_of_the_error() {
    let mut plan = path(mbit(10), ms(10), fifo(packets(10)), 1);
    plan.flows = vec![bulk("reno")];
    let refused = |change: &dyn Fn(&mut Plan), place: &str| {
        let mut p = plan.clone();
        change(&mut p);
        let error = narrows_sim::run(&p, &AtomicBool::new(false)).expect_err(place);
        assert!(error.to_string().contains(place), "{error}");
    };
    refused(&|p| p.duration = Span::ZERO, "duration");
    refused(&|p| p.links[0].to = 7, "links[0]");
    refused(
        &|p| p.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: 1.5 })],
        "links[0] (0->1).loss",
    );
    refused(&|p| p.links[0].jitter = Some(JitterPlan { max: Span::MAX, reorder: false }), "jitter");
    refused(&|p| p.links[0].rate = RatePlan::Steps { steps: vec![(at(1), mbit(1))], period: None }, "rate");
    refused(&|p| p.flows[0].transport = tcp("no-such"), "cc");
    refused(&|p| p.flows[0].count = 0, "count");
    refused(&|p| p.flows.push(udp(Rate::ZERO)), "flows[1]");
    refused(&|p| p.flows.push(udp(Rate::MAX)), "flows[1]");
    refused(&|p| drop(p.links.pop()), "no path");
}

#[test]
fn a_cancelled_run_returns_an_error() {
    let mut plan = path(mbit(100), ms(10), fifo(packets(100)), 60);
    plan.flows = vec![bulk("reno")];
    assert_eq!(narrows_sim::run(&plan, &AtomicBool::new(true)), Err(narrows_sim::Error::Cancelled));
}

fn monitored(plan: &Plan, monitor: &Monitor) -> Result<Results, Error> {
    Run::new(plan).monitor(monitor).start()
}

/// A controller with a constant window. At each ACK, it records two times: the time that the monitor reports, and the
/// time of the ACK.
struct Reader {
    monitor: Arc<Monitor>,
    seen: Arc<Mutex<Vec<(Time, Time)>>>,
}

impl Controller for Reader {
    fn name(&self) -> &'static str {
        "reader"
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        window.cwnd = 60;
        self.seen.lock().expect("no thread panicked").push((self.monitor.now(), ack.now));
    }

    fn on_congestion(&mut self, _: &Congestion, _: &mut Window) {}
}

#[test]
fn a_run_reports_its_simulated_time() {
    let mut plan = path(mbit(100), ms(10), fifo(packets(100)), 60);
    plan.flows = vec![bulk("reader")];
    let (monitor, seen) = (Arc::new(Monitor::default()), Arc::new(Mutex::new(Vec::new())));
    let controllers = |_: &Choice| {
        Some(Box::new(Reader { monitor: monitor.clone(), seen: seen.clone() }) as Box<dyn Controller>)
    };
    let results = Run::new(&plan).controllers(&controllers).monitor(&monitor).start().expect("a valid plan");
    assert_eq!(monitor.now(), Time::ZERO + plan.duration);
    assert_eq!(monitor.events(), results.counts.events);

    let seen = seen.lock().expect("no thread panicked");
    assert!(seen.is_sorted(), "times decrease");
    assert!(seen.iter().all(|(reported, now)| reported <= now), "a time is in the future");
    let mut reported: Vec<Time> = seen.iter().map(|(reported, _)| *reported).collect();
    reported.dedup();
    assert!(reported.len() > 5, "few reports: {reported:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn reports_of_the_time_do_not_change_results(seed in 0_u64..1000) {
        let plan = busy(seed);
        let monitor = Monitor::default();
        let observed = monitored(&plan, &monitor).expect("a valid plan");
        prop_assert_eq!(format!("{observed:?}"), format!("{:?}", run(&plan)));
        prop_assert_eq!(monitor.now(), Time::ZERO + plan.duration);
    }

    #[test]
    fn steps_do_not_change_results(seed in 0_u64..1000, steps in prop::collection::vec(0_u64..6_000_000_000, 0..40)) {
        let plan = busy(seed);
        let mut running = Run::new(&plan).begin().expect("a valid plan");
        for nanos in steps {
            let before = running.now();
            running.advance(Time::from_nanos(nanos));
            let end = Time::ZERO + plan.duration;
            prop_assert_eq!(running.now(), before.max(Time::from_nanos(nanos)).min(end));
        }
        let rows = running.table("flow_samples").expect("a table that grows").rows();
        running.advance(Time::ZERO + Span::from_secs(600));
        prop_assert!(running.is_complete());
        let stepped = running.finish();
        prop_assert!(rows <= stepped.rows("flow_samples"));
        prop_assert_eq!(format!("{stepped:?}"), format!("{:?}", run(&plan)));
    }

    #[test]
    fn a_run_that_ends_after_a_step_has_the_results_of_a_shorter_plan(seed in 0_u64..1000, millis in 1_u64..4_999) {
        let mut plan = busy(seed);
        plan.warmup = Span::ZERO;
        let mut running = Run::new(&plan).begin().expect("a valid plan");
        running.advance(Time::ZERO + Span::from_millis(millis));
        let live: Vec<_> = running.live_flows(0).collect();
        let over = running.table("flows").map_or(0, Table::rows);
        let mut ended = running.finish();
        prop_assert_eq!(live.len() + over, ended.rows("flows"));
        for flow in live {
            let row = (0..ended.rows("flows")).find(|&row| ended.u("flows", "flow", row) == u64::from(flow.flow));
            let row = row.expect("the row of a live flow");
            let flows = ended.table("flows").expect("the table of flows");
            let text = |column| &flows.str(column).expect("a column of text")[row];
            prop_assert_eq!((text("name"), text("source").as_str()), (&flow.name, flow.source));
        }
        prop_assert_eq!(ended.stopped.take(), Some(Time::ZERO + Span::from_millis(millis)));
        plan.duration = Span::from_millis(millis);
        prop_assert_eq!(format!("{ended:?}"), format!("{:?}", run(&plan)));
    }

    #[test]
    fn a_stopped_run_has_the_results_of_a_shorter_plan(seed in 0_u64..1000, warmup_ms in 0_u64..8_000) {
        let mut plan = busy(seed);
        plan.duration = Span::from_secs(600);
        plan.warmup = Span::from_millis(warmup_ms);
        let monitor = Monitor::default();
        monitor.stop();
        let mut stopped = monitored(&plan, &monitor).expect("a valid plan");
        let end = stopped.stopped.take().expect("it did not run for 600 s");
        plan.duration = end.since(Time::ZERO);
        if plan.warmup < plan.duration {
            prop_assert_eq!(format!("{stopped:?}"), format!("{:?}", run(&plan)));
            return Ok(());
        }
        for (table, column) in [("flows", "goodput_bps"), ("links", "utilisation"), ("links", "throughput_bps")] {
            prop_assert!(stopped.f(table, column, 0).is_nan(), "{table}.{column}");
        }
        plan.warmup = Span::ZERO;
        let shorter = run(&plan);
        for table in ["flow_samples", "link_samples", "events"] {
            let text = |r: &Results| format!("{:?}", r.table(table));
            prop_assert_eq!(text(&stopped), text(&shorter));
        }
    }
}
