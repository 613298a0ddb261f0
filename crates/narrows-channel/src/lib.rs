//! The agents' channel: the bodies that agents and the SDN controller exchange. A body is one line of JSON.
//!
//! The agent writes a [`ToController`] and reads [`Message`](narrows_control::rate::Message)s. The controller parses
//! and checks each line with [`ToController::parse`]. The check is necessary because an authenticated agent can send
//! invalid bodies. The controller passes the messages to `rate::brf::Sdn` or `rate::pacec::Pacec`. It converts the
//! answers to bodies with [`to_agent`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bodies;
mod check;
mod outgoing;
#[cfg(feature = "schema")]
mod schema;

pub use bodies::{FlowChange, FlowChanges, FlowInfo, Flows, PortInfo, Ports, ToController};
pub use outgoing::to_agent;
#[cfg(feature = "schema")]
pub use schema::schema;

/// The version of the protocol.
pub const VERSION: u32 = 2;
/// Maximum length of a line in bytes, including the end of the line.
pub const LINE_MAX: usize = 1 << 20;
/// Maximum length in bytes of a greeting or of its answer, including the end of the line. This limit is low, because
/// without TLS, any program on the host can send a greeting.
pub const GREETING_MAX: usize = 4096;
/// The body that the controller sends to keep the connection alive. It has no other purpose.
pub const ALIVE: &str = r#"{"type":"alive"}"#;
/// Maximum number of flows in one body. The controller displays flows to users, who do not need more of them. A line
/// with grants for 9,000 flows would exceed [`LINE_MAX`].
pub const FLOWS_MAX: usize = 1000;
/// Maximum number of ports of an agent.
pub const PORTS_MAX: usize = 1024;
