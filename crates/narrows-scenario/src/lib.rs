#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod catalogue_json;
mod data;
mod error;
mod files;
pub mod message;
pub mod model;
mod resolve;
mod retired;
mod scenario;
mod sweep;
mod topology;
pub mod units;
mod value;

#[cfg(not(target_family = "wasm"))]
pub use files::Disk;

pub use error::{Error, Result};
pub use files::{Files, Memory, NoFiles, Unreadable};
pub use resolve::{Paths, Settings, Survey, resolve, survey};
pub use retired::Renamed;
pub use scenario::Scenario;
pub use sweep::{Run, expand, override_key, parse_override};
pub use value::{Table, Value};
