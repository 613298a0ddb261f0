//! A stock Linux host as a sender or a receiver of rate feedback.
//!
//! * [`Sender`]: SYNs ask for feedback, and the congestion control `brf` applies it (`bpf/sender`).
//! * [`Receiver`]: ACKs have room for the feedback (`bpf/receiver`). The receiver is optional, because the switch can
//!   insert the option.
//!
//! Both apply to the sockets of a cgroup, optionally limited to certain network namespaces ([`Scope`]). Links
//! hold all programs. The kernel removes the links with the process.

mod cgroup;
mod error;
mod interfaces;
mod load;
mod namespaces;
mod netns;
mod options;
mod receiver;
mod sender;

pub use error::HostError;
pub use namespaces::Namespaces;
pub use netns::DefaultBefore;
pub use options::{Choice, Mode, Namespace, ReceiverOptions, Scope, SenderOptions};
pub use receiver::{Receiver, ReceiverCounters};
pub use sender::{Sender, SenderCounters};
