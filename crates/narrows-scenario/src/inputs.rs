//! Lists the files that a scenario names.

use std::collections::BTreeSet;

use crate::model::Topology;
use crate::resolve::{SNDLIB, Settings, file_of};
use crate::scenario::Scenario;

/// Returns the files that a scenario names: traces, matrices, and files of parameters and programs. Paths are as in the
/// scenario.
pub fn inputs(scenario: &Scenario, settings: &Settings<'_>) -> BTreeSet<String> {
    let matrices =
        scenario.flows.iter().filter_map(|flow| flow.demands.as_ref()).filter(|file| *file != SNDLIB);
    let of_programs =
        scenario.flows.iter().filter_map(|flow| flow.program.as_ref()).flat_map(|program| &program.files);
    let links = scenario.links.iter().flat_map(|link| [Some(&link.traits), link.back.as_ref()]).flatten();
    let topology = scenario.topology.as_ref().and_then(Topology::traits);
    let traces = links.chain(topology).filter_map(|traits| traits.trace.as_ref()).map(|trace| &trace.file);
    let of_parameters = scenario.rate_controllers.iter().flat_map(|controller| {
        let known = settings.rate_parameters(&controller.kind).unwrap_or_default();
        known.into_iter().filter_map(|(name, shape)| file_of(controller.params.get(&name)?, &shape).cloned())
    });
    let named = matrices.chain(of_programs).chain(traces).cloned();
    named.chain(of_parameters.collect::<Vec<_>>()).collect()
}
