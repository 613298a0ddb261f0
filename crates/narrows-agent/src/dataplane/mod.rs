//! The switch's eBPF program and the memory that it shares with the agent (`bpf/switch`, `bpf/include/maps.h`).
//!
//! * [`layout`]: names for the structures that are generated from C.
//! * [`program`]: loads the program, attaches it to ports and pins it.
//! * [`slots`]: gives access to the flow table in shared memory, and frees slots.
//! * [`ports`]: gives access to the ports' records in shared memory.
//! * [`cost`]: reads the cost of a program, as the kernel measures it.
//!
//! All `unsafe` code of the data plane is in `memory` and `sys`.

pub mod cost;
pub mod layout;
mod memory;
pub mod ports;
pub mod program;
pub mod slots;
mod sys;

skeleton!("switch");

/// Errors of operations on the program and its maps.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// libbpf or the kernel refused to load the program or to access a map.
    #[error("{what}: {source}")]
    Bpf {
        /// The operation attempted.
        what: &'static str,
        /// The answer of libbpf or the kernel.
        source: libbpf_rs::Error,
    },
    /// The folder for pins cannot be created.
    #[error("{}: {source}; bpffs may not be mounted (`mount -t bpf bpf /sys/fs/bpf`)", folder.display())]
    Pin {
        /// The folder.
        folder: std::path::PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The operation attempted.
        what: &'static str,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

fn bpf(what: &'static str) -> impl Fn(libbpf_rs::Error) -> Error {
    move |source| Error::Bpf { what, source }
}
