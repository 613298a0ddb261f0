use std::io;
use std::path::PathBuf;

use super::Variant;
use crate::bpffs;

/// The remedy if the kernel lacks a feature.
pub(super) const REMEDY: &str = "Linux 6.1 or later with CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF is needed";

/// Why a congestion control algorithm could not be loaded, found or unloaded. The message is one line: the attempt, the
/// kernel's answer and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum CcError {
    /// An unknown name.
    #[error("congestion control: found {0:?}, expected one of {names}, all", names = Variant::names())]
    Unknown(String),
    /// An option of the gain model was given for an algorithm without a gain model.
    #[error("{option}: found with {name}, which has no gain model; expected bbr-a, bbr-b or bbr-c")]
    Pointless {
        /// The option.
        option: &'static str,
        /// The algorithm.
        name: &'static str,
    },
    /// The kernel would truncate this name.
    #[error("found the name {0:?}, expected at most 15 characters (TCP_CA_NAME_MAX)")]
    Long(String),
    /// The algorithm is loaded already.
    #[error("{0} is loaded already; unload it first to load it with other options")]
    Loaded(String),
    /// An algorithm of this name is registered, but not pinned in the folder.
    #[error(
        "{name} is registered already, but not pinned in {}; `narrows-agent cc unload {name}` removes it, \
         unless it is the default of a network namespace",
        folder.display()
    )]
    Taken {
        /// The name.
        name: String,
        /// Where the algorithm would be pinned.
        folder: PathBuf,
    },
    /// The algorithm is not loaded.
    #[error("{0} is not loaded")]
    Absent(String),
    /// Connections use the algorithm.
    #[error("{name} is in use by {connections} connection(s); end them first")]
    InUse {
        /// The name.
        name: String,
        /// Number of connections.
        connections: u64,
    },
    /// The algorithm was unloaded, but the kernel still has it.
    #[error(
        "{name} is no longer pinned, but is still registered after {seconds} s: {connections} connection(s) use it, \
         or another process holds its link"
    )]
    Held {
        /// The name.
        name: String,
        /// How long the caller waited.
        seconds: u64,
        /// Number of connections.
        connections: u64,
    },
    /// The algorithm is the default for new connections.
    #[error(
        "{0} is the default (sysctl net.ipv4.tcp_congestion_control); set that to another congestion control first"
    )]
    Default(String),
    /// The user lacks privileges.
    #[error("{0}")]
    Privileges(String),
    /// The kernel lacks a feature.
    #[error("{what}: {found}; {remedy}")]
    Missing {
        /// The operation attempted.
        what: &'static str,
        /// The kernel's answer.
        found: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The algorithm cannot be unloaded from this mount namespace.
    #[error(
        "{name} is loaded, but pinned in another mount namespace, and this kernel cannot detach it from here \
         ({found}); unload it where it was loaded"
    )]
    Elsewhere {
        /// The name.
        name: String,
        /// The kernel's answer.
        found: io::Error,
    },
    /// bpffs cannot be mounted or locked.
    #[error(transparent)]
    Bpffs(#[from] bpffs::Error),
    /// The mounts cannot be read.
    #[error("cannot look for hidden mounts at /sys/fs/bpf: {0}")]
    Mounts(#[from] io::Error),
    /// A system file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl CcError {
    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> CcError {
        let path = path.into();
        move |source| CcError::File { path, source }
    }

    pub(super) fn refused(
        what: &'static str,
        remedy: &'static str,
    ) -> impl FnOnce(libbpf_rs::Error) -> CcError {
        move |error| CcError::Missing { what, found: format!("{error:#}"), remedy }
    }
}
