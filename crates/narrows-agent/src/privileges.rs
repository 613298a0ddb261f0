//! Drops privileges after an agent has loaded its programs.

use std::io;

use caps::{CapSet, Capability, CapsHashSet};

/// Capabilities of a running agent. CAP_NET_ADMIN is for HTB and for detaching programs. CAP_BPF is for maps, if
/// unprivileged BPF is disabled.
pub const RUNNING: [Capability; 2] = [Capability::CAP_NET_ADMIN, Capability::CAP_BPF];

/// The capability to enter network namespaces (setns(2)). An agent with `[[namespaces]]` keeps it in reserve.
pub const ENTERING: Capability = Capability::CAP_SYS_ADMIN;

/// Capabilities for loading the programs. CAP_PERFMON is for reading kernel memory.
const LOADING: [Capability; 3] = [Capability::CAP_NET_ADMIN, Capability::CAP_BPF, Capability::CAP_PERFMON];

/// Checks that this thread has the capabilities for loading the programs.
///
/// # Errors
/// One line with the missing capabilities and a remedy.
pub fn check() -> Result<(), String> {
    let has = |c: &Capability| caps::has_cap(None, CapSet::Effective, *c).unwrap_or(false);
    // CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON (capabilities(7)).
    let lacks =
        |c: &&Capability| !has(c) && (**c == Capability::CAP_NET_ADMIN || !has(&Capability::CAP_SYS_ADMIN));
    let lacking: Vec<_> = LOADING.iter().filter(lacks).map(ToString::to_string).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    Err(format!("this process lacks {}; run it as root (sudo) or with its systemd unit", lacking.join(", ")))
}

/// Drops all capabilities of this thread except `keep` and `reserve`. Capabilities in `reserve` have no effect until a
/// thread [raises](raise) them. Threads that this thread starts later inherit the remaining capabilities.
/// Programs that the process executes gain no capabilities.
///
/// Call this before other threads start, because each thread has its own capabilities.
///
/// # Errors
/// If the kernel refuses. Capabilities that were dropped before the refusal stay dropped.
pub fn drop_to(keep: &[Capability], reserve: &[Capability]) -> io::Result<()> {
    let permitted = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    // The bounding set can be reduced only with CAP_SETPCAP. Without CAP_SETPCAP, the set does not change. This does no
    // harm, because no_new_privs is set below.
    if permitted.contains(&Capability::CAP_SETPCAP) {
        for capability in caps::all().into_iter().filter(|c| !keep.contains(c) && !reserve.contains(c)) {
            // This fails for capabilities that this kernel does not know.
            let _ = caps::drop(None, CapSet::Bounding, capability);
        }
    }
    caps::clear(None, CapSet::Inheritable).map_err(io::Error::other)?;
    let has = |c: &Capability| permitted.contains(c);
    let effective: CapsHashSet = keep.iter().copied().filter(has).collect();
    let all: CapsHashSet = keep.iter().chain(reserve).copied().filter(has).collect();
    caps::set(None, CapSet::Effective, &effective).map_err(io::Error::other)?;
    caps::set(None, CapSet::Permitted, &all).map_err(io::Error::other)?;
    nix::sys::prctl::set_no_new_privs().map_err(io::Error::from)
}

/// Makes a reserved capability effective in the calling thread until this thread ends.
///
/// # Errors
/// If the thread has not reserved this capability.
pub fn raise(capability: Capability) -> io::Result<()> {
    caps::raise(None, CapSet::Effective, capability).map_err(|_| {
        let text = format!("this process lacks {capability}; run it as root (sudo) or with its systemd unit");
        io::Error::new(io::ErrorKind::PermissionDenied, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs in a separate thread, because dropped capabilities cannot be regained.
    #[test]
    fn dropped_capabilities_cannot_be_regained() {
        std::thread::spawn(|| {
            let had = caps::read(None, CapSet::Permitted).unwrap();
            drop_to(&RUNNING, &[]).unwrap();
            let has = caps::read(None, CapSet::Effective).unwrap();
            let expected: CapsHashSet = RUNNING.into_iter().filter(|c| had.contains(c)).collect();
            assert_eq!(has, expected);
            assert!(raise(ENTERING).is_err());
            assert!(nix::sys::prctl::get_no_new_privs().unwrap());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_reserved_capability_has_no_effect_until_a_thread_raises_it() {
        std::thread::spawn(|| {
            if !caps::read(None, CapSet::Permitted).unwrap().contains(&ENTERING) {
                return;
            }
            drop_to(&RUNNING, &[ENTERING]).unwrap();
            let is_effective = || caps::has_cap(None, CapSet::Effective, ENTERING).unwrap();
            assert!(!is_effective());
            std::thread::spawn(move || raise(ENTERING).map(|()| assert!(is_effective())).unwrap())
                .join()
                .unwrap();
            assert!(!is_effective(), "the other thread has ended");
        })
        .join()
        .unwrap();
    }
}
