//! The event engine. Times are integer nanoseconds.

mod heap;
mod random;
mod slab;

pub(crate) use heap::{Event, EventQueue, Kind, MAX_INDEX};
pub use random::Random;
pub(crate) use random::Stream;
pub(crate) use slab::{Ring, Slab};
