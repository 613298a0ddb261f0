//! Gives up what an agent does not need once its programs are loaded.

use std::io;

use caps::{CapSet, Capability, CapsHashSet};

/// What a running agent needs: HTB and detaching take CAP_NET_ADMIN, maps CAP_BPF (where unprivileged BPF is off).
pub const RUNNING: [Capability; 2] = [Capability::CAP_NET_ADMIN, Capability::CAP_BPF];

/// Keeps these capabilities and no other, for this thread and those that it starts; nothing it executes can gain any.
///
/// Call it before threads start: Linux keeps capabilities per thread.
///
/// # Errors
/// When the kernel refuses; what was given up until then stays so.
pub fn drop_to(keep: &[Capability]) -> io::Result<()> {
    let permitted = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    // Without CAP_SETPCAP the bounding set cannot be narrowed; with no_new_privs it does not matter.
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

    /// In a thread of its own, as it cannot be taken back.
    #[test]
    fn what_is_not_kept_is_gone_for_good() {
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
