//! The states of a port as events: the states of the paper's Figure 5, and the settling time of BRF-36.

use super::Brf;
use super::cycle::Phase;
use crate::rate::{Action, FlowIdentity};

/// A state of Figure 5. INIT, BW_INIT and ALLOC take no time: the next state begins at the same time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The tables are built.
    Init,
    /// A new flow gets its first rate.
    BwInit,
    /// Senders learn their rates. The paper does not have this state. In the paper, the port measures immediately.
    Settle,
    /// The use of each flow is measured.
    Measure,
    /// Rates are computed from the measurement.
    Alloc,
    /// Rates are reduced until the queue has drained.
    Congestion,
}

impl State {
    /// Returns the kind of the event.
    pub(super) const fn event(self) -> &'static str {
        match self {
            State::Init => "state-init",
            State::BwInit => "state-bw-init",
            State::Settle => "state-settle",
            State::Measure => "state-measure",
            State::Alloc => "state-alloc",
            State::Congestion => "state-congestion",
        }
    }

    /// Returns the state of a port in this phase.
    const fn of(phase: Phase) -> Self {
        match phase {
            Phase::Settle { .. } => State::Settle,
            Phase::Measure { .. } => State::Measure,
            Phase::Congested => State::Congestion,
        }
    }
}

impl<K: FlowIdentity> Brf<K> {
    /// Reports that the port is in this state now. The value is the number of flows with a rate.
    pub(super) fn report_state(&self, state: State, actions: &mut Vec<Action<K>>) {
        actions.push(Action::State { state: state.event(), value: self.shares.flows() as f64 });
    }

    /// Reports the state of the current phase.
    pub(super) fn report_phase(&self, actions: &mut Vec<Action<K>>) {
        self.report_state(State::of(self.cycle.phase()), actions);
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
