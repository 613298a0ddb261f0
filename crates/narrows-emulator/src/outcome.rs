//! The results of a run.

use narrows_sim::{Counts, Table};

use crate::sound::Soundness;

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The simulator's tables. Values that cannot be measured are NaN.
    pub tables: Vec<Table>,
    /// Size of the run. The number of events is the number of frames that relays sent.
    pub counts: Counts,
    /// Whether the run can be trusted.
    pub soundness: Soundness,
}
