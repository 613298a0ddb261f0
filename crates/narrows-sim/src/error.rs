//! What can be wrong with a plan.

/// Why a plan cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A figure or reference that makes no sense.
    #[error("{what}: found {found}, expected {expected}")]
    Invalid {
        /// Where, e.g. `links[3].delay`.
        what: String,
        /// What stands there.
        found: String,
        /// What would do.
        expected: String,
    },
    /// Parameters that a rate controller refuses, in its own words.
    #[error("{what}: {trouble}")]
    Parameters {
        /// Where, e.g. `controllers[0].params`.
        what: String,
        /// What it says.
        trouble: String,
    },
    /// No path between the ends of a flow.
    #[error("flow {flow}: no path from {from} to {to}")]
    Unreachable {
        /// The flow.
        flow: String,
        /// Sender.
        from: String,
        /// Receiver.
        to: String,
    },
    /// The caller asked the run to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    pub(crate) fn invalid(
        what: impl Into<String>,
        found: impl ToString,
        expected: impl Into<String>,
    ) -> Self {
        Error::Invalid { what: what.into(), found: found.to_string(), expected: expected.into() }
    }
}
