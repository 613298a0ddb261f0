//! Scenarios for the Python package. The crate `narrows-scenario` contains all rules of the format, and the package has
//! no further rules.

mod plan;
mod units;
mod value;

use std::collections::BTreeSet;
use std::sync::Arc;

use narrows_scenario::model::Topology;
use narrows_scenario::{Disk, Error, Paths, Renamed, Run, Scenario, Settings, Survey, Value};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::extension::catalogue;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("ACCESS_FACTOR", narrows_scenario::ACCESS_FACTOR)?;
    m.add("DEFAULT_RECEIVE_BUFFER", narrows_scenario::DEFAULT_RECEIVE_BUFFER)?;
    m.add("FIRST_PORT", narrows_scenario::FIRST_PORT)?;
    m.add("HOST", narrows_scenario::HOST)?;
    m.add_class::<PyScenario>()?;
    m.add_class::<PySurvey>()?;
    m.add_function(wrap_pyfunction!(flow_paths, m)?)?;
    m.add_function(wrap_pyfunction!(scenario_choices, m)?)?;
    m.add_function(wrap_pyfunction!(scenario_current_key, m)?)?;
    m.add_function(wrap_pyfunction!(scenario_current_names, m)?)?;
    m.add_function(wrap_pyfunction!(scenario_networks, m)?)?;
    m.add_function(wrap_pyfunction!(scenario_notes, m)?)?;
    m.add_function(wrap_pyfunction!(scenario_override, m)?)?;
    m.add_function(wrap_pyfunction!(scenario_parse_override, m)?)?;
    m.add_function(wrap_pyfunction!(scenario_reference, m)?)?;
    m.add_function(wrap_pyfunction!(scenario_schema, m)?)?;
    units::register(m)
}

/// Returns an error about a scenario as `narrows.errors.ScenarioError`.
fn raised(py: Python<'_>, error: Error) -> PyErr {
    let make = || {
        let class = py.import("narrows.errors")?.getattr("ScenarioError")?;
        class.call1((error.message, error.key, error.source))
    };
    make().map_or_else(|failure| failure, PyErr::from_value)
}

/// Old names in a scenario, each with its current name.
fn pairs(renamed: &[Renamed]) -> Vec<(&str, &str)> {
    renamed.iter().map(|name| (name.old.as_str(), name.new.as_str())).collect()
}

