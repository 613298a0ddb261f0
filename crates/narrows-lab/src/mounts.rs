//! Makes a mount namespace for one test.

use std::thread;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

/// The folder at which bpffs is mounted.
const BPFFS: &str = "/sys/fs/bpf";

/// Runs `work` in a thread with a mount namespace of its own, in which no bpffs is mounted at `/sys/fs/bpf`.
/// Processes and threads that `work` starts are in the same namespace.
///
/// The kernel removes the namespace and its pins when the last process of the namespace ends. A test therefore leaves
/// no pinned eBPF objects, even if it fails, panics or is killed.
///
/// # Panics
/// If the namespace cannot be created, or `work` panics.
pub fn with_own_mounts<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace can be made");
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>).expect("mounts can be private");
            while umount2(BPFFS, MntFlags::MNT_DETACH).is_ok() {}
            work()
        });
        inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Mounts a bpffs at `/sys/fs/bpf`, on top of any existing mount.
///
/// # Panics
/// If the mount fails.
pub fn mount_bpffs() {
    mount(Some("bpf"), BPFFS, Some("bpf"), MsFlags::empty(), Some("mode=0700"))
        .expect("bpffs can be mounted");
}
