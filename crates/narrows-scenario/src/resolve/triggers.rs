//! Makes the triggers of a plan: changes of links and applications at the beginning of phases.

use indexmap::IndexMap;
use narrows_plan::{ChangePlan, FlowPhase, FlowPlan, TriggerPlan};

use super::entries::Entry;
use super::graph::Graph;
use super::links;
use crate::error::{Error, Result, found_text, hint};
use crate::model::{Beginning, Phase};
use crate::units::Span;

/// Collects the triggers of a plan.
struct Triggers<'a> {
    /// The indices of the flows that can have triggers, by name.
    flows: IndexMap<&'a str, u32>,
    kernel: &'a str,
    made: Vec<TriggerPlan>,
}

/// Returns the triggers of all links and applications.
///
/// # Errors
/// Returns an error if a trigger does not name a single TCP flow, or if a kernel runs the plan.
pub(super) fn triggers(
    graph: &Graph<'_>,
    entries: &[Entry],
    flows: &[FlowPlan],
    kernel: &str,
) -> Result<Vec<TriggerPlan>> {
    let with_phases = flows.iter().zip(0..).filter(|(flow, _)| flow.has_phases());
    let flows = with_phases.map(|(flow, i)| (flow.name.as_str(), i)).collect();
    let mut triggers = Triggers { flows, kernel, made: Vec::new() };
    for (link, i) in graph.links.iter().zip(0..) {
        for (number, change) in link.traits.at.iter().enumerate() {
            let Some(when) = &change.when else { continue };
            let values = ChangePlan::Link {
                link: i,
                rate: change.rate.map(|rate| rate.in_bytes()),
                delay: change.delay,
                loss: change.loss.as_ref().map(links::loss),
                jitter: change.jitter.as_ref().map(links::jitter),
            };
            let is_empty = change.rate.is_none()
                && change.delay.is_none()
                && change.loss.is_none()
                && change.jitter.is_none();
            if !is_empty {
                triggers.add(when, change.time, values, format!("{}.at.{number}.when", link.key))?;
            }
        }
    }
    for (entry, i) in entries.iter().zip(0..) {
        let Some(app) = &entry.flow.app else { continue };
        for (number, change) in app.at.iter().enumerate() {
            let Some(when) = &change.when else { continue };
            let values = ChangePlan::App { flow: i, rate: change.rate.map(|rate| rate.in_bytes()) };
            triggers.add(when, change.time, values, format!("{}.app.at.{number}.when", entry.key()))?;
        }
    }
    Ok(triggers.made)
}

impl Triggers<'_> {
    fn add(&mut self, when: &Beginning, after: Option<Span>, change: ChangePlan, key: String) -> Result<()> {
        if !self.kernel.is_empty() {
            let message = "found a phase, expected --on sim, because real stacks do not report phases";
            return Err(Error::new(message, key));
        }
        let Some(&flow) = self.flows.get(when.flow.as_str()) else {
            let near = hint(&when.flow, self.flows.keys().copied());
            let message =
                format!("found {}, expected the name of a single TCP flow{near}", found_text(&when.flow));
            return Err(Error::new(message, format!("{key}.flow")));
        };
        let (phase, visit) = (phase_of(when.phase), when.visit);
        self.made.push(TriggerPlan { flow, phase, visit, after: after.unwrap_or_default(), change });
        Ok(())
    }
}

fn phase_of(phase: Phase) -> FlowPhase {
    match phase {
        Phase::Startup => FlowPhase::Startup,
        Phase::Drain => FlowPhase::Drain,
        Phase::Down => FlowPhase::Down,
        Phase::Cruise => FlowPhase::Cruise,
        Phase::Refill => FlowPhase::Refill,
        Phase::Up => FlowPhase::Up,
        Phase::ProbeRtt => FlowPhase::ProbeRtt,
        Phase::ProbeBw => FlowPhase::ProbeBw,
    }
}
