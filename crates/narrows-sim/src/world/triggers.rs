//! Changes that happen when a flow enters a phase of its congestion controller.
//!
//! The simulator uses all changes of a link's rate in advance (`net/service.rs`), so a change cannot be added during a
//! run. Instead, the plan is simulated until the phase begins. Then the change gets a fixed time, and the run starts
//! again. Both runs are equal, bit for bit, up to the change, so the phase begins at the same time in both.

use std::cell::RefCell;
use std::rc::Rc;

use narrows_control::units::{Span, Time};

use super::World;
use super::samples::WATCH;
use crate::engine::Kind;
use crate::flow::Body;
use crate::plan::{AppPlan, ChangePlan, FlowPhase, Plan, RatePlan, TriggerPlan};
use crate::probe::row;

/// If the phase of a trigger has begun, the results contain an event. The kind of this event is this prefix, followed
/// by the phase.
pub const PHASE_BEGAN: &str = "phase-began: ";
/// The prefix of the event's kind if the phase of a trigger did not begin before the end of the plan.
pub const PHASE_NEVER_BEGAN: &str = "phase-never-began: ";

/// Time from the event that begins a phase to a change without a delay. The change must not affect this event, because
/// the phase might then not begin.
const MARGIN: Span = Span::from_nanos(1);

/// The search for the times at which the phases of a plan's triggers begin.
pub(super) struct Search<'p> {
    triggers: &'p [TriggerPlan],
    /// The times at which the phases begin. `None`: not known yet.
    times: Vec<Option<Time>>,
    /// Whether a run of the search has ended before any of the remaining phases began. No further run is then needed.
    is_complete: bool,
}

impl<'p> Search<'p> {
    pub(super) fn new(plan: &'p Plan) -> Self {
        let triggers = plan.triggers.as_slice();
        Search { triggers, times: vec![None; triggers.len()], is_complete: false }
    }

    /// Returns the phases to watch for in the next run of the search. Returns `None` if the search is complete.
    pub(super) fn next(&self) -> Option<Rc<RefCell<Watch>>> {
        let pending = self.triggers.iter().zip(&self.times).filter(|(_, time)| time.is_none());
        let wanted: Vec<Beginning> = pending.map(|(trigger, _)| Beginning::of(trigger)).collect();
        if self.is_complete || wanted.is_empty() {
            return None;
        }
        let mut observers: Vec<Observer> = Vec::new();
        for beginning in &wanted {
            if !observers.iter().any(|observer| observer.plan == beginning.flow) {
                observers.push(Observer::new(beginning.flow));
            }
        }
        Some(Rc::new(RefCell::new(Watch { wanted, observers, found: None })))
    }

    /// Uses the result of a run of the search.
    pub(super) fn finish(&mut self, watch: &Watch) {
        match &watch.found {
            None => self.is_complete = true,
            Some((at, begun)) => {
                for (trigger, time) in self.triggers.iter().zip(&mut self.times) {
                    if time.is_none() && begun.contains(&Beginning::of(trigger)) {
                        *time = Some(*at);
                    }
                }
            }
        }
    }

    /// Returns the phases of the triggers, without duplicates.
    pub(super) fn begins(&self) -> Vec<PhaseBegin> {
        let mut begins: Vec<PhaseBegin> = Vec::new();
        for (trigger, &at) in self.triggers.iter().zip(&self.times) {
            let beginning = Beginning::of(trigger);
            if !begins.iter().any(|begin| begin.beginning == beginning) {
                begins.push(PhaseBegin { beginning, at });
            }
        }
        begins
    }

    /// Returns the plan with the known times instead of triggers.
    ///
    /// If the time of a trigger is not known, its change gets a time after the end of the run. The change is not left
    /// out, because the simulator computes transmission times in another way if a link's rate never changes.
    pub(super) fn plan(&self, plan: &Plan) -> Plan {
        let mut timed = plan.clone();
        timed.triggers.clear();
        for (trigger, begin) in self.triggers.iter().zip(&self.times) {
            let at = begin.unwrap_or(Time::ZERO + plan.duration) + trigger.after + MARGIN;
            match &trigger.change {
                &ChangePlan::App { flow, rate } => {
                    if let AppPlan::Scheduled { steps } = &mut timed.flows[flow as usize].app {
                        insert(steps, at, Some(rate));
                    }
                }
                ChangePlan::Link { link, rate, delay, loss, jitter } => {
                    let link = &mut timed.links[*link as usize];
                    if let RatePlan::Steps { steps, .. } = &mut link.rate {
                        insert(steps, at, *rate);
                    }
                    insert(&mut link.delay, at, *delay);
                    insert(&mut link.loss, at, loss.clone());
                    insert(&mut link.jitter_changes, at, jitter.clone());
                }
            }
        }
        timed
    }
}

