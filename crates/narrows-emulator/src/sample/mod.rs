//! Reads the kernel's statistics of connections, queues and processors during a run.

mod bbr;
mod diag;
mod ebpf;
mod headers;
mod netlink;
mod processors;
mod queue;
mod reported;
mod streams;
mod tap;
mod tcp_info;

pub(crate) use bbr::BbrInfo;
pub(crate) use diag::Diag;
pub(crate) use ebpf::{EbpfInfo, EbpfMaps};
pub(crate) use headers::Wanted;
pub(crate) use processors::{ProcessorReport, Processors};
pub(crate) use queue::{Queue, QueueStats};
pub(crate) use reported::Reported;
pub(crate) use tap::{Tap, TapCounts};
pub(crate) use tcp_info::TcpInfo;
