//! The beginning of a phase of a flow, at which a change happens.

use crate::units::Span;
use crate::value::fields::{Name, Whole};
use crate::value::table::table;
use crate::value::words::words;

words! {
    /// A phase of BBR.
    pub enum Phase {
        /// Startup.
        Startup = "startup",
        /// Drain.
        Drain = "drain",
        /// Down, a sub-phase of ProbeBW.
        Down = "down",
        /// Cruise, a sub-phase of ProbeBW.
        Cruise = "cruise",
        /// Refill, a sub-phase of ProbeBW.
        Refill = "refill",
        /// Up, a sub-phase of ProbeBW.
        Up = "up",
        /// ProbeRTT.
        ProbeRtt = "probe_rtt",
        /// ProbeBW of BBR v1.
        ProbeBw = "probe_bw",
    }
}

table! {
    /// The beginning of a phase of BBR. Only simulations support it.
    pub struct Beginning {
        /// Name of the flow in the results. The flow must be a single TCP flow.
        pub flow: String as Name;
        /// The phase. The congestion controller must write its phase to its trace, as the variants of BBR do. In BBR
        /// v1, ProbeBW is the single phase `probe_bw`.
        pub phase: Phase as Phase;
        /// Number of the flow's visit to the phase, from 1. If the visit does not begin during the run, the change does
        /// not happen.
        pub visit: u32 as Whole<u32, 1, 1_000_000> = 1;
    }
}

/// Returns an error if a change has neither a time nor a phase.
pub(crate) fn check_time(time: Option<Span>, when: Option<&Beginning>) -> Result<(), String> {
    if time.is_none() && when.is_none() {
        return Err("a time, or the beginning of a phase (when = {...})".to_owned());
    }
    Ok(())
}
