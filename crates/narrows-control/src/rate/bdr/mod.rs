//! BDR, per-flow bandwidth distribution in routers: a port estimates the number of its flows without a flow table, and
//! sends each flow its share of the link.
//!
//! After Loureiro, Mascolo and Monteiro, "An Approach for Per-Flow Bandwidth Distribution in Routers (BDR)". `BDR-n`
//! are the rules of `docs/reference/rules/bdr.md`. In each window, one packet of a flow is the designated packet. This
//! packet reports the time since the flow's previous designated packet. The sum of these times over all flows is the
//! integral of the number of flows over time. [`Params::mode`] selects the paper's equations or the repaired equations.
//!
//! Symbols: C is the capacity, N is the number of flows, and q is the queue. T_q is the time to drain the queue. y_bg
//! is the rate of flows without BDR, and u is the utilisation. tau is the time constant of the estimate of N. g is the
//! factor of redistribution.
//!
//! | module | idea |
//! | --- | --- |
//! | [`params`] | the constants with their sources |
//! | `count` | the number of flows, by three estimators |
//! | `newcomers` | flows that have begun but have not reported yet |
//! | `meter` | the traffic of the port: of BDR flows, and of other flows |
//! | `share` | the fair share, the gain, and redistribution |
//! | `law` | the events of one port (BDR-40 to BDR-43) |
//! | [`port`] | a port whose packets carry reports and recommendations |
//! | `stateless` | a port that writes the rate into ACKs, for stock hosts and real switches |
//!
//! The sender is [`congestion::network::bdr`](crate::congestion::network::bdr). On real hosts the sender is
//! [`congestion::network::brf`](crate::congestion::network::brf) with `designate`.

mod count;
mod law;
mod meter;
mod newcomers;
pub mod params;
pub mod port;
mod share;
mod stateless;

pub use law::{Law, Recommendation, Report};
pub use params::{Estimator, Params};
pub use port::BdrPort;
pub use stateless::{CELLS, FRESH, Stateless};

#[cfg(test)]
mod process_tests;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod stateless_tests;
#[cfg(test)]
mod tests;
