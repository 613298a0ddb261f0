#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod controller;
mod sampler;
#[cfg(feature = "simulator")]
mod simulator;

pub use controller::{Adapter, Factory};
#[cfg(feature = "simulator")]
pub use simulator::{CATALOGUE_PREFIX, QUINN_CONTROLLERS, Quinn, STACK_NAME};
