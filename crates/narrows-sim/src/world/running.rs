//! A run that is simulated in steps, e.g. by a page that shows the run while it goes on.

use std::sync::atomic::AtomicBool;

use narrows_control::units::Time;

use super::{Monitor, Results, World};
use crate::probe::Table;

/// A run that has begun. Its results do not depend on the steps: they equal those of [`Run::start`](super::Run::start),
/// bit for bit.
///
/// ```
/// # use narrows_sim::{Run, plan::Plan};
/// # use narrows_control::units::Time;
/// # fn example(plan: &Plan) -> Result<(), narrows_sim::Error> {
/// let mut running = Run::new(plan).begin()?;
/// let mut until = Time::ZERO;
/// while !running.is_complete() {
///     until = until + narrows_control::units::Span::from_millis(100);
///     running.advance(until);
/// }
/// let results = running.finish();
/// # Ok(())
/// # }
/// ```
pub struct Running<'p> {
    world: World<'p>,
    is_complete: bool,
}

/// A flow that has started and not ended, with the values that its row in the table `flows` will have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveFlow<'p> {
    /// The number of the flow. Flows are numbered in the order of their starts.
    pub flow: u32,
    /// The name of the flow.
    pub name: String,
    /// The name of the entry of the plan that has started the flow.
    pub source: &'p str,
}

impl<'p> Running<'p> {
    pub(super) fn new(world: World<'p>) -> Self {
        Running { world, is_complete: false }
    }

    /// Simulates until this time, or until the end of the run. Does nothing if this time is in the past.
    pub fn advance(&mut self, until: Time) {
        if self.is_complete || until < self.world.now {
            return;
        }
        let end = self.world.end;
        let until = until.min(end);
        self.world.end = until;
        // A tap can end the run. The event loop itself cannot fail, because this run has no flag that cancels it.
        let ran = self.world.run(&AtomicBool::new(false), &Monitor::default());
        debug_assert!(ran.is_ok(), "{ran:?}");
        let is_ended = self.world.end < until;
        self.is_complete = is_ended || until == end;
        if !is_ended {
            self.world.end = end;
        }
    }

    /// The simulated time that the run has reached.
    pub fn now(&self) -> Time {
        self.world.now
    }

    /// The number of events so far.
    pub fn events(&self) -> u64 {
        self.world.counts.events
    }

    /// Whether the run has reached its end.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the rows so far of one of these tables: `flows` (flows that have ended), `flow_samples`, `link_samples`,
    /// `events`, `traces`. Returns `None` for any other table.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.world.recorder.rows(name)
    }

    /// Returns the flows that exist now, if their numbers are at least `from`. The order is not specified.
    pub fn live_flows(&self, from: u32) -> impl Iterator<Item = LiveFlow<'p>> {
        self.world.flows.live().filter(move |flow| flow.meta.id >= from).map(|flow| {
            let plan = &self.world.plan.flows[flow.meta.plan as usize];
            LiveFlow { flow: flow.meta.id, name: plan.flow_name(flow.meta.member), source: &plan.name }
        })
    }

    /// Ends the run and returns its results. If the run is not complete, these are the results up to this time, as
    /// after [`Monitor::stop`].
    pub fn finish(mut self) -> Results {
        if !self.is_complete {
            self.world.end = self.world.now;
        }
        self.world.finish()
    }
}
