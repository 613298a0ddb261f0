//! Helpers for tests that load congestion control algorithms. Each test has its own names of algorithms, and its own
//! mount namespace for their pins. Names are global in the kernel. With its own names, a test does not affect
//! algorithms that the user of this machine has loaded.

use std::fs;
use std::time::Duration;

use narrows_agent::cc::{self, Place, Variant};
use narrows_lab::{Need, can_run, with_own_mounts};

/// Runs a test in a mount namespace where no bpffs is mounted. `tag` has at most four letters. No algorithm stays
/// registered, whether the test passes, panics or is killed. The namespace is removed with the process, and the pins
/// are removed with the namespace.
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

/// Returns whether no congestion control of a place is registered.
pub(crate) fn is_gone(place: &Place) -> bool {
    Variant::ALL.iter().all(|variant| !available(&place.registered(*variant)))
}

/// Unloads the algorithms before the namespace is removed, even on kernels without links.
struct Unload<'a>(&'a Place);

impl Drop for Unload<'_> {
    fn drop(&mut self) {
        for variant in Variant::ALL {
            let _ = cc::unload(variant, self.0);
        }
    }
}

/// Returns whether the kernel offers a congestion control algorithm of this name.
pub(crate) fn available(name: &str) -> bool {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    names.split_ascii_whitespace().any(|available| available == name)
}

/// Waits until a condition is true. The function polls, because the kernel releases an object a moment after its last
/// use.
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
