//! RCP, the rate control protocol: one rate per port for all flows, carried by packets.
//!
//! After N. Dukkipati, M. Kobayashi, R. Zhang-Shen and N. McKeown, "Processor Sharing Flows in the Internet", IWQoS
//! 2005, and Dukkipati's thesis, Stanford 2008. Where these sources leave details open, the code follows ns-2's RCP
//! queue. `RCP-n` are the rules of `docs/reference/rules/explicit.md`. For RCP on switches that do not support its
//! header, see [`uniform`](super::uniform).
//!
//! Symbols: R is the rate of the port, C is the capacity, y is the input rate, q is the queue, and d is the average
//! RTT. T is the time between two updates of R.
//!
//! | module | idea |
//! | --- | --- |
//! | [`params`] | the constants with their sources |
//! | [`law`] | the router's law: the rate from bytes, RTTs and the queue |
//! | [`port`] | a port whose packets carry the rate |
//! | `stamped` | the law on counts, for a port that writes the rate into ACKs |

pub mod law;
pub mod params;
pub mod port;
mod stamped;

pub use law::Law;
pub use params::Params;
pub use port::RcpPort;
pub use stamped::Stamped;

#[cfg(test)]
mod closed_loop;
#[cfg(test)]
mod margin;
