//! A stock Linux host as a sender or a receiver of rate feedback.
//!
//! * [`Sender`]: SYNs ask for feedback, and the congestion control `brf` applies it (`bpf/sender`).
//! * [`Receiver`]: ACKs have room for the feedback (`bpf/receiver`). The receiver is optional, because the switch can
//!   insert the option.
//!
//! Both apply to the sockets of a cgroup, optionally limited to certain network namespaces ([`Scope`]). Links
//! hold all programs. The kernel removes the links with the process, unless they are pinned.

mod cgroup;
mod error;
mod links;
mod load;
mod netns;
mod options;
mod receiver;
mod sender;

use std::path::Path;

pub use error::HostError;
pub use netns::DefaultBefore;
pub use options::{Choice, Mode, Namespace, ReceiverOptions, Scope, SenderOptions};
pub use receiver::{Receiver, ReceiverCounters};
pub use sender::{Sender, SenderCounters};

/// Removes the pins of senders and receivers from this folder of bpffs.
pub fn clean(pin: &Path) -> Result<(), HostError> {
    sender::clean(pin)?;
    receiver::clean(pin)
}
