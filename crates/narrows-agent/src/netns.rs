//! Network namespaces: entering one that exists. Only the calling thread moves, so this comes before threads do.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::{io, thread};

use nix::sched::{CloneFlags, setns};

/// Where `ip netns` keeps its names.
const NAMED: &str = "/run/netns";

/// A network namespace by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Netns(PathBuf);

impl Netns {
    /// The one that `ip netns add NAME` made, or any by a path such as `/proc/PID/ns/net`.
    pub fn named(name: &str) -> Self {
        if name.contains('/') { Netns(name.into()) } else { Netns(Path::new(NAMED).join(name)) }
    }

    /// Moves the calling thread there. Unlike `ip netns exec` it leaves the mounts alone, so that bpffs and cgroup2
    /// stay in sight.
    ///
    /// # Errors
    /// When there is no such namespace, or the caller may not (CAP_SYS_ADMIN).
    pub fn enter(&self) -> io::Result<()> {
        let namespace = File::open(&self.0)
            .map_err(|e| io::Error::new(e.kind(), format!("network namespace {}: {e}", self.0.display())))?;
        setns(namespace, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
    }

    /// Runs `work` there in a thread of its own, and returns what it returned.
    ///
    /// # Errors
    /// As [`Netns::enter`].
    ///
    /// # Panics
    /// When `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let there = scope.spawn(|| self.enter().map(|()| work()));
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
