//! The parts of the simulator that the real-time backend also uses, so that both backends interpret a plan in the same
//! way. The parts are the link model, the application model, the arrivals of flows with their random streams, and the
//! result tables.

pub use crate::engine::Random;
pub use crate::flow::EmptyPath;
pub use crate::net::{Fate, Impairments, Service, step_at};
pub use crate::probe::{Cell, Histogram, Recorder};
pub use crate::tcp::{App, Chunk};
pub use crate::world::{Arrivals, starts};
