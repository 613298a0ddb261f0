//! Changes at the beginning of a phase.

use narrows_sim::plan::{
    AppPlan, ChangePlan, FlowPhase, FlowPlan, JitterPlan, LimitPlan, LossPlan, Plan, TriggerPlan,
};
use narrows_sim::{Monitor, Results, Run, Table};

use crate::common::*;

fn trigger(phase: FlowPhase, visit: u32, after: u64, change: ChangePlan) -> TriggerPlan {
    TriggerPlan { flow: 0, phase, visit, after: ms(after), change }
}

fn link_change(rate: u64) -> ChangePlan {
    ChangePlan::Link { link: 0, rate: Some(mbit(rate)), delay: None, loss: None, jitter: None }
}

fn bbr_path() -> Plan {
    let mut plan = path(mbit(50), ms(40), fifo(LimitPlan::packets(330)), 10);
    plan.probes.interval = ms(1);
    plan.probes.traces = true;
    plan.flows = vec![FlowPlan { name: "flow".into(), ..bulk("bbr3") }];
    plan
}

/// Returns tables as text. Numbers cannot be compared directly, because NaN differs from itself.
fn text(tables: &[Table]) -> String {
    format!("{tables:?}")
}

/// Returns the times at which the flow enters each phase, from samples every millisecond.
fn begins(results: &Results) -> Vec<(FlowPhase, f64)> {
    let traces = results.table("traces").expect("traces");
    let columns = (traces.f64("t_s").expect("times"), traces.f64("value").expect("values"));
    let keys = traces.str("key").expect("keys");
    let (mut found, mut phase): (Vec<(FlowPhase, f64)>, f64) = (Vec::new(), f64::NAN);
    for (i, key) in keys.iter().enumerate() {
        if key == "phase" {
            phase = columns.1[i];
        }
        if key == "step" {
            let now = FlowPhase::of_trace(phase, Some(columns.1[i])).expect("a phase of BBR");
            if found.last().is_none_or(|&(last, _)| last != now) {
                found.push((now, columns.0[i]));
            }
        }
    }
    found
}

fn begin_of(results: &Results, phase: FlowPhase, visit: usize) -> f64 {
    let visits: Vec<f64> = begins(results).into_iter().filter(|b| b.0 == phase).map(|b| b.1).collect();
    visits[visit - 1]
}

/// Returns the rows of the table of events.
fn events(results: &Results) -> Vec<(f64, String, String, f64)> {
    let table = results.table("events").expect("events");
    let (times, values) = (table.f64("t_s").expect("times"), table.f64("value").expect("values"));
    let (kinds, names) = (table.str("kind").expect("kinds"), table.str("entity").expect("entities"));
    (0..times.len()).map(|i| (times[i], kinds[i].clone(), names[i].clone(), values[i])).collect()
}

#[test]
fn the_rate_changes_when_the_phase_begins() {
    let plain = run(&bbr_path());
    for (phase, visit, after) in
        [(FlowPhase::Drain, 1, 0), (FlowPhase::Up, 2, 0), (FlowPhase::ProbeRtt, 1, 30)]
    {
        let mut plan = bbr_path();
        plan.triggers = vec![trigger(phase, visit, after, link_change(20))];
        let results = run(&plan);
        let begin = begin_of(&plain, phase, visit as usize);
        assert_eq!(begin_of(&results, phase, visit as usize), begin, "{phase:?}");
        let (times, capacity) =
            (results.all("link_samples", "t_s"), results.all("link_samples", "capacity_bps"));
        let change = begin + after as f64 / 1000.0;
        for (t, bps) in times.iter().zip(capacity) {
            // The trace has one value per sample, so the time of the phase is known to within 1 ms.
            if *t < change - 0.001 {
                assert_eq!(bps, 50e6, "{phase:?} at {t}");
            } else if *t > change + 0.001 {
                assert_eq!(bps, 20e6, "{phase:?} at {t}");
            }
        }
    }
}