fn overrides(given: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Vec<(String, Value)>> {
    given.into_iter().map(|(key, inner)| Ok((key, value::value(&inner)?))).collect()
}

fn disk(networks: Option<String>) -> Disk {
    networks.map_or_else(Disk::default, Disk::with_networks)
}

/// A checked scenario.
#[pyclass(frozen, module = "narrows._native", name = "Scenario")]
struct PyScenario(Arc<Scenario>);

impl From<Scenario> for PyScenario {
    fn from(scenario: Scenario) -> Self {
        PyScenario(Arc::new(scenario))
    }
}

#[pymethods]
impl PyScenario {
    /// Checks the tables of a scenario.
    #[new]
    fn new(data: &Bound<'_, PyAny>, source: &str) -> PyResult<Self> {
        let made = Scenario::from_table(value::table(data)?, source);
        made.map(Self::from).map_err(|error| raised(data.py(), error))
    }

    /// Reads a scenario file.
    #[staticmethod]
    fn load(py: Python<'_>, path: &str, changes: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let changes = overrides(changes)?;
        let read = py.detach(|| Scenario::load(path, &changes, &Disk::default()));
        read.map(Self::from).map_err(|error| raised(py, error))
    }

    /// Reads a scenario from TOML.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        text: &str,
        source: &str,
        changes: Vec<(String, Bound<'_, PyAny>)>,
    ) -> PyResult<Self> {
        let changes = overrides(changes)?;
        let read = py.detach(|| Scenario::parse(text, source, &changes));
        read.map(Self::from).map_err(|error| raised(py, error))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn source(&self) -> &str {
        self.0.source()
    }

    #[getter]
    fn duration(&self) -> u64 {
        self.0.duration.as_nanos()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    #[getter]
    fn seeds(&self) -> u64 {
        self.0.sweep.as_ref().map_or(1, |sweep| sweep.seeds)
    }

    #[getter]
    fn has_capture(&self) -> bool {
        self.0.capture.is_some()
    }

    #[getter]
    fn has_published_network(&self) -> bool {
        matches!(self.0.topology, Some(Topology::Named(_)))
    }

    #[getter]
    fn renamed(&self) -> Vec<(&str, &str)> {
        pairs(self.0.renamed())
    }

    fn with_source(&self, source: &str) -> Self {
        Scenario::clone(&self.0).with_source(source).into()
    }

    fn with_seed(&self, seed: u64) -> Self {
        Scenario::clone(&self.0).with_seed(seed).into()
    }

    fn beside_real(&self) -> Self {
        Scenario::clone(&self.0).beside_real().into()
    }

    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        value::dict(py, &self.0.raw())
    }

    fn full<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        value::dict(py, &self.0.full())
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        value::dict(py, &self.0.facts())
    }

    /// Returns, for each entry of flows: its name in results, its transport, the name and parameters of its congestion
    /// controller, its number of flows, and whether it has programs.
    fn flows<'py>(&self, py: Python<'py>) -> PyResult<Vec<FlowParts<'py>>> {
        let entries = self.0.flow_names().into_iter().zip(&self.0.flows);
        let parts = entries.map(|(name, flow)| {
            let params = value::dict(py, &flow.cc.params)?;
            let transport = flow.transport.word();
            Ok((name, transport, flow.cc.name.clone(), params, flow.count, flow.program.is_some()))
        });
        parts.collect()
    }

    /// Returns the keys of each expectation, including those with default values.
    fn expectations<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.0.expect.iter().map(|expectation| value::dict(py, &expectation.full())).collect()
    }

    /// Returns the points of the sweep, each with the values of its factors, and the number of seeds of each point.
    fn expand<'py>(&self, py: Python<'py>, seeds: Option<i64>) -> PyResult<(Vec<Point<'py>>, usize)> {
        let seeds = seeds.map(|seeds| u64::try_from(seeds).unwrap_or_default());
        let points =
            py.detach(|| narrows_scenario::points(&self.0, seeds)).map_err(|error| raised(py, error))?;
        // All points have the same number of seeds.
        let seeds = points.first().map_or(0, |point| point.seeds.len());
        let points = points
            .into_iter()
            .map(|point| Ok((PyScenario(point.scenario), value::dict(py, &point.factors)?)));
        Ok((points.collect::<PyResult<_>>()?, seeds))
    }

    /// Makes the plan, and records the places in the scenario from which it was made.
    fn survey(
        &self,
        py: Python<'_>,
        congestion_controllers: Vec<String>,
        rate_controllers: Vec<String>,
        kernel: String,
        networks: Option<String>,
    ) -> PyResult<PySurvey> {
        let made = py.detach(|| {
            let disk = disk(networks);
            let catalogue = catalogue();
            let settings =
                Settings { catalogue, congestion_controllers, rate_controllers, kernel, files: &disk };
            narrows_scenario::survey(&self.0, &settings)
        });
        made.map(PySurvey).map_err(|error| raised(py, error))
    }

    /// Returns the paths of the files that the scenario names. The paths are as in the scenario.
    fn inputs(&self) -> BTreeSet<String> {
        narrows_scenario::inputs(&self.0, &Settings { catalogue: catalogue(), ..Settings::default() })
    }
}

/// A point of a sweep, with the values of its factors.
type Point<'py> = (PyScenario, Bound<'py, PyDict>);

/// The links on the path of a flow's data, and of its ACKs.
type FlowPaths = (Vec<u32>, Vec<u32>);

/// Old names, each with its current name.
type OldNames = Vec<(String, String)>;

/// The parts of a flow that other parts of the package read.
type FlowParts<'py> = (String, &'static str, String, Bound<'py, PyDict>, u32, bool);

/// A plan, and the places in the scenario from which it was made.
#[pyclass(frozen, module = "narrows._native", name = "Survey")]
struct PySurvey(Survey);

