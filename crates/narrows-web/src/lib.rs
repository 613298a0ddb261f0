#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod describe;
mod edit;
mod packets;
mod simulation;

use narrows_control::catalogue::Catalogue;
use narrows_scenario::catalogue_json;
use wasm_bindgen::prelude::*;

pub use simulation::Simulation;

/// The name of the scenario's file in errors.
pub(crate) const SOURCE: &str = "scenario.toml";

/// An error for JavaScript, with the line that the command line would print.
fn thrown(error: impl ToString) -> JsError {
    JsError::new(&error.to_string())
}

/// Checks a scenario, and describes a point of its sweep as JSON: `scenario` (all keys with their defaults), `network`
/// (nodes, links and flows), `points` (the factors of each point) and `seeds` (of the chosen point).
///
/// # Errors
/// Throws the line that the command line prints for this scenario.
#[wasm_bindgen]
pub fn describe(toml: &str, point: usize) -> Result<String, JsError> {
    describe::describe(toml, point).map_err(thrown)
}

/// Sets a key in the text of a scenario. Comments and layout stay.
///
/// `key` is a dotted key, e.g. `topology.rate` or `flows.0.cc`. `value` is a value as in TOML, e.g. `"20mbit"` with its
/// quotes. An empty `value` removes the key.
///
/// # Errors
/// Throws one line if the text is not TOML, or if there is no place for the key.
#[wasm_bindgen]
pub fn set(toml: &str, key: &str, value: &str) -> Result<String, JsError> {
    edit::set(toml, key, value).map_err(thrown)
}

/// Appends a table to a list of tables such as `flows`. `body` has the table's keys as TOML.
///
/// # Errors
/// Throws one line if a text is not TOML, or if `list` is not a list of tables.
#[wasm_bindgen]
pub fn add(toml: &str, list: &str, body: &str) -> Result<String, JsError> {
    edit::add(toml, list, body).map_err(thrown)
}

/// Removes a table from a list of tables.
///
/// # Errors
/// Throws one line if the text is not TOML, or if there is no such table.
#[wasm_bindgen]
pub fn remove(toml: &str, list: &str, index: usize) -> Result<String, JsError> {
    edit::remove(toml, list, index).map_err(thrown)
}

/// The congestion controllers and rate controllers as JSON: `{"congestion": [...], "rate": [...]}`.
#[wasm_bindgen]
pub fn catalogue() -> String {
    let catalogue = Catalogue::built_in();
    let (congestion, rate) = (catalogue_json::congestion(catalogue), catalogue_json::rate(catalogue));
    format!("{{\"congestion\":{congestion},\"rate\":{rate}}}")
}

/// The version of Narrows.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
