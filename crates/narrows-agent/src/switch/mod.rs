//! The switch: one rate controller of `narrows-control` for each controlled port, fed with the packet counts of the
//! eBPF program.
//!
//! | module | contents |
//! | --- | --- |
//! | [`table`] | the flow table: each slot has the program's observations of a flow, and the orders for this flow |
//! | `shadow` | the loop's record of each slot: counts and events that were reported to the controller |
//! | `story` | reports the beginning and the end of a flow as events |
//! | [`core`] | the logic of the control loop |
//! | [`services`] | grants for new flows of a service |
//! | `plane` | access to the flow table in the eBPF program's maps |
//! | `policers` | rates and bursts of the token buckets for UDP and SYNs |
//! | `shares` | conversion between L3 rates and frames |
//! | `messages` | sends rates to sources in messages |
//! | `link` | the connection to the SDN controller |
//! | `view` | snapshots for `status`, `top` and metrics |
//! | [`Runner`] | the running switch |

pub mod core;
mod link;
mod messages;
mod plane;
mod policers;
mod reports;
mod run;
pub mod services;
mod shadow;
mod shares;
mod story;
pub mod table;
mod view;

pub use run::Runner;
