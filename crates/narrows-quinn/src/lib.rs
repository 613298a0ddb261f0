#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod controller;
mod core;
mod factory;
#[cfg(feature = "s2n-quic")]
mod s2n;
mod sampler;
#[cfg(feature = "simulator")]
mod simulator;

pub use controller::Adapter;
pub use factory::Factory;
#[cfg(feature = "s2n-quic")]
pub use s2n::S2nAdapter;
#[cfg(feature = "simulator")]
pub use simulator::{CATALOGUE_PREFIX, QUINN_CONTROLLERS, Quinn, STACK_NAME};
