//! Shared code of tests on the kernel. For tests only.
//!
//! - [`can_run`]: whether the test runs as root and has its tools. It prints what is missing, and fails with
//!   NARROWS_REQUIRE_KERNEL=1.
//! - [`Hosts`]: network namespaces and cables between them, removed on drop. They reserve a part of the machine
//!   ([`Room`]) for their test.
//! - [`with_own_mounts`]: a mount namespace that ends with the test.
//! - [`patiently`]: repeats measurements that a disturbed machine may have spoiled.
//! - [`run_before_others`]: a thread that does not wait for a processor.

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
