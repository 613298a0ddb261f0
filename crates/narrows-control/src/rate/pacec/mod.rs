//! PACEC, path associativity centralized explicit congestion control. One controller has the state of all links and
//! flows of a domain. It computes the rate of each flow. The first switch on the path sends this rate to the flow's
//! source.
//!
//! After Hertiana, Kurniawan, Hendrawan and Pasaribu, "Effective Router Assisted Congestion Control for SDN", IJECE
//! 8(6), 2018. `PAC-n` are the rules of `docs/reference/rules/pacec.md`. The printed law divides only residual
//! capacity, and oscillates. [`Mode`] selects this law, or one of the laws that can explain the paper's results.
//!
//! Symbols: Ts is the time between two reports of a port. Tc = m Ts is the control period, and s is its number. C is
//! the capacity of a link, I is its utilisation, and A is its available capacity.
//!
//! | module | idea |
//! | --- | --- |
//! | [`params`] | the constants with their sources |
//! | [`port`] | a port: its reports, the flows that begin at its switch, and their sources |
//! | `aggregate` | counts instead of packets, on a real switch |
//! | `table` | the flows of a port |
//! | `demand` | the measured use of a flow, and its demand |
//! | [`domain`] | the controller: computes rates from reports once per Tc |
//! | `link` | a link as its port's reports show it |
//! | `book` | the flows of the domain, their paths, and destinations of newcomers |
//! | [`utilisation`] | equations 5 to 9, and the available capacity of PAC-18 |
//! | [`fill`] | max-min fair rates across many links |

mod aggregate;
mod book;
mod demand;
pub mod domain;
pub mod fill;
mod link;
pub mod params;
pub mod port;
mod table;
pub mod utilisation;

pub use domain::Pacec;
pub use params::{Mode, Params, Signal};
pub use port::PacecPort;

#[cfg(test)]
mod closed_loop;
#[cfg(test)]
mod domain_tests;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod port_tests;
#[cfg(test)]
mod random_tests;
