//! The switch's eBPF program, and the memory that it shares with the agent (`bpf/switch`, `bpf/include/maps.h`).
//!
//! * [`layout`]: names for the structures, which are generated from the C code.
//! * [`program`]: load, attach to ports, pin.
//! * [`slots`]: the flow table in shared memory, and freeing slots.
//! * [`ports`]: the ports' records in shared memory.
//! * [`cost`]: the cost of a program, as the kernel measures it.
//!
//! All `unsafe` of the data plane is in `memory` and `sys`.

pub mod cost;
pub mod layout;
mod memory;
pub mod ports;
pub mod program;
pub mod slots;
mod sys;

skeleton!("switch");

/// Errors between the agent and the kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// libbpf or the kernel refused to load the program or to access a map.
    #[error("{what}: {source}")]
    Bpf {
        /// The operation attempted.
        what: &'static str,
        /// The answer.
        source: libbpf_rs::Error,
    },
    /// The folder for pins cannot be created.
    #[error("{}: {source}; bpffs may not be mounted (`mount -t bpf bpf /sys/fs/bpf`)", folder.display())]
    Pin {
        /// The folder.
        folder: std::path::PathBuf,
        /// The answer.
        source: std::io::Error,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The operation attempted.
        what: &'static str,
        /// The answer.
        source: std::io::Error,
    },
}

fn bpf(what: &'static str) -> impl Fn(libbpf_rs::Error) -> Error {
    move |source| Error::Bpf { what, source }
}
