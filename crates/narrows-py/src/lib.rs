#![doc = include_str!("../README.md")]
#![allow(missing_docs, unreachable_pub, reason = "the Python stub _native.pyi is the documentation")]

mod channel;
mod controller;
#[cfg(target_os = "linux")]
mod emulator;
mod extension;
mod page;
mod path_rates;
mod scenario;
mod sdn;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use controller::{Failure, PyController, Shared};
use narrows_capture::{Folder, Logs};
use narrows_control::catalogue::{Choice, Controllers, FlowNumber, Problem, RateEntry};
use narrows_control::congestion::Controller;
use narrows_control::rate;
use narrows_quinn::Quinn;
use narrows_scenario::catalogue_json;
use narrows_sim::plan::Plan;
use narrows_sim::{Column, Error, Results, Run};
use numpy::IntoPyArray;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub use extension::module;

use extension::catalogue;

create_exception!(_native, CaptureError, PyOSError, "A capture that cannot be written.");
create_exception!(_native, PlanError, PyValueError, "A plan that cannot be run.");

/// A flag that cancels a run in another thread.
#[pyclass(frozen)]
#[derive(Default)]
struct Cancel {
    flag: Arc<AtomicBool>,
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Cancel::default()
    }

    fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

/// The progress of a run in another thread.
#[pyclass(frozen)]
#[derive(Default)]
struct Monitor(Arc<narrows_sim::Monitor>);

#[pymethods]
impl Monitor {
    #[new]
    fn new() -> Self {
        Monitor::default()
    }

    fn nanos(&self) -> u64 {
        self.0.now().as_nanos()
    }

    fn events(&self) -> u64 {
        self.0.events()
    }

    fn stop(&self) {
        self.0.stop();
    }
}

fn parse(plan_json: &str) -> PyResult<Plan> {
    serde_json::from_str(plan_json).map_err(|e| PlanError::new_err(format!("plan: {e}")))
}

/// The controllers of a run: the user's classes and the catalogue's controllers. If a name is in both, the class is
/// used.
struct WithClasses<'a> {
    classes: &'a BTreeMap<String, Py<PyAny>>,
    shared: &'a Shared,
}

impl Controllers for WithClasses<'_> {
    fn check(&self, choice: &Choice) -> Result<(), Problem> {
        check_choice(self.classes.contains_key(&choice.name), choice)
    }

    fn build(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        self.build_for(choice, FlowNumber::default())
    }

    fn build_for(&self, choice: &Choice, flow: FlowNumber) -> Option<Box<dyn Controller>> {
        match self.classes.get(&choice.name) {
            Some(class) => {
                let built = PyController::new(class, &choice.params, flow, self.shared);
                built.map(|c| Box::new(c) as Box<dyn Controller>)
            }
            None => catalogue().build(choice),
        }
    }

    fn rate_controllers(&self) -> &[RateEntry] {
        catalogue().rate_controllers()
    }

    fn probe(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        if self.classes.contains_key(&choice.name) { None } else { catalogue().build(choice) }
    }
}

/// The names of the user's classes. The names are enough to check a plan, so no class is instantiated.
struct ClassNames(Vec<String>);

impl Controllers for ClassNames {
    fn check(&self, choice: &Choice) -> Result<(), Problem> {
        check_choice(self.0.contains(&choice.name), choice)
    }

    fn build(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        catalogue().build(choice)
    }

    fn rate_controllers(&self) -> &[RateEntry] {
        catalogue().rate_controllers()
    }

    fn probe(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        if self.0.contains(&choice.name) { None } else { catalogue().build(choice) }
    }
}

/// Checks a chosen controller and its parameters with the catalogue. If the controller is a user's class, the class
/// checks its parameters itself.
fn check_choice(is_class: bool, choice: &Choice) -> Result<(), Problem> {
    if is_class { Ok(()) } else { catalogue().check(choice) }
}

#[pyfunction]
#[pyo3(signature = (plan_json, cancel=None, congestion=BTreeMap::new(), monitor=None, capture=None))]
fn run<'py>(
    py: Python<'py>,
    plan_json: &str,
    cancel: Option<&Cancel>,
    congestion: BTreeMap<String, Py<PyAny>>,
    monitor: Option<&Monitor>,
    capture: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let flag = cancel.map(|c| c.flag.clone()).unwrap_or_default();
    let monitor = monitor.map(|m| m.0.clone()).unwrap_or_default();
    let plan = parse(plan_json)?;
    let shared = Shared::new(plan, Failure::new(monitor.clone()));
    let plan = &*shared.plan;
    let outcome = py.detach(|| {
        let known = WithClasses { classes: &congestion, shared: &shared };
        let simulation = Run::new(plan).controllers(&known).cancel(&flag).monitor(&monitor);
        match &capture {
            None => Ok(simulation.transports(&Quinn::default()).start()),
            Some(folder) => captured(simulation, plan, folder),
        }
    });
    if let Some(error) = shared.failure.take() {
        return Err(error);
    }
    let results = outcome
        .map_err(|e| CaptureError::new_err((e.raw_os_error().unwrap_or_default(), e.to_string())))?
        .map_err(|e| match e {
            Error::Cancelled => PyKeyboardInterrupt::new_err("the run was cancelled"),
            other => PlanError::new_err(other.to_string()),
        })?;
    tables(py, results)
}