#[pymethods]
impl PySurvey {
    fn plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plan::object(py, &self.0.plan)
    }

    /// Returns the links of each flow's data, and of its ACKs.
    fn paths(&self) -> Vec<FlowPaths> {
        self.0.paths.iter().map(|paths| (paths.forth.clone(), paths.back.clone())).collect()
    }

    /// Returns the rates in bit/s and the delays in ns of the directed links.
    fn ways(&self) -> Vec<(u64, u64)> {
        let picture = &self.0.picture;
        let ways = picture.rates.iter().zip(&picture.delays);
        ways.map(|(rate, delay)| (rate.0, delay.as_nanos())).collect()
    }

    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (node, at) in &self.0.picture.positions {
            dict.set_item(node, at)?;
        }
        Ok(dict)
    }

    #[getter]
    fn is_geographic(&self) -> bool {
        self.0.picture.is_geographic
    }

    fn hosts(&self) -> std::collections::HashSet<String> {
        self.0.picture.hosts.clone()
    }

    /// Returns a key of the plan. In this key, the number of the scenario's entry replaces the plan's number.
    fn key_in_scenario(&self, key: &str) -> String {
        self.0.in_scenario(Error::new("", key)).key
    }
}

/// Returns the links on the paths of each flow's data and ACKs, or `None` for a flow without a path.
#[pyfunction]
fn flow_paths(plan_json: &str) -> PyResult<Vec<Option<FlowPaths>>> {
    let paths = narrows_scenario::plan_paths(&crate::parse(plan_json)?);
    Ok(paths.into_iter().map(|paths| paths.map(|Paths { forth, back }| (forth, back))).collect())
}

/// Returns notes for readers of the results of all runs of these points.
#[pyfunction]
fn scenario_notes(
    py: Python<'_>,
    points: Vec<PyRef<'_, PyScenario>>,
    networks: Option<String>,
) -> PyResult<Vec<String>> {
    let run = |(id, point): (usize, &PyRef<'_, PyScenario>)| Run {
        id,
        seed: point.0.seed,
        point: Arc::clone(&point.0),
        factors: Arc::default(),
    };
    let runs: Vec<Run> = points.iter().enumerate().map(run).collect();
    let disk = disk(networks);
    let settings = Settings { catalogue: catalogue(), files: &disk, ..Settings::default() };
    narrows_scenario::notes(&runs, &settings).map_err(|error| raised(py, error))
}

/// Returns a scenario's tables with a changed key.
#[pyfunction]
fn scenario_override<'py>(
    data: &Bound<'py, PyAny>,
    key: &str,
    new: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut table = value::table(data)?;
    narrows_scenario::override_key(&mut table, key, &value::value(new)?)
        .map_err(|error| raised(data.py(), error))?;
    value::dict(data.py(), &table)
}

/// Parses `key=value` of a command line.
#[pyfunction]
fn scenario_parse_override<'py>(py: Python<'py>, text: &str) -> PyResult<(String, Bound<'py, PyAny>)> {
    let (key, read) = narrows_scenario::parse_override(text).map_err(|error| raised(py, error))?;
    Ok((key, value::object(py, &read)?))
}

/// Returns a dotted key with current names.
#[pyfunction]
fn scenario_current_key(key: &str) -> String {
    narrows_scenario::current_key(key)
}

/// Returns tables with current names, and the old names that they had.
#[pyfunction]
fn scenario_current_names<'py>(data: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyDict>, OldNames)> {
    let py = data.py();
    let mut renamed = Vec::new();
    let table = narrows_scenario::current_names(value::table(data)?, &mut renamed)
        .map_err(|error| raised(py, error))?;
    Ok((value::dict(py, &table)?, renamed.into_iter().map(|name| (name.old, name.new)).collect()))
}

/// Returns the kinds of tables that a key can have, each with its meaning.
#[pyfunction]
fn scenario_choices(table: &str, key: &str) -> Vec<(&'static str, String)> {
    narrows_scenario::choices(table, key)
}

/// Returns the networks that need no other package, each with its meaning. Also returns the names of topohub's
/// networks.
#[pyfunction]
fn scenario_networks(networks: Option<String>) -> (Vec<(&'static str, &'static str)>, Vec<String>) {
    use narrows_scenario::Files;
    (narrows_scenario::networks(), disk(networks).networks().unwrap_or_default())
}

/// Returns the JSON schema of scenario files, with the parameters of all controllers.
#[pyfunction]
fn scenario_schema() -> String {
    let settings = Settings { catalogue: catalogue(), ..Settings::default() };
    narrows_scenario::schema(&settings).to_string()
}

/// Returns the reference of all keys in Markdown.
#[pyfunction]
fn scenario_reference() -> String {
    narrows_scenario::reference()
}
