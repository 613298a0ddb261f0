//! The switch: a rate controller of `narrows-control` over the flows that the eBPF program counts.
//!
//! | module | idea |
//! | --- | --- |
//! | [`table`] | slots: what the program says of a flow, and what it is told |
//! | `shadow` | how much of a slot the controller has heard of |
//! | `story` | a flow's beginning and end, retold as packets |
//! | [`core`] | the loop without its effects |
//! | [`services`] | what newcomers of a service are granted |
//! | `plane` | the eBPF program's maps as a table |
//! | `policers` | what UDP and SYNs may take |
//! | `shares` | L3 and frames |
//! | `link` | the SDN controller |
//! | `view` | what others get to see |
//! | [`Runner`] | all of it, at work |

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
