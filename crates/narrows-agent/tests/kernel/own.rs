//! Helpers for tests that load congestion control algorithms. Each test has its own mount namespace for pins. Each test
//! also gives its algorithms other names, because names are global in the kernel. A test therefore does not affect
//! algorithms that the user of this machine has loaded.

use std::fs;
use std::time::Duration;

use narrows_agent::cc::{self, Place, Variant};
use narrows_lab::{Need, can_run, with_own_mounts};

/// Runs a test in a mount namespace without bpffs. `tag` has at most four letters. No algorithm stays registered, even
/// if the test panics or is killed, because namespace and pins vanish with the process.
pub(crate) fn own(tag: &str, test: impl FnOnce(&Place) + Send) {
    if !can_run(&[Need::Root, Need::Btf]) {
        return;
    }
    let place = Place { prefix: format!("{tag}{}_", std::process::id() % 100_000), ..Place::default() };
    with_own_mounts(|| {
        let _guard = Unload(&place);
        test(&place);
    });
    soon("nothing stays registered", || is_gone(&place));
}

/// Returns whether no algorithm with the place's prefix is registered.
pub(crate) fn is_gone(place: &Place) -> bool {
    Variant::ALL.iter().all(|variant| !available(&place.registered(*variant)))
}

/// Unloads the algorithms before the namespace vanishes. Otherwise, a kernel without BPF links for algorithms would
/// keep them.
struct Unload<'a>(&'a Place);

impl Drop for Unload<'_> {
    fn drop(&mut self) {
        for variant in Variant::ALL {
            let _ = cc::unload(variant, self.0);
        }
    }
}

/// Returns whether the kernel has an algorithm with this name.
pub(crate) fn available(name: &str) -> bool {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    names.split_ascii_whitespace().any(|available| available == name)
}

/// Waits for a condition. Polls, because the kernel releases objects a moment after their last use.
pub(crate) fn soon(what: &str, is_so: impl Fn() -> bool) {
    let found = (0..1000).any(|_| {
        let found = is_so();
        if !found {
            std::thread::sleep(Duration::from_millis(20));
        }
        found
    });
    assert!(found, "{what}");
}
