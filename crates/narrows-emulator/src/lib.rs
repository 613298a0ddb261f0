//! A plan of the simulator on real Linux stacks, in real time.
//!
//! Somebody else builds the network (namespaces, cables, queues) and says in a [`Spec`] what of it stands for what of the plan.
//! [`emulate`] then carries packets over its links and runs its flows, looks on, and gives the simulator's tables.
//!
//! * [`spec`], `check`: what to run, and where.
//! * `relay`: the simulator's link model moving packets between interfaces.
//! * `endpoint`: senders and receivers on the kernel's sockets.
//! * `sample`: what the kernel tells about connections, queues and processors.
//! * `track`, `watch`: from samples to tables.
//! * `sound`: whether to trust the run.
//! * [`clock`], `netns`, `raw`: CLOCK_MONOTONIC, namespaces, system calls.
//!
//! Reading order: [`spec`], `run`, `relay`, `endpoint`.

#![cfg(target_os = "linux")]

mod check;
pub mod clock;
mod endpoint;
mod error;
mod netns;
mod outcome;
mod raw;
mod relay;
mod run;
mod sample;
mod sound;
pub mod spec;
mod track;
mod watch;

pub use error::Error;
pub use outcome::Outcome;
pub use run::emulate;
pub use sound::Soundness;
pub use spec::Spec;