#[test]
fn a_run_with_triggers_equals_the_run_with_their_times() {
    let mut plan = bbr_path();
    plan.flows[0].app = AppPlan::Scheduled { steps: vec![(at(0), None)] };
    let change = ChangePlan::Link {
        link: 0,
        rate: None,
        delay: Some(ms(5)),
        loss: Some(LossPlan::Bernoulli { p: 0.01 }),
        jitter: Some(JitterPlan { max: ms(2), reorder: true }),
    };
    plan.triggers = vec![
        trigger(FlowPhase::Refill, 1, 0, ChangePlan::App { flow: 0, rate: Some(mbit(0)) }),
        trigger(FlowPhase::Refill, 1, 45, ChangePlan::App { flow: 0, rate: None }),
        trigger(FlowPhase::Up, 2, 3, change),
    ];
    let timed = Run::new(&plan).with_times().expect("a valid plan").into_owned();
    assert!(timed.triggers.is_empty());
    let AppPlan::Scheduled { steps } = &timed.flows[0].app else { panic!("{:?}", timed.flows[0].app) };
    assert_eq!(steps.len(), 3);
    assert_eq!(steps[2].0.since(steps[1].0), ms(45));
    let up = timed.links[0].loss[0].0;
    assert_eq!(timed.links[0].delay[1], (up, ms(5)));
    assert_eq!(timed.links[0].jitter_changes[0].0, up);
    assert!(up < at(10_000), "{up:?}");
    let all_but_events = |results: Results| {
        results.tables.into_iter().filter(|table| table.name != "events").collect::<Vec<_>>()
    };
    assert!(text(&all_but_events(run(&plan))) == text(&all_but_events(run(&timed))));
}

#[test]
fn a_phase_that_never_begins_changes_nothing() {
    let mut plan = bbr_path();
    // Reno has no phases.
    plan.flows[0] = FlowPlan { name: "flow".into(), ..bulk("reno") };
    let plain = run(&plan);
    plan.triggers = vec![trigger(FlowPhase::Drain, 1, 0, link_change(20))];
    let results = run(&plan);
    let flows = |results: &Results| text(results.table("flows").map_or(&[], std::slice::from_ref));
    assert_eq!(flows(&results), flows(&plain));
    assert_eq!(events(&results), [(10.0, "phase-never-began: drain".into(), "flow".into(), 1.0)]);
}

#[test]
fn each_phase_of_a_trigger_is_an_event() {
    let plain = run(&bbr_path());
    let mut plan = bbr_path();
    plan.triggers = vec![
        trigger(FlowPhase::Up, 2, 0, link_change(20)),
        trigger(FlowPhase::Up, 2, 40, link_change(50)),
        trigger(FlowPhase::ProbeRtt, 9, 0, link_change(20)),
    ];
    let found = events(&run(&plan));
    let [(begin, kind, flow, visit), never] = &found[..] else { panic!("{found:?}") };
    // The trace has one value per sample, so the time of the phase is known to within 1 ms.
    assert!((begin - begin_of(&plain, FlowPhase::Up, 2)).abs() <= 0.001);
    assert_eq!((kind.as_str(), flow.as_str(), *visit), ("phase-began: up", "flow", 2.0));
    assert_eq!(never, &(10.0, "phase-never-began: probe_rtt".into(), "flow".into(), 9.0));
}

#[test]
fn a_stopped_search_says_nothing_of_phases_that_it_did_not_reach() {
    let mut plan = bbr_path();
    plan.triggers = vec![trigger(FlowPhase::ProbeRtt, 2, 0, link_change(20))];
    let monitor = Monitor::default();
    monitor.stop();
    let results = Run::new(&plan).monitor(&monitor).start().expect("a valid plan");
    assert!(results.stopped.is_some_and(|stopped| stopped < at(10_000)), "{:?}", results.stopped);
    assert_eq!(events(&results), []);
    assert!(monitor.events() > 0, "the search reports its progress");
}

#[test]
fn wrong_triggers_are_refused() {
    let refusal = |change: &dyn Fn(&mut Plan)| {
        let mut plan = bbr_path();
        plan.triggers = vec![trigger(FlowPhase::Drain, 1, 0, link_change(20))];
        change(&mut plan);
        Run::new(&plan).start().expect_err("an invalid plan").to_string()
    };
    assert_eq!(
        refusal(&|plan| plan.triggers[0].flow = 1),
        "triggers[0].flow: found 1, expected the index of a single TCP flow"
    );
    assert_eq!(
        refusal(&|plan| plan.flows[0].count = 2),
        "triggers[0].flow: found 0, expected the index of a single TCP flow"
    );
    assert_eq!(
        refusal(&|plan| plan.triggers[0].visit = 0),
        "triggers[0].visit: found 0, expected at least 1"
    );
    assert_eq!(
        refusal(&|plan| plan.triggers[0].change = ChangePlan::App { flow: 0, rate: None }),
        "triggers[0].change.flow: found 0, expected the index of a flow with a schedule"
    );
    let mut plan = bbr_path();
    plan.triggers = vec![trigger(FlowPhase::Drain, 1, 0, link_change(20))];
    let in_steps = Run::new(&plan).begin().err().expect("refused").to_string();
    assert_eq!(in_steps, "triggers: found 1, expected none in a run in steps");
    let real =
        narrows_sim::plan::check_for_real_stacks(&plan, narrows_control::catalogue::Catalogue::built_in());
    let expected = "triggers: found 1, expected none, because real stacks do not report phases";
    assert_eq!(real.expect_err("refused").to_string(), expected);
}
