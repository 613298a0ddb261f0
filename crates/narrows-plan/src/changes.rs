//! Changes that happen when the congestion controller of a flow enters a phase.

use std::fmt;

use narrows_control::units::{Rate, Span};
use serde::{Deserialize, Serialize};

use crate::{JitterPlan, LossPlan};

/// A change of a link or an application. It happens a fixed time after a flow has entered a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TriggerPlan {
    /// Index of the flow plan whose congestion controller is observed. It must be a single TCP flow.
    pub flow: u32,
    /// The phase.
    pub phase: FlowPhase,
    /// Number of the visit to the phase, from 1.
    pub visit: u32,
    /// Time from the beginning of the visit to the change.
    #[serde(default)]
    pub after: Span,
    /// The change.
    pub change: ChangePlan,
}

/// The values that change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ChangePlan {
    /// A change of a link. A value of `None` does not change.
    Link {
        /// Index of the link.
        link: u32,
        /// Rate of the link.
        #[serde(default)]
        rate: Option<Rate>,
        /// Propagation delay.
        #[serde(default)]
        delay: Option<Span>,
        /// Random loss.
        #[serde(default)]
        loss: Option<LossPlan>,
        /// Random extra delay.
        #[serde(default)]
        jitter: Option<JitterPlan>,
    },
    /// A change of an application, which must be of the kind `scheduled`.
    App {
        /// Index of the flow plan.
        flow: u32,
        /// Rate of the application, application bytes/s; `None`: it always has data to send.
        #[serde(default)]
        rate: Option<Rate>,
    },
}

/// A phase of BBR.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowPhase {
    /// Startup.
    Startup,
    /// Drain.
    Drain,
    /// ProbeBW of BBR v1, which has no sub-phases.
    ProbeBw,
    /// Down, a sub-phase of ProbeBW.
    Down,
    /// Cruise, a sub-phase of ProbeBW.
    Cruise,
    /// Refill, a sub-phase of ProbeBW.
    Refill,
    /// Up, a sub-phase of ProbeBW.
    Up,
    /// ProbeRTT.
    ProbeRtt,
}

impl fmt::Display for FlowPhase {
    /// Writes the phase's name in plans, for example `probe_rtt`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FlowPhase {
    /// Returns the phase with these values of the traced variables `phase` and `step`. A controller without sub-phases
    /// of ProbeBW does not trace `step`.
    pub fn of_trace(phase: f64, step: Option<f64>) -> Option<Self> {
        let step = step.filter(|step| step.is_finite());
        Some(match (phase, step) {
            (0.0, _) => FlowPhase::Startup,
            (1.0, _) => FlowPhase::Drain,
            (2.0, None) => FlowPhase::ProbeBw,
            (2.0, Some(0.0)) => FlowPhase::Up,
            (2.0, Some(1.0)) => FlowPhase::Down,
            (2.0, Some(2.0)) => FlowPhase::Cruise,
            (2.0, Some(3.0)) => FlowPhase::Refill,
            (3.0, _) => FlowPhase::ProbeRtt,
            _ => return None,
        })
    }
}
