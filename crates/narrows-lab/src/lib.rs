//! Shared code of tests that need a real kernel. Only tests use this crate.
//!
//! - [`can_run`]: checks the requirements of a test, such as root and installed tools. If a requirement is not met, it
//!   prints a message. If NARROWS_REQUIRE_KERNEL is 1, it panics instead.
//! - [`Hosts`]: network namespaces and cables between them, removed on drop. Hosts also reserve a part of the machine
//!   ([`Room`]) for their test.
//! - [`with_own_mounts`]: a mount namespace that ends with the test.
//! - [`patiently`]: repeats measurements that may be wrong because the machine was disturbed.
//! - [`run_before_others`]: gives a thread priority over other programs.

mod hosts;
mod mounts;
mod need;
mod patience;
mod priority;
mod watch;

pub use hosts::{Hosts, Room, must, says};
pub use mounts::{mount_bpffs, with_own_mounts};
pub use need::{Need, can_run, skip};
pub use patience::patiently;
pub use priority::run_before_others;
