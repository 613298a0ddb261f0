//! The way from a scenario to plans as JSON in both directions, for programs in other languages.

use std::sync::Arc;

use narrows_control::catalogue::Catalogue;
use narrows_plan::Plan;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::Files;
use crate::resolve::{Settings, resolve};
use crate::scenario::Scenario;
use crate::sweep::{Run, expand};
use crate::value::{Table, Value};

/// A scenario, and the surroundings in which it is resolved.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Request {
    /// TOML; either this or `data` is required.
    text: Option<String>,
    /// The tables of the scenario.
    data: Option<Table>,
    /// Path of the scenario file, or another name of the source.
    source: String,
    /// Values by dotted key.
    overrides: Vec<(String, Value)>,
    /// Whether the sweep is expanded. If not, there is one run.
    expand: bool,
    /// Number of seeds; `None`: that of the scenario.
    seeds: Option<u64>,
    /// Whether plans are made.
    resolve: bool,
    /// Names that `cc` may take. If the list is empty, names are not checked.
    congestion_controllers: Vec<String>,
    /// Names that a rate controller's `kind` may take. If the list is empty, names are not checked.
    rate_controllers: Vec<String>,
    /// The kernel that offers the congestion controllers. If the text is empty, the simulator offers them.
    kernel: String,
}

#[derive(Debug, Serialize)]
struct Answer {
    /// The keys that the scenario sets.
    raw: Table,
    /// All keys.
    full: Table,
    /// Old names in the scenario, each with its current name.
    renamed: Vec<(String, String)>,
    runs: Vec<RunAnswer>,
}

#[derive(Debug, Serialize)]
struct RunAnswer {
    id: usize,
    seed: u64,
    factors: Table,
    /// The keys of the run's point that are set.
    raw: Table,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
    /// The reason why there is no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Reads a scenario, and makes the plans of its runs.
///
/// # Arguments
/// * `request`: a JSON object with `text` (TOML) or `data` (the scenario's tables), and with `source`. Optional keys:
///   `overrides` (pairs of key and value), `expand` (whether all runs of the sweep are made), `seeds`, `resolve` (whether
///   plans are made), `congestion_controllers`, `rate_controllers` and `kernel` (see [`Settings`]).
///
/// The result is a JSON object with `raw`, `full`, `renamed` and `runs`.
///
/// # Errors
/// Returns an error if the request or the scenario is not valid. If only a run is not valid, its object has `error`.
pub fn answer(request: &str, catalogue: &Catalogue, files: &dyn Files) -> Result<String> {
    let wrong = |error: serde_json::Error| Error::new(format!("found {error}, expected a request"), "");
    let request: Request = serde_json::from_str(request).map_err(wrong)?;
    let scenario = match (&request.text, &request.data) {
        (Some(text), _) => Scenario::parse(text, &request.source, &request.overrides)?,
        (None, data) => Scenario::from_table(data.clone().unwrap_or_default(), &request.source)?,
    };
    let runs = if request.expand {
        expand(&scenario, request.seeds)?
    } else {
        let (point, factors) = (Arc::new(scenario.clone()), Arc::default());
        vec![Run { id: 0, seed: scenario.seed, point, factors }]
    };
    let settings = Settings {
        catalogue,
        congestion_controllers: request.congestion_controllers,
        rate_controllers: request.rate_controllers,
        kernel: request.kernel,
        files,
    };
    let runs = runs.iter().map(|run| {
        let made = request.resolve.then(|| resolve(&run.scenario(), &settings));
        let (plan, error) = match made.transpose() {
            Ok(plan) => (plan, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let (raw, factors) = (run.point.raw(), run.factors.as_ref().clone());
        RunAnswer { id: run.id, seed: run.seed, factors, raw, plan, error }
    });
    let answer = Answer {
        raw: scenario.raw(),
        full: scenario.full(),
        renamed: scenario.renamed().iter().map(|name| (name.old.clone(), name.new.clone())).collect(),
        runs: runs.collect(),
    };
    serde_json::to_string(&answer).map_err(wrong)
}
