//! Scenarios in a program that has neither files nor Python, e.g. in a web page.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::error::{Error, Result, found_text};
use crate::files::NoFiles;
use crate::model::stacks::class_file;
use crate::resolve::{Settings, Survey, survey};
use crate::scenario::Scenario;
use crate::sweep::{Run, expand};
use crate::value::Value;

/// A point of a sweep. A scenario without a sweep has one point.
#[derive(Clone, Debug)]
pub struct Point {
    /// The scenario of the point, without a sweep.
    pub scenario: Arc<Scenario>,
    /// Values of the sweep's factors.
    pub factors: Arc<IndexMap<String, Value>>,
    /// Seeds of the point's runs.
    pub seeds: Vec<u64>,
}

/// Returns the points of a scenario's sweep, at least one. `seeds` is the number of seeds, as for [`expand`].
///
/// # Errors
/// Returns an error if the sweep is not valid.
pub fn points(scenario: &Scenario, seeds: Option<u64>) -> Result<Vec<Point>> {
    let mut points: Vec<Point> = Vec::new();
    for Run { point, seed, factors, .. } in expand(scenario, seeds)? {
        match points.last_mut() {
            Some(last) if Arc::ptr_eq(&last.scenario, &point) => last.seeds.push(seed),
            _ => points.push(Point { scenario: point, factors, seeds: vec![seed] }),
        }
    }
    if points.is_empty() {
        return Err(Error::new("found no run, expected one", "sweep").in_source(scenario.source()));
    }
    Ok(points)
}

impl Point {
    /// Makes the plan of the point for a simulator with the built-in controllers.
    ///
    /// # Errors
    /// Returns an error if the scenario is not valid, or if it names files or controllers in Python.
    pub fn survey_closed(&self) -> Result<Survey> {
        for (i, flow) in self.scenario.flows.iter().enumerate() {
            let name = flow.cc.name.as_str();
            if class_file(name).is_some() {
                let message = format!(
                    "found {}, expected a built-in congestion controller, because this program does not run Python",
                    found_text(name)
                );
                return Err(Error::new(message, format!("flows.{i}.cc")).in_source(self.scenario.source()));
            }
        }
        survey(&self.scenario, &Settings::simulator(&NoFiles))
    }
}
