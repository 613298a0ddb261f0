//! PACEC, path associativity centralized explicit congestion control: one controller knows all
//! links and flows of a domain, computes each flow's rate, and sends it to the flow's source
//! through its first switch.
//!
//! After Hertiana, Kurniawan, Hendrawan and Pasaribu, "Effective Router Assisted Congestion Control
//! for SDN", IJECE 8(6), 2018. `PAC-n` are the rules of `docs/reference/rules/pacec.md`. The
//! printed law divides only residual capacity and oscillates. [`Mode`] selects that law or one that
//! can explain the paper's results.
//!
//! | module | idea |
//! | --- | --- |
//! | [`params`] | every constant and its source |
//! | [`ingress`] | a port: reports, the flows that begin here, and their sources |
//! | `aggregate` | counts in place of packets, on a real switch |
//! | `table` | the flows of a port |
//! | `demand` | what a flow was seen to use, and so will ask for |
//! | [`domain`] | the controller: once per Tc from reports to rates |
//! | `link` | what a port's reports say about its link |
//! | `book` | the flows of the domain, their paths, and where the next ones may go |
//! | [`utilisation`] | equations 5 to 9, and what is available instead |
//! | [`fill`] | max-min fair rates across many links |

mod aggregate;
mod book;
mod demand;
pub mod domain;
pub mod fill;
pub mod ingress;
mod link;
pub mod params;
mod table;
pub mod utilisation;

pub use domain::Pacec;
pub use ingress::PacecPort;
pub use params::{Mode, Params, Signal};

#[cfg(test)]
mod closed_loop;
#[cfg(test)]
mod domain_tests;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod ingress_tests;
#[cfg(test)]
mod random_tests;
