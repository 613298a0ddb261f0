//! Code for loading programs, for sender and receiver.

use std::path::Path;

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle, MapMut};

use super::HostError;

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Checks the kernel features that all programs of a host need.
pub(super) fn check_kernel() -> Result<(), HostError> {
    if Path::new(BTF).exists() {
        return Ok(());
    }
    Err(HostError::Missing {
        what: "relocating eBPF programs",
        found: format!("the kernel does not describe its types ({BTF} is missing)"),
        remedy: "a kernel with CONFIG_DEBUG_INFO_BTF is needed".to_owned(),
    })
}

/// Returns a function that adds a remedy to an error of libbpf.
pub(super) fn refused(
    what: &'static str,
    remedy: &'static str,
) -> impl FnOnce(libbpf_rs::Error) -> HostError {
    move |error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => "run as root, or with CAP_BPF and CAP_NET_ADMIN",
            _ => remedy,
        };
        HostError::Missing { what, found: format!("{error:#}"), remedy: remedy.to_owned() }
    }
}

/// The `.bss` map of a program, which holds only counters.
#[derive(Debug)]
pub(super) struct Bss(MapHandle);

impl Bss {
    pub(super) fn new(map: &MapMut<'_>) -> Result<Self, HostError> {
        MapHandle::try_from(map)
            .map(Bss)
            .map_err(refused("keeping the counters", "this is a bug in narrows-agent"))
    }

    /// Reads the present bytes. Returns an empty vector if they cannot be read.
    pub(super) fn read(&self) -> Vec<u8> {
        self.0.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default()
    }
}

/// Returns the counter at this offset, or 0 if the counter cannot be read.
pub(super) fn counter(bytes: &[u8], offset: usize) -> u64 {
    let word = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u64::from_ne_bytes(*word))
}

/// Reads counters by their names in the program.
macro_rules! counters {
    ($bytes:expr, $from:ident => $into:ident { $($name:ident),* }) => {{
        let bytes = $bytes;
        $into { $($name: $crate::host::load::counter(&bytes, core::mem::offset_of!($from, $name)),)* }
    }};
}
pub(super) use counters;
