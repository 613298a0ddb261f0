#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod catalogue_json;
mod closed;
mod data;
mod error;
mod files;
mod inputs;
pub mod message;
pub mod model;
mod notes;
mod resolve;
mod retired;
mod scenario;
mod sweep;
mod topology;
pub mod units;
mod value;

#[cfg(not(target_family = "wasm"))]
pub use files::Disk;

pub use closed::{Point, points};
pub use error::{Error, Result};
pub use files::{Files, Memory, NoFiles, Unreadable};
pub use inputs::inputs;
pub use notes::notes;
pub use resolve::{Paths, Settings, Survey, resolve, survey};
pub use retired::Renamed;
pub use scenario::Scenario;
pub use sweep::{Run, expand, override_key, parse_override};
pub use value::{Table, Value};

/// Returns the JSON schema of scenario files, with the parameters of all controllers of the settings' catalogue.
/// Editors complete and check scenario files with it.
pub fn schema(settings: &Settings<'_>) -> serde_json::Value {
    use value::table::Checked;
    value::schema::of(model::Content::about(), settings)
}
