//! Laws that give every flow of a port the same rate, on switches that see no congestion headers.
//!
//! RCP's routers use a header in each packet ("the header form"), which stock hosts do not send. In "the stamped form"
//! the port measures the values that the headers would contain, and writes the rate into the flows' ACKs. The port uses
//! BRF's option, so the senders are `brf`, and the smallest rate on the path applies (BRF-61). Every ACK carries the
//! rate. BRF's limit of one feedback per RTT is not needed, because all flows have the same rate.
//!
//! | module | idea |
//! | --- | --- |
//! | [`Law`] | the interface of a law |
//! | `rcp::stamped` | RCP's law, based on a port's counts |
//! | `port` | the adapter of a law to `PerFlowController` |
//! | `watch` | the state and the traffic of the port, for the adapter |
//! | `table` | the flows: bounded, each with its RTT and last report |
//! | `lifecycle` | packets that begin, confirm and end flows; ageing |
//! | `aggregate` | counts instead of packets |
//! | `kit::classes` | the link's division into three classes |
//!
//! Two features of BRF are missing. First, ports do not advertise flows whose ACKs take another path. Such flows get no
//! rate and are treated as other TCP. Second, if another switch limits a flow, the port does not measure the unused
//! bandwidth. Only the law can give this bandwidth to other flows.

mod aggregate;
mod law;
mod lifecycle;
mod params;
mod port;
mod table;
mod watch;

pub use law::{Law, Passed, Port};
pub(super) use params::MAX_FLOWS;
pub use params::Signal;
pub use port::Uniform;
pub(super) use port::stamp;
pub(super) use watch::Watch;

#[cfg(test)]
mod harness;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
