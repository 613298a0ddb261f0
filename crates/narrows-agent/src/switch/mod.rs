//! The switch: a rate controller of `narrows-control` over the flows that the eBPF program counts.
//!
//! | module | idea |
//! | --- | --- |
//! | [`table`] | slots: the program's observations of a flow, and the orders for it |
//! | `shadow` | what was reported of each slot |
//! | `story` | a flow's beginning and end, reported as events |
//! | [`core`] | the loop without its effects |
//! | [`services`] | grants for newcomers of a service |
//! | `plane` | the eBPF program's maps as a table |
//! | `policers` | token buckets of UDP and SYNs |
//! | `shares` | conversion between L3 rates and frames |
//! | `link` | the SDN controller |
//! | `view` | snapshots for `status`, `top` and metrics |
//! | [`Runner`] | the running switch |

pub mod core;
mod link;
mod plane;
mod policers;
mod run;
pub mod services;
mod shadow;
mod shares;
mod story;
pub mod table;
mod view;

pub use run::Runner;
