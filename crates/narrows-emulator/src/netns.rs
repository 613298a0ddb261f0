//! Operations inside a network namespace.
//!
//! A socket always belongs to the namespace in which it was created. A separate thread therefore enters the
//! namespace, creates the socket, and ends. Other threads never change their namespace.

use std::fs::File;
use std::path::Path;

use nix::sched::{CloneFlags, setns};

use crate::error::Error;

/// Runs `task` inside the namespace at `path`.
///
/// # Errors
/// If there is no such namespace, if the process may not enter it, or if `task` fails.
pub(crate) fn inside<T: Send>(
    path: &Path,
    task: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let file = File::open(path).map_err(Error::at(path, "open network namespace"))?;
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            setns(file, CloneFlags::CLONE_NEWNET).map_err(Error::at(path, "enter network namespace"))?;
            task()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Returns the last number in the value of a sysctl, e.g. the maximum in `net/ipv4/tcp_rmem`. The value is read in the
/// calling thread's namespace.
pub(crate) fn sysctl_last(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
    text.split_whitespace().next_back()?.parse().ok()
}
