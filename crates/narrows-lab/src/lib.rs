//! What tests on the kernel share. For tests only.
//!
//! - [`can_run`]: whether root and the tools are there; says loudly when not, and fails with NARROWS_REQUIRE_KERNEL=1.
//! - [`Hosts`]: network namespaces and cables between them, gone when dropped; while they live no other test has any.
//! - [`with_own_mounts`]: a mount namespace, gone with the test.
//! - [`patiently`]: takes figures again that a disturbed machine may have spoiled.

mod hosts;
mod mounts;
mod need;
mod patience;
mod watch;

pub use hosts::{Hosts, must, says};
pub use mounts::{mount_bpffs, with_own_mounts};
pub use need::{Need, can_run, skip};
pub use patience::patiently;
