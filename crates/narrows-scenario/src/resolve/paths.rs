//! The paths of flows over the directed links of the network.

use std::collections::{BTreeSet, HashMap};

use narrows_plan::{FlowPlan, Plan};

use super::entries::Entry;
use super::graph::Graph;
use super::routes::Routes;
use super::{Paths, indices};
use crate::error::{Error, Result, found_text};
use crate::scenario::Scenario;
use crate::units::Span;

/// The directed links of a flow's paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// Path of the flow's data.
    pub(super) forth: Vec<usize>,
    /// Path of the flow's ACKs.
    pub(super) back: Vec<usize>,
    /// The links of other paths of equal length that the data may take (ECMP).
    pub(super) also_forth: BTreeSet<usize>,
    /// The links of other paths of equal length that the ACKs may take (ECMP).
    pub(super) also_back: BTreeSet<usize>,
}

impl Path {
    /// Returns all links that data may take.
    pub(super) fn data_links(&self) -> impl Iterator<Item = usize> {
        self.forth.iter().chain(&self.also_forth).copied()
    }
}

/// Returns the paths of each flow of a plan, or `None` for a flow without a path. The paths of flows on real stacks are
/// those of the simulator.
pub fn plan_paths(plan: &Plan) -> Vec<Option<Paths>> {
    let ways = plan.links.iter().map(|link| {
        let delay = link.delay.first().map_or(0, |(_, delay)| delay.as_nanos());
        (link.from as usize, link.to as usize, delay)
    });
    let mut routes = Routes::new(plan.nodes.len(), &ways.collect::<Vec<_>>());
    let mut of_flow = |flow: &FlowPlan| {
        let (from, to) = (flow.from as usize, flow.to as usize);
        let back = match flow.return_path.as_deref().unwrap_or_default() {
            [] => routes.between(to, from)?,
            nodes => {
                let hops = nodes.windows(2).map(|pair| routes.hop(pair[0] as usize, pair[1] as usize));
                hops.collect::<Option<_>>()?
            }
        };
        Some(Paths { forth: indices(&routes.between(from, to)?), back: indices(&back) })
    };
    plan.flows.iter().map(&mut of_flow).collect()
}

/// Returns, for each link, the longest two-way propagation delay of the flows whose data crosses it.
pub(super) fn rtts(graph: &Graph<'_>, paths: &[Path]) -> HashMap<usize, Span> {
    let mut longest: HashMap<usize, Span> = HashMap::new();
    for path in paths {
        let links = path.forth.iter().chain(&path.back).filter_map(|link| graph.links.get(*link));
        let rtt: Span = links.map(|link| link.delay()).sum();
        for link in path.data_links() {
            let known = longest.entry(link).or_default();
            *known = (*known).max(rtt);
        }
    }
    longest
}

/// Returns the paths of a flow.
pub(super) fn path(
    scenario: &Scenario,
    graph: &mut Graph<'_>,
    entry: &Entry,
    flow: &FlowPlan,
) -> Result<Path> {
    let (from, to) = (flow.from as usize, flow.to as usize);
    let equal = |graph: &mut Graph<'_>, from, to| {
        if scenario.ecmp { graph.equal(from, to) } else { Default::default() }
    };
    let forth = route(graph, from, to, &entry.end("to")).map_err(|error| entry.misplaced(error))?;
    let also_forth = equal(graph, from, to);
    let Some(nodes) = flow.return_path.as_ref().filter(|nodes| !nodes.is_empty()) else {
        let back = route(graph, to, from, &entry.end("from")).map_err(|error| entry.misplaced(error))?;
        let also_back = equal(graph, to, from);
        return Ok(Path { forth, back, also_forth, also_back });
    };
    let key = format!("{}.return_path", entry.key());
    let hops = nodes.windows(2).map(|pair| hop(graph, pair[0] as usize, pair[1] as usize, &key));
    let back = hops.collect::<Result<_>>()?;
    Ok(Path { forth, back, also_forth, ..Path::default() })
}

fn route(graph: &mut Graph<'_>, from: usize, to: usize, key: &str) -> Result<Vec<usize>> {
    graph.route(from, to).ok_or_else(|| {
        let name = |node: usize| found_text(graph.nodes.get(node).map_or("", String::as_str));
        Error::new(format!("found no path from {} to {}, expected one", name(from), name(to)), key)
    })
}

fn hop(graph: &Graph<'_>, from: usize, to: usize, key: &str) -> Result<usize> {
    graph.hop(from, to).ok_or_else(|| {
        let name = |node: usize| found_text(graph.nodes.get(node).map_or("", String::as_str));
        Error::new(format!("found {} after {}, expected a neighbour", name(to), name(from)), key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{Resolver, Settings};

    /// Two hosts in different pods have (k/2)^2 equal paths. Only the two hosts' own links are on all of these paths.
    #[test]
    fn all_equal_paths_are_known() {
        for (k, most) in [(2_u32, 1), (4, 4)] {
            let text = |ecmp: bool| {
                let last = k.pow(3) / 4;
                format!(
                    "ecmp = {ecmp}\n[topology]\nname = 'fat-tree'\nk = {k}\nrate = '100mbit'\n[[flows]]\n\
                     from = 'h1'\nto = 'h{last}'"
                )
            };
            let settings = Settings::default();
            for ecmp in [true, false] {
                let scenario = Scenario::parse(&text(ecmp), "x", &[]).expect("a scenario");
                let resolver = Resolver::new(&scenario, &settings).expect("a network");
                let path = &resolver.paths[0];
                let up: BTreeSet<usize> = path.data_links().collect();
                let middle = up.iter().filter(|link| {
                    let name = &resolver.graph.links[**link].name;
                    name.split("->").nth(1).is_some_and(|to| to.starts_with('c'))
                });
                assert_eq!(middle.count(), if ecmp { most } else { 1 });
                assert!(path.forth.iter().all(|link| up.contains(link)));
                assert!(ecmp || path.also_forth.is_empty());
            }
        }
    }
}
