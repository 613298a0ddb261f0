use std::io;
use std::path::PathBuf;

use crate::bpffs;

/// What would do where the kernel lacks a part.
pub(super) const REMEDY: &str = "Linux 6.1 or later with CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF is needed";

/// Why a congestion control could not be loaded, found or unloaded. One line each: what, what was found, what would do.
#[derive(Debug, thiserror::Error)]
pub enum CcError {
    /// A name that none of ours has.
    #[error("congestion control: found {0:?}, expected one of bbr, bbr-a, bbr-b, bbr-c, all")]
    Unknown(String),
    /// An option of variants for BBR v1.
    #[error("{0}: found with bbr, which has no gain model; expected bbr-a, bbr-b or bbr-c")]
    Pointless(&'static str),
    /// A name that the kernel would cut short.
    #[error("found the name {0:?}, expected at most 15 characters (TCP_CA_NAME_MAX)")]
    Long(String),
    /// It is there.
    #[error("{0} is loaded already; unload it first to load it with other options")]
    Loaded(String),
    /// One of this name is registered and not pinned here.
    #[error(
        "{name} is registered already, but not pinned in {}; `narrows-agent cc unload {name}` removes it, \
         unless it is the default of a network namespace",
        folder.display()
    )]
    Taken {
        /// The name.
        name: String,
        /// Where it would be pinned.
        folder: PathBuf,
    },
    /// It is not there.
    #[error("{0} is not loaded")]
    Absent(String),
    /// Connections have it.
    #[error("{name} is in use by {connections} connection(s); end them first")]
    InUse {
        /// The name.
        name: String,
        /// How many.
        connections: u64,
    },
    /// New connections would have it.
    #[error(
        "{0} is the default (sysctl net.ipv4.tcp_congestion_control); set that to another congestion control first"
    )]
    Default(String),
    /// What the user may not do.
    #[error("{0}")]
    Privileges(String),
    /// Something that the kernel lacks.
    #[error("{what}: {found}; {remedy}")]
    Missing {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        found: String,
        /// What would do.
        remedy: &'static str,
    },
    /// It cannot be unloaded from here.
    #[error(
        "{name} is loaded, but pinned in another mount namespace, and this kernel cannot detach it from here \
         ({found}); unload it where it was loaded"
    )]
    Elsewhere {
        /// The name.
        name: String,
        /// What the kernel said.
        found: io::Error,
    },
    /// bpffs cannot be mounted or locked.
    #[error(transparent)]
    Bpffs(#[from] bpffs::Error),
    /// The mounts cannot be looked at.
    #[error("looking below the mount at /sys/fs/bpf: {0}")]
    Mounts(#[from] io::Error),
    /// A file of the system.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
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
