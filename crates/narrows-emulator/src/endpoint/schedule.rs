//! Computes the start and the size of each flow, including each flow of the plan's groups and Poisson sources. Starts
//! and sizes are the same as in the simulator.

use narrows_control::units::{Bytes, Time};
use narrows_sim::model::{App, Arrivals, starts};
use narrows_sim::plan::Plan;

use crate::error::Error;
use crate::spec::Spec;

/// Maximum number of flows in a run.
const MAX_FLOWS: usize = 200_000;

/// A scheduled flow.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Index of the flow's entry in the spec, index of its entry in the plan, and number of the flow within the plan's
    /// entry.
    pub(crate) spec: usize,
    pub(crate) plan: u32,
    pub(crate) member: u32,
    pub(crate) start: Time,
    pub(crate) stop: Time,
    /// Application bytes; 0: unlimited.
    pub(crate) size: u64,
    pub(crate) app: App,
}

/// Returns the name of a flow in the results.
pub(crate) fn name(plan: &Plan, member: &Member) -> String {
    plan.flows[member.plan as usize].flow_name(member.member)
}

/// Returns all flows of a run in order of their start. A flow's position in this list is its number in the results.
///
/// # Errors
/// If there are more than [`MAX_FLOWS`] flows.
pub(crate) fn members(spec: &Spec) -> Result<Vec<Member>, Error> {
    let plan = &spec.plan;
    let end = Time::ZERO + plan.duration;
    let mut members = Vec::new();
    for (s, flow_spec) in spec.flows.iter().enumerate() {
        let flow = &plan.flows[flow_spec.flow as usize];
        let stop = flow.stop.unwrap_or(Time::NEVER);
        let mut add = |member: usize, start: Time, app: App| {
            let size = app.size();
            let number = (s, flow_spec.flow, member as u32);
            members.push(Member { spec: s, plan: number.1, member: number.2, start, stop, size, app });
        };
        match Arrivals::new(flow, plan.seed, flow_spec.flow as u64) {
            Some(arrivals) => {
                for (i, (at, bytes)) in
                    arrivals.until(flow.start, stop.min(end)).take(MAX_FLOWS + 1).enumerate()
                {
                    add(i, at, App::sized(Bytes::new(bytes), at));
                }
            }
            None => {
                let starts = starts(flow, plan.seed, flow_spec.flow as u64);
                for (i, start) in starts.into_iter().take(MAX_FLOWS + 1).enumerate() {
                    add(i, start, App::new(&flow.app, start, stop));
                }
            }
        }
    }
    members.retain(|m| m.start < end);
    if members.len() > MAX_FLOWS {
        return Err(Error::invalid(
            "flows",
            format!("{} flows", members.len()),
            format!("at most {MAX_FLOWS}"),
        ));
    }
    members.sort_by_key(|m| (m.start, m.plan, m.member));
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_control::units::Span;
    use narrows_sim::plan::{
        AppPlan, FlowPlan, LimitPlan, LinkPlan, MarkPlan, QueuePlan, RatePlan, SizePlan,
    };

    #[test]
    fn arrivals_are_the_same_as_in_the_simulator() {
        let link = |name: &str, from, to| LinkPlan {
            name: name.into(),
            from,
            to,
            rate: RatePlan::Steps {
                steps: vec![(Time::ZERO, narrows_control::units::Rate::from_bits_per_sec(100_000_000))],
                period: None,
            },
            delay: vec![(Time::ZERO, Span::from_millis(1))],
            jitter: None,
            jitter_changes: Vec::new(),
            loss: Vec::new(),
            duplicate: 0.0,
            policer: None,
            aggregation: None,
            queue: QueuePlan::Fifo { limit: LimitPlan::default(), mark: MarkPlan::None },
        };
        let plan = Plan {
            seed: 11,
            duration: Span::from_secs(5),
            nodes: vec!["A".into(), "B".into()],
            links: vec![link("A->B", 0, 1), link("B->A", 1, 0)],
            flows: vec![FlowPlan {
                start: Time::from_nanos(5),
                app: AppPlan::Poisson {
                    per_sec: 20.0,
                    size: SizePlan::Pareto { mean: 20_000.0, shape: 1.3 },
                },
                ..FlowPlan::bulk("web", (0, 1), "cubic")
            }],
            ..Plan::default()
        };
        let results = narrows_sim::run(&plan, &Default::default()).unwrap();
        let flows = results.tables.iter().find(|t| t.name == "flows").unwrap();
        let json = serde_json::json!({
            "plan": plan,
            "flows": [{"flow": 0, "source": "10.0.0.1", "destination": "10.0.0.2", "port": 5001}],
        });
        let spec: Spec = serde_json::from_value(json).unwrap();
        let ours = members(&spec).unwrap();
        let mut theirs: Vec<(u64, f64, u64)> = (0..flows.rows())
            .map(|i| {
                (
                    flows.u64("flow").unwrap()[i],
                    flows.f64("start_s").unwrap()[i],
                    flows.u64("size_bytes").unwrap()[i],
                )
            })
            .collect();
        theirs.sort_by_key(|f| f.0);
        assert!(theirs.len() > 50);
        let ours: Vec<_> =
            ours.iter().enumerate().map(|(i, m)| (i as u64, m.start.as_secs_f64(), m.size)).collect();
        assert_eq!(ours, theirs);
    }
}
