//! Errors of runs on real stacks.

use std::io;
use std::path::Path;

/// The reason why a run did not start or ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value in the spec is invalid, or contradicts another value in the spec or the plan.
    #[error("{what}: found {found}, expected {expected}")]
    Invalid {
        /// Location in the spec, e.g. `relays[1].link`.
        what: String,
        /// The value in the spec.
        found: String,
        /// The values that are accepted.
        expected: String,
    },
    /// The plan is invalid.
    #[error(transparent)]
    Plan(#[from] narrows_sim::Error),
    /// The kernel refused an operation.
    #[error("{what}: {source}")]
    System {
        /// The operation, e.g. `/run/netns/h0: enter network namespace`.
        what: String,
        /// The kernel's error.
        source: io::Error,
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

    /// Returns a function for `map_err` that adds the name of the operation to an error.
    pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |e| Error::System { what, source: e.into() }
    }

    /// Like [`Error::system`], but also adds the namespace in which the operation failed.
    pub(crate) fn at<E: Into<io::Error>>(netns: &Path, what: &str) -> impl FnOnce(E) -> Error {
        Error::system(format!("{}: {what}", netns.display()))
    }
}
