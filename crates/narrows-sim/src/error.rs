//! Errors in plans.

/// The reason why a plan cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value or reference is out of range.
    #[error("{what}: found {found}, expected {expected}")]
    Invalid {
        /// Location in the plan, e.g. `links[3].delay`.
        what: String,
        /// The value in the plan.
        found: String,
        /// The values that are accepted.
        expected: String,
    },
    /// No path exists between the ends of a flow.
    #[error("flow {flow}: no path from {from} to {to}")]
    Unreachable {
        /// Name of the flow.
        flow: String,
        /// Node of the sender.
        from: String,
        /// Node of the receiver.
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
