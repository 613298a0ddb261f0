//! The switch's eBPF program and what it shares with the agent (`bpf/switch`, `bpf/include/maps.h`).
//!
//! * [`layout`]: the structures, field by field as in C.
//! * [`program`]: load, attach to ports, pin.
//! * [`slots`]: the flow table: shared memory, and how slots come back.
//! * [`ports`]: the ports' records: shared memory.
//! * [`cost`]: what the kernel says a program costs.
//!
//! All `unsafe` of the data plane is in `memory` and `sys`.

pub mod cost;
pub mod layout;
mod memory;
pub mod ports;
pub mod program;
pub mod slots;
mod sys;

/// What goes wrong between the agent and the kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// libbpf or the kernel said no while the program was loaded or a map was used.
    #[error("{what}: {source}")]
    Bpf {
        /// What was tried.
        what: &'static str,
        /// The answer.
        source: libbpf_rs::Error,
    },
    /// The folder for what is to outlive the agent cannot be made.
    #[error("{}: {source}; is there a bpffs? `mount -t bpf bpf /sys/fs/bpf`", folder.display())]
    Pin {
        /// The folder.
        folder: std::path::PathBuf,
        /// The answer.
        source: std::io::Error,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The answer.
        source: std::io::Error,
    },
}

fn bpf(what: &'static str) -> impl Fn(libbpf_rs::Error) -> Error {
    move |source| Error::Bpf { what, source }
}
