//! Network namespaces: entering an existing one. Only the calling thread moves, so call this before starting
//! threads.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::{io, thread};

use nix::sched::{CloneFlags, setns};
use nix::sys::statfs::{NSFS_MAGIC, statfs};

/// Folder of the names that `ip netns` uses.
const NAMED: &str = "/run/netns";

/// The namespaces that `ip netns` has named, each with its path.
pub fn named() -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(NAMED).into_iter().flatten().flatten();
    let mut found: Vec<_> =
        entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect();
    found.sort();
    found
}

/// A network namespace by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Netns(PathBuf);

impl Netns {
    /// The namespace that `ip netns add NAME` made, or the namespace at a path such as `/proc/PID/ns/net`.
    pub fn named(name: &str) -> Self {
        if name.contains('/') { Netns(name.into()) } else { Netns(Path::new(NAMED).join(name)) }
    }

    /// The namespace at a path.
    pub fn at(path: PathBuf) -> Self {
        Netns(path)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Moves the calling thread there. Unlike `ip netns exec`, this function does not change mounts, so bpffs and
    /// cgroup2 stay visible.
    ///
    /// # Errors
    /// If there is no such namespace, or the caller lacks CAP_SYS_ADMIN.
    pub fn enter(&self) -> io::Result<()> {
        let failed = |kind, reason: &dyn std::fmt::Display| {
            io::Error::new(kind, format!("network namespace {}: {reason}", self.0.display()))
        };
        // `ip netns` makes a plain file without permissions first, and leaves one for a moment when it deletes a
        // namespace.
        if statfs(&self.0).is_ok_and(|found| found.filesystem_type() != NSFS_MAGIC) {
            return Err(failed(io::ErrorKind::NotFound, &"it is not the file of a network namespace"));
        }
        let namespace = File::open(&self.0).map_err(|error| failed(error.kind(), &error))?;
        setns(namespace, CloneFlags::CLONE_NEWNET)
            .map_err(|errno| failed(io::Error::from(errno).kind(), &errno.desc()))
    }

    /// Runs `work` there in a thread of its own and returns its result.
    ///
    /// # Errors
    /// As [`Netns::enter`].
    ///
    /// # Panics
    /// If `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let there = scope.spawn(|| self.enter().map(|()| work()));
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
