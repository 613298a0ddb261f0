//! XCP, the explicit control protocol: each packet requests a change of its flow's rate. Each port on the path lowers
//! the request to the change that it grants.
//!
//! After D. Katabi, M. Handley and C. Rohrs, "Congestion Control for High Bandwidth-Delay Product
//! Networks", SIGCOMM 2002, in the form of draft-falk-xcp-spec-03 (2007), which uses throughputs
//! instead of windows. `XCP-n` are the rules of `docs/reference/rules/explicit.md`.
//!
//! Symbols: X is the time between packets of a flow. Qmin is the persistent queue. F is the change of the aggregate
//! rate, and S is the traffic that is redistributed to make the rates of flows equal.
//!
//! | module | idea |
//! | --- | --- |
//! | [`params`] | the constants with their sources |
//! | [`header`] | the congestion header |
//! | [`law`] | the router's law: the total change, and each packet's share |
//! | `queue` | the persistent queue |

pub mod header;
pub mod law;
pub mod params;
pub mod port;
mod queue;

pub use header::Header;
pub use law::Law;
pub use params::Params;
pub use port::XcpPort;
