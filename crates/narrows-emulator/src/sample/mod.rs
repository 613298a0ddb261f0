//! What the kernel tells while a run goes on: connections, queues, processors.

mod diag;
mod netlink;
mod processors;
mod queue;
mod tcp_info;

pub(crate) use diag::Diag;
pub(crate) use processors::{ProcessorReport, Processors};
pub(crate) use queue::{Queue, QueueStats};
pub(crate) use tcp_info::TcpInfo;
