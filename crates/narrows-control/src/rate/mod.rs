//! Rate controllers in the network. From the packets of a port, they compute a rate for each flow.
//!
//! There are two traits for the controller of a port. A [`PerFlowController`] gives each flow of the port a rate,
//! divides the link into classes, and writes rates into ACKs or sends them to sources. A per-flow controller that can
//! also work with packet counts implements [`Aggregated`](aggregate::Aggregated). A [`HeaderController`] reads and
//! writes the congestion headers of data packets. A [`RateController`] holds a controller of either kind. The host (the
//! simulated switch, or the agent on a real switch) provides the queues, clocks and links. A
//! [`DomainController`](domain::DomainController) makes decisions for many ports at once. It communicates with the
//! ports only by [`Message`]s.

pub mod aggregate;
pub mod bdr;
pub mod brf;
mod controller;
mod counters;
pub mod domain;
mod event;
mod headers;
mod identity;
pub mod kit;
mod message;
pub mod obp;
pub mod pacec;
mod packet;
mod per_flow;
mod queue;
pub mod rcp;
pub mod registry;
pub mod uniform;
pub mod xcp;

#[cfg(test)]
mod header_tests;
#[cfg(test)]
mod random_parameters_tests;

pub use controller::{RateController, Requirements};
pub use counters::PortCounters;
pub use event::{FlowEvent, Segment, Side};
pub use headers::HeaderController;
pub use identity::{FlowIdentity, FlowKey, Host, Proto};
pub use kit::parameters::PortParameters;
pub use message::{Action, CongestionKind, Message, PortId, Report};
pub use packet::{PacketInfo, RateOption, TcpFlags};
pub use per_flow::PerFlowController;
pub use queue::{Admission, Class, LEAVES, Leaf, Queueing, UDP_QUEUE_PART, UDP_QUEUES, plain_leaf};
