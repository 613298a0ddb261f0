//! The results of a run.

use narrows_sim::{Counts, Table};

use crate::sound::Soundness;

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The simulator's tables. Values that cannot be measured are NaN.
    pub tables: Vec<Table>,
    /// Numbers of packets, flows and events of the run. An event is a frame that a relay has sent.
    pub counts: Counts,
    /// Whether the run can be trusted.
    pub soundness: Soundness,
}
