//! Makes a stock Linux host a sender that applies rate feedback, or a receiver that leaves room for the feedback in its
//! ACKs.
//!
//! * [`Sender`]: SYNs ask for feedback, and the congestion control `brf` applies it (`bpf/sender`).
//! * [`Receiver`]: ACKs have room for the feedback (`bpf/receiver`). The receiver is optional, because the switch can
//!   insert the option.
//!
//! The programs of sender and receiver apply to the sockets of a cgroup. They can be limited to certain network
//! namespaces ([`Scope`]). All programs are attached by links, which the kernel removes when the process ends.

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
