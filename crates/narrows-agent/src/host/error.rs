use std::io;
use std::path::PathBuf;

use crate::damping::Flaps;
use crate::htb;

/// Why a host could not become a sender or receiver. The message is one line: the attempt, the kernel's answer and a
/// remedy.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// An invalid option.
    #[error("{key}: {found}; {remedy}")]
    Setting {
        /// The option.
        key: &'static str,
        /// The value found.
        found: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The kernel lacks a feature, or this process lacks a privilege.
    #[error("{what}: {found}; {remedy}")]
    Missing {
        /// The operation attempted.
        what: &'static str,
        /// The kernel's answer.
        found: String,
        /// The remedy.
        remedy: String,
    },
    /// An interface cannot be used.
    #[error(transparent)]
    Interface(#[from] htb::Error),
    /// An interface vanishes too often.
    #[error(transparent)]
    Flaps(#[from] Flaps),
    /// A network namespace cannot be entered.
    #[error(transparent)]
    Netns(io::Error),
    /// An error in a network namespace.
    #[error("{}: {source}", netns.display())]
    Within {
        /// File of the namespace.
        netns: PathBuf,
        /// The error.
        source: Box<HostError>,
    },
    /// A system file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl HostError {
    /// Returns whether an option is wrong (exit code 2).
    pub fn is_setting(&self) -> bool {
        matches!(self, HostError::Setting { .. })
    }

    /// Returns whether the interface or namespace does not exist.
    pub(super) fn is_missing(&self) -> bool {
        match self {
            HostError::Interface(htb::Error::NoInterface(_)) => true,
            HostError::Netns(error) => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> HostError {
        let path = path.into();
        move |source| HostError::File { path, source }
    }
}