/// Adds a step at this time, or replaces the step that begins then.
fn insert<T>(steps: &mut Vec<(Time, T)>, at: Time, value: Option<T>) {
    let Some(value) = value else { return };
    match steps.binary_search_by_key(&at, |&(t, _)| t) {
        Ok(i) => steps[i].1 = value,
        Err(i) => steps.insert(i, (at, value)),
    }
}

/// The beginning of a visit to a phase.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Beginning {
    /// Index of the flow plan.
    flow: u32,
    phase: FlowPhase,
    visit: u32,
}

impl Beginning {
    fn of(trigger: &TriggerPlan) -> Self {
        Beginning { flow: trigger.flow, phase: trigger.phase, visit: trigger.visit }
    }
}

/// A phase of a trigger, and when it began.
pub(super) struct PhaseBegin {
    beginning: Beginning,
    /// `None`: the phase did not begin before the end of the plan.
    at: Option<Time>,
}

/// The phases that a run of the search watches for.
pub(super) struct Watch {
    wanted: Vec<Beginning>,
    observers: Vec<Observer>,
    /// The first time at which some of the wanted phases began, and these phases.
    found: Option<(Time, Vec<Beginning>)>,
}

/// The phases of one flow so far.
struct Observer {
    /// Index of the flow plan.
    plan: u32,
    /// Slot of the flow, once it has started. The plan has a single flow, so the slot does not change.
    slot: Option<u32>,
    phase: Option<FlowPhase>,
    visits: Vec<(FlowPhase, u32)>,
}

impl Observer {
    fn new(plan: u32) -> Self {
        Observer { plan, slot: None, phase: None, visits: Vec::new() }
    }

    /// If the flow has entered another phase since the last call, returns the beginning of this visit.
    fn update(&mut self, world: &World<'_>) -> Option<Beginning> {
        let is_own = |slot: u32| world.flows.is_live(slot) && world.flows[slot].meta.plan == self.plan;
        self.slot = self.slot.or_else(|| world.flows.slots().find(|&slot| is_own(slot)));
        let phase = self.slot.filter(|&slot| is_own(slot)).and_then(|slot| world.phase_of(slot))?;
        if self.phase.replace(phase) == Some(phase) {
            return None;
        }
        let known = self.visits.iter().position(|&(other, _)| other == phase);
        let i = known.unwrap_or_else(|| {
            self.visits.push((phase, 0));
            self.visits.len() - 1
        });
        self.visits[i].1 += 1;
        Some(Beginning { flow: self.plan, phase, visit: self.visits[i].1 })
    }
}

impl World<'_> {
    /// Records an event for each phase that has begun, and for each phase that did not begin before the end of the
    /// plan.
    pub(super) fn record_phases(&mut self, begins: &[PhaseBegin]) {
        for PhaseBegin { beginning: Beginning { flow, phase, visit }, at } in begins {
            let (kind, at) = match *at {
                Some(at) if at <= self.end => (PHASE_BEGAN, at),
                None if self.end >= Time::ZERO + self.plan.duration => (PHASE_NEVER_BEGAN, self.end),
                // The run was stopped before the phase began.
                _ => continue,
            };
            let (kind, name) = (format!("{kind}{phase}"), &self.plan.flows[*flow as usize].name);
            self.recorder.events.push(row![
                at.as_secs_f64(),
                kind.as_str(),
                name.as_str(),
                f64::from(*visit)
            ]);
        }
    }

    /// Makes the run end when one of the phases begins.
    pub(super) fn start_watch(&mut self, watch: Rc<RefCell<Watch>>) {
        self.watch = Some(watch);
        self.watch_next();
    }

    /// Schedules a check of the phases for the time of the next event. At this time, the check comes after all events
    /// that are already scheduled.
    fn watch_next(&mut self) {
        if let Some(next) = self.events.next_at() {
            self.events.push(next, Kind::Sample, WATCH);
        }
    }

    /// Ends the run if a wanted phase has begun.
    #[cold]
    pub(super) fn watch_event(&mut self) {
        let Some(watch) = self.watch.clone() else { return };
        let mut watch = watch.borrow_mut();
        let Watch { wanted, observers, found } = &mut *watch;
        let new = observers.iter_mut().filter_map(|observer| observer.update(self));
        let begun: Vec<Beginning> = new.filter(|beginning| wanted.contains(beginning)).collect();
        if begun.is_empty() {
            self.watch_next();
        } else {
            *found = Some((self.now, begun));
            self.end = self.now;
        }
    }

    /// Returns the phase of the controller of a TCP flow, from its traced variables.
    fn phase_of(&self, slot: u32) -> Option<FlowPhase> {
        let Body::Tcp(tcp) = &self.flows[slot].body else { return None };
        let (mut phase, mut step) = (None, None);
        tcp.sender.control.cc.trace(&mut |key, value| match key {
            "phase" => phase = Some(value),
            "step" => step = Some(value),
            _ => {}
        });
        FlowPhase::of_trace(phase?, step)
    }
}
