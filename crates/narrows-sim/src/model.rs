//! The link model, the application model, the random arrivals of flows, and the result tables. The real-time backend
//! uses the same code, so both backends interpret a plan in the same way.

pub use crate::engine::Random;
pub use crate::flow::EmptyPath;
pub use crate::net::{Fate, Impairments, Service, step_at};
pub use crate::probe::{Cell, Histogram, Recorder};
pub use crate::tcp::{App, Chunk};
pub use crate::world::{Arrivals, starts};
