//! Enters existing network namespaces. Only the calling thread enters a namespace, so do this before you start other
//! threads.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::{io, thread};

use nix::sched::{CloneFlags, setns};
use nix::sys::statfs::{NSFS_MAGIC, statfs};

/// Folder in which `ip netns` keeps a file for each named namespace.
const NAMED: &str = "/run/netns";

/// Returns the name and path of each namespace of `ip netns`.
pub fn named() -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(NAMED).into_iter().flatten().flatten();
    let mut found: Vec<_> =
        entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect();
    found.sort();
    found
}

/// A network namespace, identified by the path of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Netns(PathBuf);

impl Netns {
    /// Returns the namespace that `ip netns add NAME` has made. If `name` has a slash, it is a path such as
    /// `/proc/PID/ns/net`.
    pub fn named(name: &str) -> Self {
        if name.contains('/') { Netns(name.into()) } else { Netns(Path::new(NAMED).join(name)) }
    }

    /// Returns the namespace at a path.
    pub fn at(path: PathBuf) -> Self {
        Netns(path)
    }

    /// Returns the path of the namespace's file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Moves the calling thread into the namespace. Mounts stay the same, unlike with `ip netns exec`, so bpffs and
    /// cgroup2 stay visible.
    ///
    /// # Errors
    /// If there is no such namespace, or the caller lacks CAP_SYS_ADMIN.
    pub fn enter(&self) -> io::Result<()> {
        let failed = |kind, reason: &dyn std::fmt::Display| {
            io::Error::new(kind, format!("network namespace {}: {reason}", self.0.display()))
        };
        // `ip netns add` first makes a plain file and then mounts the namespace on it. After `ip netns del`, the plain
        // file remains for a moment.
        if statfs(&self.0).is_ok_and(|found| found.filesystem_type() != NSFS_MAGIC) {
            return Err(failed(io::ErrorKind::NotFound, &"it is not the file of a network namespace"));
        }
        let namespace = File::open(&self.0).map_err(|error| failed(error.kind(), &error))?;
        setns(namespace, CloneFlags::CLONE_NEWNET)
            .map_err(|errno| failed(io::Error::from(errno).kind(), &errno.desc()))
    }

    /// Runs `work` in the namespace, in a new thread, and returns its result.
    ///
    /// # Errors
    /// If the namespace cannot be entered ([`Netns::enter`]).
    ///
    /// # Panics
    /// If `work` panics.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let there = scope.spawn(|| self.enter().map(|()| work()));
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
