//! Runs a plan of the simulator on real Linux stacks, in real time.
//!
//! The caller builds the network (namespaces, cables, queues) and maps the network to the plan in a [`Spec`].
//! [`emulate`] carries packets over the links, runs the flows, takes samples, and returns the simulator's tables.
//!
//! * [`spec`], `check`: the input, and its validation.
//! * `relay`: moves packets between interfaces, according to the simulator's link model.
//! * `endpoint`: senders and receivers on the kernel's sockets.
//! * `sample`: reads the kernel's statistics of connections, queues and processors.
//! * `track`, `watch`: convert samples into tables.
//! * `sound`: decides whether the run can be trusted.
//! * [`clock`], `netns`, `raw`, `socket_map`: access to CLOCK_MONOTONIC, namespaces, system calls and BPF maps.
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
mod socket_map;
mod sound;
pub mod spec;
mod track;
mod watch;

pub use error::Error;
pub use outcome::Outcome;
pub use run::emulate;
pub use sound::Soundness;
pub use spec::Spec;
