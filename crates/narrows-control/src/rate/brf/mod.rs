//! BRF, bottleneck routing feedback: a switch computes a rate for each flow and writes it into the
//! flow's ACKs.
//!
//! After "SDN-Based Congestion Control and Bandwidth Allocation Scheme in 5G Networks", Sensors
//! 24(3):749, 2024. `BRF-n` are the rules of `docs/reference/rules/brf.md`. The paper contradicts
//! itself in places; [`Params::mode`] selects the rules as printed or the repaired rules.
//!
//! Symbols: C_BRF is the capacity for rated flows, N_BRF is the number of active rated flows, and T is the measurement
//! period. ALLOC computes all rates at the end of a measurement or of congestion. BW_INIT gives a rate to a flow that
//! begins or resumes. Other TCP is TCP that is not rated.
//!
//! | module | idea |
//! | --- | --- |
//! | [`params`] | the constants with their sources |
//! | `port` | the state of a port |
//! | `table`, `kit::half_open` | the flows: bounded tables without a search per packet |
//! | `lifecycle` | packets that begin, confirm and end flows |
//! | `newcomer`, `predictor` | the rate of a new flow |
//! | `cycle` | the port's phases: settle, measure, allocate, reduce |
//! | `state` | the port's states as events |
//! | `judge` | the measured use of a flow, and its demand |
//! | `allocate`, `layers`, `split` | the rate, queue and class of each flow |
//! | `subscribers` | shares for subscribers, each divided among the subscriber's flows |
//! | [`congestion`] | the detector, for switches and for the SDN controller |
//! | [`domain`] | the SDN controller of a domain |
//! | `feedback`, `kit::rtt` | which ACK carries a rate |
//! | `acks` | the share of the reverse direction's ACKs |
//! | `reductions` | the port's own detector, and the reductions so far |
//! | `obedience` | flows that claim to follow their rate but do not |
//! | `advert` | flows whose ACKs take another path |
//! | `aggregate` | counts instead of packets, for a data plane that counts |
//! | `udp` | UDP's rates |
//! | `link` | the link: its capacity, and its division into classes |
//! | `capacity` | estimates the rate of a link whose capacity is not configured |
//!
//! A new configured capacity takes effect at once. In resolved mode, the call that reports the new capacity also
//! recomputes the class rates and all allocations. This takes O(log) for any number of flows. Each flow learns its rate
//! with its next feedback.

mod acks;
mod advert;
mod aggregate;
mod allocate;
mod capacity;
mod commitments;
pub mod congestion;
mod cycle;
pub mod domain;
mod feedback;
mod judge;
mod layers;
mod lifecycle;
mod link;
mod newcomer;
mod obedience;
pub mod params;
mod port;
mod predictor;
mod reductions;
mod split;
mod state;
mod subscribers;
mod table;
mod timers;
mod udp;

pub use domain::Sdn;
pub use params::Params;
pub use port::Brf;
pub use predictor::{Model, Prediction};
pub use split::burst;

#[cfg(test)]
mod composition_tests;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
