//! What a run gives.

use narrows_sim::{Counts, Table};

use crate::sound::Soundness;

/// What a run gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The simulator's tables; what cannot be measured is NaN.
    pub tables: Vec<Table>,
    /// Size of the run: events are frames that a relay sent.
    pub counts: Counts,
    /// Whether to trust it.
    pub soundness: Soundness,
}
