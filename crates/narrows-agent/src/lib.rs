//! Controls the rates of live flows on stock Linux, with eBPF, HTB and the rate controllers of `narrows-control`.

#[macro_use]
mod skeleton;

pub mod agents;
pub mod bpffs;
pub mod cc;
pub mod channel;
pub mod claim;
pub mod clean;
pub mod cli;
pub mod clock;
pub mod config;
mod damping;
pub mod dataplane;
pub mod events;
pub mod guard;
pub mod host;
pub mod htb;
pub mod metrics;
pub mod netns;
pub mod privileges;
pub mod services;
pub mod status;
pub mod stop;
pub mod switch;
mod tcx;
pub mod top;
