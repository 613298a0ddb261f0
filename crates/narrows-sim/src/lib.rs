#![doc = include_str!("../README.md")]
//! ## Modules
//!
//! * [`plan`]: the input of a run, which is a network and its flows. [`run`] simulates the plan and returns
//!   [`Results`].
//! * `engine`: the event queue, random numbers, and storage that reuses its slots.
//! * `net`: links, queues, routing.
//! * `tcp`: TCP with Linux's loss detection and recovery. It calls the congestion controllers of `narrows-control`.
//! * [`transport`]: transport protocols from other crates, which flows can use instead of TCP.
//! * `world`: the event loop, flows, switches with rate controllers, the SDN controller, samples.
//! * [`model`]: the parts of the simulator that the real-time backend also uses.
//! * `probe`: histograms and result tables.
//! * [`capture`]: captures packets at links and hosts.
//!
//! The feature `arrow` adds `Table::to_arrow` and `Results::write_arrow`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod capture;
mod check;
mod engine;
mod error;
mod flow;
pub mod model;
mod net;
mod packet;
mod packets;
mod probe;
mod tcp;
pub mod transport;
mod wire;
mod world;

/// The input of a run (from [`narrows_plan`]), and functions that check this input.
pub mod plan {
    pub use crate::check::{check, check_for_real_stacks, check_with};
    pub use narrows_plan::*;
}

/// Version of the simulator's behaviour. Two simulators with the same number give equal results for equal plans.
///
/// `tests/python/test_behaviour.py` compares results with recorded results, and explains when to increase this number.
pub const BEHAVIOUR: u32 = 2;

pub use error::Error;
pub use narrows_control::catalogue::Controllers;
pub use probe::{Column, Table};
pub use world::{
    Counts, LiveFlow, Monitor, PHASE_BEGAN, PHASE_NEVER_BEGAN, Results, Run, Running, route, run, run_with,
};
