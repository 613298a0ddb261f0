//! What can go wrong with a run on real stacks.

use std::io;
use std::path::Path;

/// Why a run did not come about, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The spec contradicts itself or the plan.
    #[error("{what}: found {found}, expected {expected}")]
    Invalid {
        /// Where, e.g. `relays[1].link`.
        what: String,
        /// What stands there.
        found: String,
        /// What would do.
        expected: String,
    },
    /// The plan is refused.
    #[error(transparent)]
    Plan(#[from] narrows_sim::Error),
    /// The kernel refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried, e.g. `/run/netns/h0: enter network namespace`.
        what: String,
        /// What the kernel said.
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

    /// For `map_err`: says what was tried.
    pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |e| Error::System { what, source: e.into() }
    }

    /// The same for something in a namespace.
    pub(crate) fn at<E: Into<io::Error>>(netns: &Path, what: &str) -> impl FnOnce(E) -> Error {
        Error::system(format!("{}: {what}", netns.display()))
    }
}
