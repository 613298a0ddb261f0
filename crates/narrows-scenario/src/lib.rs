#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod catalogue_json;
mod closed;
mod data;
mod error;
mod files;
mod inputs;
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
pub use resolve::{
    ACCESS_FACTOR, DEFAULT_RECEIVE_BUFFER, FIRST_PORT, HOST, Paths, Picture, Settings, Survey, plan_paths,
    resolve, survey,
};
pub use retired::{Renamed, current_key, current_names};
pub use scenario::Scenario;
pub use sweep::{Run, expand, override_key, parse_override};
pub use topology::networks;
pub use value::{Table, Value};

/// Returns the JSON schema of scenario files, with the parameters of all controllers of the settings' catalogue.
/// Editors complete and check scenario files with it.
pub fn schema(settings: &Settings<'_>) -> serde_json::Value {
    use value::table::Checked;
    value::schema::of(model::Content::about(), settings)
}

/// Returns the reference of all keys of scenario files in Markdown.
pub fn reference() -> String {
    use value::table::Checked;
    value::reference::markdown(model::Content::about())
}

/// Returns the kinds of tables that a key of a table can have, each with the first line of its meaning, e.g. the kinds
/// of queues for the key `queue` of the table `Link`. The names of tables are those of the JSON schema.
pub fn choices(table: &str, key: &str) -> Vec<(&'static str, String)> {
    use value::table::Checked;
    value::reference::choices(model::Content::about(), table, key)
}
