//! Drops the privileges that an agent does not need once its programs are loaded.

use std::io;

use caps::{CapSet, Capability, CapsHashSet};

/// Needed by a running agent: CAP_NET_ADMIN for HTB and detaching, CAP_BPF for maps (where unprivileged BPF
/// is disabled).
pub const RUNNING: [Capability; 2] = [Capability::CAP_NET_ADMIN, Capability::CAP_BPF];

/// Needed to load the programs: in addition CAP_PERFMON, because they read kernel memory.
const LOADING: [Capability; 3] = [Capability::CAP_NET_ADMIN, Capability::CAP_BPF, Capability::CAP_PERFMON];

/// Checks the privileges that loading the programs needs. The error is one line with the missing privileges and a
/// remedy.
///
/// # Errors
/// That line.
pub fn check() -> Result<(), String> {
    let has = |c: &Capability| caps::has_cap(None, CapSet::Effective, *c).unwrap_or(false);
    // CAP_SYS_ADMIN includes the two newer ones (capabilities(7)).
    let lacks =
        |c: &&Capability| !has(c) && (**c == Capability::CAP_NET_ADMIN || !has(&Capability::CAP_SYS_ADMIN));
    let lacking: Vec<_> = LOADING.iter().filter(lacks).map(ToString::to_string).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    Err(format!("lacks {}; run it as root (sudo) or by its systemd unit", lacking.join(", ")))
}

/// Keeps only these capabilities, for this thread and those that it starts. Programs that the process executes cannot
/// gain capabilities.
///
/// Call this function before threads start: Linux keeps capabilities per thread.
///
/// # Errors
/// If the kernel refuses. Capabilities dropped until then stay dropped.
pub fn drop_to(keep: &[Capability]) -> io::Result<()> {
    let permitted = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    // The bounding set cannot be reduced without CAP_SETPCAP. With no_new_privs this has no effect.
    if permitted.contains(&Capability::CAP_SETPCAP) {
        for capability in caps::all().into_iter().filter(|c| !keep.contains(c)) {
            // Fails for capabilities that this kernel does not know.
            let _ = caps::drop(None, CapSet::Bounding, capability);
        }
    }
    caps::clear(None, CapSet::Inheritable).map_err(io::Error::other)?;
    let kept: CapsHashSet = keep.iter().copied().filter(|c| permitted.contains(c)).collect();
    caps::set(None, CapSet::Effective, &kept).map_err(io::Error::other)?;
    caps::set(None, CapSet::Permitted, &kept).map_err(io::Error::other)?;
    nix::sys::prctl::set_no_new_privs().map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test runs in a thread of its own, because dropped capabilities cannot be regained.
    #[test]
    fn dropped_capabilities_cannot_be_regained() {
        std::thread::spawn(|| {
            let had = caps::read(None, CapSet::Permitted).unwrap();
            drop_to(&RUNNING).unwrap();
            let has = caps::read(None, CapSet::Effective).unwrap();
            let expected: CapsHashSet = RUNNING.into_iter().filter(|c| had.contains(c)).collect();
            assert_eq!(has, expected);
            assert!(caps::raise(None, CapSet::Effective, Capability::CAP_SYS_ADMIN).is_err());
            assert!(nix::sys::prctl::get_no_new_privs().unwrap());
        })
        .join()
        .unwrap();
    }
}
