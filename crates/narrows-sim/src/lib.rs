//! A packet-level network simulator, deterministic and fast.
//!
//! * [`plan`]: what to simulate; [`run`] simulates it and gives [`Results`].
//! * `engine`: events, random streams, storage that is reused.
//! * `net`: links, queues, routing.
//! * `tcp`: TCP as Linux does it, around the congestion controllers of `narrows-control`.
//! * `world`: the loop, flows, switches with rate controllers, the SDN controller, samples.
//! * [`model`]: the parts that a backend in real time shares.
//! * `probe`: histograms and result tables.
//!
//! One run is one thread and never looks at a clock; the same plan gives the same bytes.

#![forbid(unsafe_code)]

mod check;
mod engine;
mod error;
mod flow;
pub mod model;
mod net;
mod packet;
pub mod plan;
mod probe;
mod tcp;
mod wire;
mod world;

pub use error::Error;
pub use probe::{Column, Table};
pub use world::{Controllers, Counts, Results, route, run, run_with};