/// Runs a plan, and writes the captured packets into files in a folder.
fn captured(simulation: Run<'_>, plan: &Plan, folder: &Path) -> std::io::Result<Result<Results, Error>> {
    let mut files = Folder::create(folder, plan)?;
    let logs = Logs::new(folder);
    let open = |flow: &str| logs.open(flow).map(|file| Box::new(file) as Box<dyn Write + Send + Sync>);
    let keeps_logs = plan.capture.as_ref().is_some_and(|capture| capture.qlog);
    let quinn = if keeps_logs { Quinn::with_logs(&open) } else { Quinn::default() };
    let outcome = simulation.transports(&quinn).tap(&mut files).start();
    files.finish()?;
    logs.finish()?;
    Ok(outcome)
}

fn tables(py: Python<'_>, results: Results) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    for table in results.tables {
        let columns = PyDict::new(py);
        for (name, column) in table.columns {
            match column {
                Column::F64(v) => columns.set_item(name, v.into_pyarray(py))?,
                Column::U64(v) => columns.set_item(name, v.into_pyarray(py))?,
                Column::Str(v) => columns.set_item(name, v)?,
            }
        }
        out.set_item(table.name, columns)?;
    }
    let counts = PyDict::new(py);
    counts.set_item("events", results.counts.events)?;
    counts.set_item("packet_hops", results.counts.packet_hops)?;
    counts.set_item("delivered_packets", results.counts.delivered_packets)?;
    counts.set_item("peak_flows", results.counts.peak_flows)?;
    out.set_item("run", counts)?;
    if let Some(at) = results.stopped {
        out.set_item("stopped_s", at.as_secs_f64())?;
    }
    Ok(out)
}

/// Validates a plan in the same way as `run`, but does not run the plan.
#[pyfunction]
#[pyo3(signature = (plan_json, congestion=Vec::new()))]
fn check(plan_json: &str, congestion: Vec<String>) -> PyResult<()> {
    let (plan, known) = (parse(plan_json)?, ClassNames(congestion));
    let quinn = Quinn::default();
    let simulation = Run::new(&plan).controllers(&known).transports(&quinn);
    simulation.check().map_err(|e| PlanError::new_err(e.to_string()))
}

#[pyfunction]
fn congestion_controllers() -> Vec<(&'static str, &'static str)> {
    catalogue().names().iter().map(|e| (e.name, e.summary)).collect()
}

/// Returns the catalogue of congestion controllers as JSON, which `narrows.congestion` reads.
#[pyfunction]
fn congestion_catalogue() -> String {
    catalogue_json::congestion(catalogue())
}

/// Returns the catalogue of rate controllers as JSON, which `narrows.rate` reads.
#[pyfunction]
fn rate_catalogue() -> String {
    catalogue_json::rate(catalogue())
}

/// Returns the names of the files of a capture, one for each link or host.
#[pyfunction]
fn capture_file_names(places: Vec<String>, extension: &str) -> Vec<String> {
    narrows_capture::file_names(&places, extension)
}

/// Returns the congestion controllers that each stack implements itself.
#[pyfunction]
fn stacks() -> BTreeMap<&'static str, Vec<&'static str>> {
    BTreeMap::from([(narrows_quinn::STACK_NAME, narrows_quinn::QUINN_CONTROLLERS.to_vec())])
}

#[pyfunction]
fn rate_controllers() -> Vec<(&'static str, &'static str)> {
    let built_in = rate::registry::all().iter().map(|entry| (entry.name, entry.summary));
    built_in.chain(catalogue().rate_controllers().iter().map(|entry| (entry.name, entry.summary))).collect()
}

#[pyfunction]
fn route(plan_json: &str, from: u32, to: u32) -> PyResult<Option<Vec<u32>>> {
    Ok(narrows_sim::route(&parse(plan_json)?, from, to))
}

/// The Python module `_native`. A crate that adds controllers turns the feature `module` off, and defines its own
/// module.
#[cfg(feature = "module")]
#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    module(m, &[], &[])
}

fn fill(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("version", env!("CARGO_PKG_VERSION"))?;
    m.add("behaviour", narrows_sim::BEHAVIOUR)?;
    // tools/release.py sets the variable NARROWS_RELEASE.
    m.add("is_release", option_env!("NARROWS_RELEASE").is_some())?;
    m.add("CaptureError", m.py().get_type::<CaptureError>())?;
    m.add("CONNECTION_LOST", narrows_sim::transport::CONNECTION_LOST)?;
    m.add("PHASE_NEVER_BEGAN", narrows_sim::PHASE_NEVER_BEGAN)?;
    m.add("PlanError", m.py().get_type::<PlanError>())?;
    m.add_class::<Cancel>()?;
    m.add_class::<Monitor>()?;
    controller::register(m)?;
    channel::register(m)?;
    m.add_class::<path_rates::PyPacec>()?;
    m.add_class::<path_rates::PyParams>()?;
    m.add_class::<sdn::PySdn>()?;
    m.add_function(wrap_pyfunction!(sdn::netcard_rate, m)?)?;
    m.add_function(wrap_pyfunction!(run, m)?)?;
    m.add_function(wrap_pyfunction!(check, m)?)?;
    m.add_function(wrap_pyfunction!(congestion_controllers, m)?)?;
    m.add_function(wrap_pyfunction!(congestion_catalogue, m)?)?;
    m.add_function(wrap_pyfunction!(rate_catalogue, m)?)?;
    m.add_function(wrap_pyfunction!(rate_controllers, m)?)?;
    m.add_function(wrap_pyfunction!(stacks, m)?)?;
    m.add_function(wrap_pyfunction!(capture_file_names, m)?)?;
    scenario::register(m)?;
    m.add_function(wrap_pyfunction!(page::check_for_page, m)?)?;
    #[cfg(target_os = "linux")]
    emulator::register(m)?;
    m.add_function(wrap_pyfunction!(route, m)?)
}
