use std::io;
use std::path::PathBuf;

/// Why a host could not be made a sender or receiver. One line each: what, what was found, what would do.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// An option of the user's that cannot be.
    #[error("{key}: {found}; {remedy}")]
    Setting {
        /// The option.
        key: &'static str,
        /// What it was.
        found: String,
        /// What would do.
        remedy: &'static str,
    },
    /// Something that the kernel or this process lacks.
    #[error("{what}: {found}; {remedy}")]
    Missing {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        found: String,
        /// What would do.
        remedy: String,
    },
    /// A file of the system.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl HostError {
    /// Whether the user's options are to blame (exit code 2).
    pub fn is_setting(&self) -> bool {
        matches!(self, HostError::Setting { .. })
    }

    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> HostError {
        let path = path.into();
        move |source| HostError::File { path, source }
    }
}
