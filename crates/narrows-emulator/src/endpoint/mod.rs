//! Senders and receivers on the kernel's sockets: one thread and one epoll instance per namespace.

mod board;
mod host;
mod schedule;
mod tcp;
mod udp;
mod unsent;

pub(crate) use board::{FlowBoard, Registry};
pub(crate) use host::Host;
pub(crate) use schedule::{Member, members, name};
