//! A stock Linux host as a sender or a receiver of rate feedback.
//!
//! * [`Sender`]: SYNs ask for feedback, and the congestion control `brf` obeys it (`bpf/sender`).
//! * [`Receiver`]: ACKs leave room for the feedback (`bpf/receiver`). Optional, as the switch can insert the option.
//!
//! Both apply to the sockets of a cgroup, and of these to those of certain network namespaces ([`Scope`]). Everything
//! is held by links, which the kernel takes away with the process that holds them, unless they are pinned.

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

/// Takes away what senders and receivers have pinned in this folder of a bpffs.
pub fn clean(pin: &Path) -> Result<(), HostError> {
    sender::clean(pin)?;
    receiver::clean(pin)
}
