//! Converts a scenario into the plan that a backend runs. In a plan, indices replace names, and defaults are explicit.
//!
//! | module | idea |
//! | --- | --- |
//! | `entries`, `patterns`, `demands` | the flows that entries of `[[flows]]` stand for |
//! | `layout`, `graph`, `routes`, `traces` | the network: nodes, directed links, paths, capacities |
//! | `flows`, `parameters` | transports and applications, and parameters in base units |
//! | `links`, `buffers` | links with their queues, and the receive buffer |
//! | `fitting` | checks whether the parts fit together |
//! | `random` | the random numbers of patterns |

mod buffers;
mod demands;
mod entries;
mod fitting;
mod flows;
mod graph;
mod layout;
mod links;
mod parameters;
mod patterns;
mod random;
mod routes;
mod traces;

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use narrows_control::catalogue::Catalogue;
use narrows_control::parameter::Values;
use narrows_control::rate::registry;
use narrows_control::units::Time;
use narrows_plan::{
    CapturePlan, ControllerPlan, FlowPlan, KernelPlan, Plan, ProbePlan, SdnPlan, TransportPlan,
};

use self::entries::{Entry, Published};
use self::fitting::Path;
use self::graph::Graph;
use self::links::Crossing;
use self::parameters::Known;
use crate::error::{Error, Result, found_text, hint, one_of};
use crate::files::{Files, NoFiles};
use crate::model::flow::result_names;
use crate::model::queue::TXQUEUELEN;
use crate::model::{self, Capture, Flow, Kernel, MAX_FLOWS, RateController, ReceiveBuffer, stacks};
use crate::scenario::Scenario;
use crate::units::{Span, format_duration};
use crate::value::fields::ALL;

/// By default, all directed links are sampled if the network has at most this many directed links.
const MAX_SAMPLED_BY_DEFAULT: usize = 16;
/// Maximum number of sample rows of a run.
const MAX_SAMPLES: u128 = 100_000_000;
/// The warm-up is the duration of the run divided by this number, within the two bounds below.
const WARMUP_SHARE: u64 = 10;
/// The warm-up lasts at least this many times the longest RTT (docs/reference/results.md, conventions).
const WARMUP_RTTS: u64 = 10;
/// The warm-up lasts at most the duration of the run divided by this number, so that something is left to measure.
const WARMUP_MOST: u64 = 2;

/// The surroundings in which a scenario is resolved.
#[derive(Clone)]
pub struct Settings<'a> {
    /// The catalogue, with the parameters of congestion controllers and with rate controllers of other crates.
    pub catalogue: &'a Catalogue,
    /// Names that `cc` may take. If the list is empty, names are not checked.
    pub congestion_controllers: Vec<String>,
    /// Names that a rate controller's `kind` may take. If the list is empty, all rate controllers of the catalogue.
    pub rate_controllers: Vec<String>,
    /// The kernel that offers these congestion controllers, as messages call it. If the text is empty, the simulator offers
    /// them.
    pub kernel: String,
    /// The files that the scenario names.
    pub files: &'a dyn Files,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Settings {
            catalogue: Catalogue::built_in(),
            congestion_controllers: Vec::new(),
            rate_controllers: Vec::new(),
            kernel: String::new(),
            files: &NoFiles,
        }
    }
}

impl<'a> Settings<'a> {
    /// Returns settings for the simulator with the built-in controllers: unknown names are errors.
    pub fn simulator(files: &'a dyn Files) -> Self {
        let catalogue = Catalogue::built_in();
        let names = catalogue.names().iter().map(|named| named.name.to_owned()).collect();
        Settings { congestion_controllers: names, files, ..Settings::default() }
    }

    /// Returns the names of all rate controllers of the catalogue.
    fn known_rate_controllers(&self) -> Vec<&str> {
        let own = registry::all().iter().map(|entry| entry.name);
        own.chain(self.catalogue.rate_controllers().iter().map(|entry| entry.name)).collect()
    }

    /// Returns the parameters of a rate controller, or `None` if the catalogue has no such rate controller.
    fn rate_parameters(&self, kind: &str) -> Option<Known> {
        if let Some(entry) = registry::find(kind) {
            return Some(entry.parameters.iter().map(|p| (p.name.to_owned(), p.shape)).collect());
        }
        let added = self.catalogue.rate_controllers().iter().find(|entry| entry.name == kind)?;
        Some(added.parameters().map(|(name, parameter, _)| (name, parameter.shape)).collect())
    }
}

/// The directed links of a flow's paths, by index in the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Path of the flow's data.
    pub forth: Vec<u32>,
    /// Path of the flow's ACKs.
    pub back: Vec<u32>,
}

/// A plan, and the places in the scenario from which it was made.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The plan for the backend.
    pub plan: Plan,
    /// The paths of each flow of the plan.
    pub paths: Vec<Paths>,
    /// For each flow of the plan, the number of the scenario's entry that describes it.
    pub flows: Vec<usize>,
    /// For each rate controller of the plan, the number of the scenario's entry that describes it.
    pub rate_controllers: Vec<usize>,
}

impl Survey {
    /// Returns the same error. In its key, the number of the scenario's entry replaces the plan's number.
    #[must_use]
    pub fn in_scenario(&self, error: Error) -> Error {
        let mut parts: Vec<String> = error.key.split('.').map(str::to_owned).collect();
        let origins = match parts.first().map(String::as_str) {
            Some("flows") => &self.flows,
            Some("rate_controllers") => &self.rate_controllers,
            _ => return error,
        };
        let origin =
            parts.get(1).and_then(|number| number.parse::<usize>().ok()).and_then(|i| origins.get(i));
        match (origin, parts.get_mut(1)) {
            (Some(origin), Some(number)) => {
                *number = origin.to_string();
                Error { key: parts.join("."), ..error }
            }
            _ => error,
        }
    }
}

/// Returns the plan of one run. The scenario's sweep is ignored.
///
/// # Errors
/// Returns an error if names, routes or values contradict each other.
pub fn resolve(scenario: &Scenario, settings: &Settings<'_>) -> Result<Plan> {
    survey(scenario, settings).map(|survey| survey.plan)
}

/// Like [`resolve`], but also returns the paths and the origins of the plan's parts.
///
/// # Errors
/// Returns an error if names, routes or values contradict each other.
pub fn survey(scenario: &Scenario, settings: &Settings<'_>) -> Result<Survey> {
    let make = || Resolver::new(scenario, settings)?.survey();
    make().map_err(|error: Error| error.in_source(scenario.source()))
}

struct Resolver<'s> {
    scenario: &'s Scenario,
    settings: &'s Settings<'s>,
    entries: Vec<Entry>,
    graph: Graph<'s>,
    flows: Vec<FlowPlan>,
    paths: Vec<Path>,
    crossing: Crossing,
}

impl<'s> Resolver<'s> {
    fn new(scenario: &'s Scenario, settings: &'s Settings<'s>) -> Result<Self> {
        let published = Published::of(scenario, settings.files);
        let entries = entries::entries(scenario, &published, settings.files)?;
        let ends = entries.iter().flat_map(|entry| [entry.from.as_deref(), entry.to.as_deref()]).flatten();
        let mut graph = Graph::new(scenario, &published, ends, settings.files)?;
        let kinds: Vec<_> =
            entries.iter().map(|entry| (entry.flow.name.clone(), entry.flow.kind())).collect();
        let mut flows = Vec::with_capacity(entries.len());
        for (i, (entry, name)) in entries.iter().zip(result_names(&kinds)).enumerate() {
            flows.push(flow_plan(scenario, settings, &graph, i, entry, name)?);
        }
        let mut paths = Vec::with_capacity(entries.len());
        for (entry, flow) in entries.iter().zip(&flows) {
            paths.push(path(scenario, &mut graph, entry, flow)?);
        }
        let packets = fitting::largest_packets(&entries, &paths);
        let rtts = rtts(&graph, &paths);
        let longest_rtt = rtts.values().max().copied().unwrap_or_default();
        let crossing = Crossing { packets, rtts, longest_rtt };
        Ok(Resolver { scenario, settings, entries, graph, flows, paths, crossing })
    }

    fn survey(self) -> Result<Survey> {
        let scenario = self.scenario;
        let mut seen: HashSet<&str> = HashSet::new();
        for (entry, flow) in self.entries.iter().zip(&self.flows) {
            if !seen.insert(&flow.name) {
                let message = format!("found {} again, expected another name", found_text(&flow.name));
                return Err(Error::new(message, format!("{}.name", entry.key())));
            }
        }
        if self.flows.is_empty() {
            return Err(Error::new("found none, expected at least one entry [[flows]]", "flows"));
        }
        let total: u64 = self.entries.iter().map(|entry| u64::from(entry.flow.count)).sum();
        if total > u64::from(MAX_FLOWS) {
            return Err(Error::new(format!("found {total} flows, expected at most {MAX_FLOWS}"), "flows"));
        }
        fitting::check(scenario, &self.graph, &self.entries, &self.paths)?;
        let (rate_controllers, controlled): (Vec<ControllerPlan>, Vec<usize>) =
            self.rate_controllers()?.into_iter().unzip();
        let links = self.graph.links.iter().enumerate();
        let links: Vec<_> =
            links.map(|(i, link)| links::link(link, i, &self.crossing)).collect::<Result<_>>()?;
        let warmup = self.warmup()?;
        let receive_buffer = match scenario.receive_buffer {
            Some(ReceiveBuffer::Size(size)) => size,
            Some(ReceiveBuffer::Auto) | None => buffers::receive_buffer(&links, &self.paths),
        };
        let with_controllers: Vec<u32> = rate_controllers.iter().map(|controller| controller.link).collect();
        let probes = self.probes(&with_controllers, total)?;
        let capture = scenario.capture.as_ref().map(|capture| self.capture(capture)).transpose()?;
        let plan = Plan {
            seed: scenario.seed,
            duration: scenario.duration,
            warmup,
            nodes: self.graph.nodes,
            links,
            flows: self.flows,
            rate_controllers,
            sdn: scenario.sdn.as_ref().map(|sdn| SdnPlan {
                poll: sdn.poll,
                delay: sdn.delay,
                outages: outages(&sdn.outages),
            }),
            receive_buffer: Some(receive_buffer),
            receive_memory: scenario.receive_buffer.is_some(),
            ecmp: scenario.ecmp,
            probes,
            capture,
            kernel: scenario.kernel.as_ref().map(kernel),
        };
        let paths =
            self.paths.iter().map(|path| Paths { forth: indices(&path.forth), back: indices(&path.back) });
        Ok(Survey {
            plan,
            paths: paths.collect(),
            flows: self.entries.iter().map(|entry| entry.index).collect(),
            rate_controllers: controlled,
        })
    }

    fn warmup(&self) -> Result<Span> {
        let duration = self.scenario.duration;
        if let Some(warmup) = self.scenario.warmup {
            if warmup >= duration {
                let found = found_text(&format_duration(warmup));
                return Err(Error::new(format!("found {found}, expected less than the duration"), "warmup"));
            }
            return Ok(warmup);
        }
        let rtts = self.crossing.longest_rtt.as_nanos().saturating_mul(WARMUP_RTTS);
        let wanted = (duration.as_nanos() / WARMUP_SHARE).max(rtts);
        Ok(Span::from_nanos(wanted.min(duration.as_nanos() / WARMUP_MOST)))
    }

    /// Returns the rate controllers, at most one for each link, each with the number of its entry. An entry can define several
    /// rate controllers.
    fn rate_controllers(&self) -> Result<Vec<(ControllerPlan, usize)>> {
        let mut made: IndexMap<usize, (ControllerPlan, usize)> = IndexMap::new();
        let known = &self.settings.rate_controllers;
        for (i, controller) in self.scenario.rate_controllers.iter().enumerate() {
            let key = format!("rate_controllers.{i}");
            if !known.is_empty() && !known.contains(&controller.kind) {
                let names = known.iter().map(String::as_str);
                let message = one_of(&controller.kind, names, "a rate controller", "rate");
                return Err(Error::new(message, format!("{key}.kind")));
            }
            for (index, place) in self.graph.controlled(controller, &key)? {
                if made.contains_key(&index) {
                    let name = self.graph.links.get(index).map_or("", |link| &link.name);
                    let message =
                        format!("found {} again, expected one rate controller per link", found_text(name));
                    return Err(Error::new(message, place));
                }
                made.insert(index, (self.controller(controller, index, &key)?, i));
            }
        }
        Ok(made.into_values().collect())
    }

    fn controller(&self, controller: &RateController, index: usize, key: &str) -> Result<ControllerPlan> {
        let Some(link) = self.graph.links.get(index) else {
            return Err(Error::new("found no link, expected one", key));
        };
        let of_link =
            || link.traits.queue.as_ref().and_then(model::Queue::single_limit).unwrap_or(TXQUEUELEN);
        let (limit, limit_key) = match controller.queue {
            Some(limit) => (limit, format!("{key}.queue")),
            None => (of_link(), format!("{}.queue", link.key)),
        };
        let shape: Option<Vec<_>> = controller
            .shape
            .as_ref()
            .map(|shape| shape.iter().map(|step| (Time::ZERO + step.time, step.rate.in_bytes())).collect());
        if let Some(shape) = &shape {
            let starts_at_zero = shape.first().is_some_and(|(at, _)| *at == Time::ZERO);
            if !starts_at_zero || !shape.is_sorted_by(|a, b| a.0 < b.0) {
                return Err(Error::new("expected rising times from '0s' on", format!("{key}.shape")));
            }
        }
        Ok(ControllerPlan {
            kind: controller.kind.clone(),
            link: index as u32,
            shape,
            capacity_is_configured: controller.capacity == model::Capacity::Told,
            limit: links::limit(limit, link, index, &self.crossing, &limit_key)?,
            params: self.params(controller, key)?,
            outages: outages(&controller.outages),
        })
    }

    fn params(&self, controller: &RateController, key: &str) -> Result<Values> {
        let kind = &controller.kind;
        let Some(known) = self.settings.rate_parameters(kind) else {
            let names = self.settings.known_rate_controllers();
            let message = one_of(kind, names, "a rate controller", "rate");
            return Err(Error::new(message, format!("{key}.kind")));
        };
        let (folder, key) = (self.scenario.folder(), format!("{key}.params"));
        let params =
            parameters::with_contents(&controller.params, &known, folder, &key, self.settings.files)?;
        parameters::in_base_units(&params, &known, kind, &key)
    }

    fn probes(&self, controlled: &[u32], flows: u64) -> Result<ProbePlan> {
        let probes = &self.scenario.probes;
        let count = self.graph.links.len();
        let mut links: Vec<usize> = match &probes.links {
            Some(names) if names.as_slice() == [ALL] => (0..count).collect(),
            Some(names) => {
                let named = names.iter().enumerate();
                named
                    .map(|(j, name)| self.graph.link(name, &format!("probes.links.{j}")))
                    .collect::<Result<_>>()?
            }
            None if count <= MAX_SAMPLED_BY_DEFAULT => (0..count).collect(),
            None => {
                let tight = self.graph.bottlenecks.iter().map(|name| self.graph.link(name, "probes.links"));
                let controlled = controlled.iter().map(|link| Ok(*link as usize));
                tight.chain(controlled).collect::<Result<_>>()?
            }
        };
        links.sort_unstable();
        links.dedup();
        if probes.interval > Span::ZERO {
            let entities = links.len() as u128 + if probes.flows { u128::from(flows) } else { 0 };
            let ticks = self.scenario.duration.as_nanos() / probes.interval.as_nanos();
            let samples = u128::from(ticks) * entities;
            if samples > MAX_SAMPLES {
                let message = format!(
                    "found {} ({samples} samples), expected an interval that gives at most {MAX_SAMPLES} samples (0 gives \
                     none)",
                    format_duration(probes.interval)
                );
                return Err(Error::new(message, "probes.interval"));
            }
        }
        Ok(ProbePlan {
            interval: probes.interval,
            links: indices(&links),
            flows: probes.flows,
            traces: probes.traces,
            acks: self.recorded(probes.acks.as_deref().unwrap_or_default())?,
            ack_rows: probes.ack_rows,
        })
    }

    /// Returns the numbers of the flows whose ACKs are recorded.
    fn recorded(&self, names: &[String]) -> Result<Vec<u32>> {
        if !names.is_empty() && !self.settings.kernel.is_empty() {
            let message = "found flows, expected --on sim, because real stacks are sampled at intervals only";
            return Err(Error::new(message, "probes.acks"));
        }
        let flows = self.flows.iter().enumerate();
        let tcp: IndexMap<&str, u32> = flows
            .filter(|(_, flow)| matches!(flow.transport, TransportPlan::Tcp { .. }))
            .map(|(i, flow)| (flow.name.as_str(), i as u32))
            .collect();
        if names == [ALL] {
            return Ok(tcp.into_values().collect());
        }
        let mut numbers = Vec::new();
        for (j, name) in names.iter().enumerate() {
            numbers.push(*tcp.get(name.as_str()).ok_or_else(|| {
                let near = hint(name, tcp.keys().copied());
                let message = format!("found {}, expected the name of a TCP flow{near}", found_text(name));
                Error::new(message, format!("probes.acks.{j}"))
            })?);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    fn capture(&self, capture: &Capture) -> Result<CapturePlan> {
        let links = capture.links.iter().enumerate();
        let links = links.map(|(i, name)| self.graph.link(name, &format!("capture.links.{i}")));
        let mut links: Vec<usize> = links.collect::<Result<_>>()?;
        let hosts = capture.hosts.iter().enumerate();
        let hosts = hosts.map(|(i, name)| self.graph.node(name, &format!("capture.hosts.{i}")));
        let mut hosts: Vec<usize> = hosts.collect::<Result<_>>()?;
        for places in [&mut links, &mut hosts] {
            places.sort_unstable();
            places.dedup();
        }
        Ok(CapturePlan {
            links: indices(&links),
            hosts: indices(&hosts),
            snap: capture.snap.get() as u32,
            qlog: capture.qlog,
        })
    }
}

fn indices(places: &[usize]) -> Vec<u32> {
    places.iter().map(|place| *place as u32).collect()
}

fn outages(given: &[Vec<Span>]) -> Vec<(Time, Time)> {
    given
        .iter()
        .filter_map(|outage| Some((Time::ZERO + *outage.first()?, Time::ZERO + *outage.get(1)?)))
        .collect()
}

fn kernel(kernel: &Kernel) -> KernelPlan {
    use narrows_plan::{Datapath, Delayer, Forwarding, Tool};

    KernelPlan {
        forwarding: Some(match kernel.forwarding {
            model::Forwarding::Route => Forwarding::Route,
            model::Forwarding::Bridge => Forwarding::Bridge,
            model::Forwarding::Ovs => Forwarding::Ovs,
        }),
        datapath: kernel.datapath.map(|datapath| match datapath {
            model::Datapath::System => Datapath::System,
            model::Datapath::Netdev => Datapath::Netdev,
        }),
        interval: Some(kernel.interval),
        tool: Some(match kernel.tool {
            model::Tool::Own => Tool::Own,
            model::Tool::Iperf3 => Tool::Iperf3,
        }),
        delay: kernel.delay.map(|delay| match delay {
            model::Delayer::Relay => Delayer::Relay,
            model::Delayer::Netem => Delayer::Netem,
        }),
    }
}

/// Returns, for each link, the longest two-way propagation delay of the flows whose data crosses it.
fn rtts(graph: &Graph<'_>, paths: &[Path]) -> HashMap<usize, Span> {
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
fn path(scenario: &Scenario, graph: &mut Graph<'_>, entry: &Entry, flow: &FlowPlan) -> Result<Path> {
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

/// Returns the plan of a flow.
fn flow_plan(
    scenario: &Scenario,
    settings: &Settings<'_>,
    graph: &Graph<'_>,
    number: usize,
    entry: &Entry,
    name: String,
) -> Result<FlowPlan> {
    let (flow, key) = (&entry.flow, entry.key());
    let (from, to) = ends(graph, entry).map_err(|error| entry.misplaced(error))?;
    let duration = scenario.duration;
    if flow.start >= duration {
        let found = found_text(&format_duration(flow.start));
        let message = format!("found {found}, expected less than the duration");
        return Err(Error::new(message, format!("{key}.start")));
    }
    let spread = flow.spacing.as_nanos().saturating_mul(u64::from(flow.count) - 1);
    let last = flow.start + Span::from_nanos(spread);
    for (which, value, added) in
        [("spacing", flow.spacing, Span::ZERO), ("start_jitter", flow.start_jitter, flow.start_jitter)]
    {
        if last + added >= duration {
            let message = format!(
                "found {} (the last flow would start at {}), expected all to start within the duration",
                found_text(&format_duration(value)),
                format_duration(last + added)
            );
            return Err(Error::new(message, format!("{key}.{which}")));
        }
    }
    let transport = flow.transport.word();
    if flow.is_stack() && !settings.kernel.is_empty() {
        let message =
            format!("found {transport}, expected --on sim, because this stack runs only in the simulator");
        return Err(Error::new(message, format!("{key}.transport")));
    }
    let known = &settings.congestion_controllers;
    if let Some(cc) = stacks::catalogue_name(transport, &flow.cc.name)
        && !known.is_empty()
        && !known.iter().any(|name| name == cc)
    {
        return Err(Error::new(unknown_congestion(flow, settings), format!("{key}.cc")));
    }
    let return_path = return_path(graph, flow, (from, to), &key)?;
    Ok(FlowPlan {
        name,
        from: from as u32,
        to: to as u32,
        return_path,
        start: Time::ZERO + flow.start,
        stop: flow.stop.filter(|stop| *stop < duration).map(|stop| Time::ZERO + stop),
        count: flow.count,
        spacing: flow.spacing,
        start_jitter: flow.start_jitter,
        class: flow.class_,
        service: flow.service,
        transport: flows::transport(number, flow, duration, &key, scenario.folder(), settings)?,
        app: flows::app(flow, duration, &key)?,
    })
}

/// Returns the flow's sending and receiving nodes.
fn ends(graph: &Graph<'_>, entry: &Entry) -> Result<(usize, usize)> {
    let count = graph.endpoints.len().max(1);
    let (usual_from, usual_to) = graph.endpoints.get(entry.index % count).map(|(a, b)| (a, b)).unzip();
    let end = |given: &Option<String>, usual: Option<&String>, which: &str| {
        let key = entry.end(which);
        match given.as_ref().or(usual) {
            Some(name) => graph.end(name, &key),
            None => Err(Error::new("found nothing, expected a node", key)),
        }
    };
    let from = end(&entry.from, usual_from, "from")?;
    let to = end(&entry.to, usual_to, "to")?;
    if from == to {
        let name = graph.nodes.get(to).map_or("", String::as_str);
        let message = format!("found {}, expected another node than from", found_text(name));
        return Err(Error::new(message, entry.end("to")));
    }
    Ok((from, to))
}

fn return_path(
    graph: &Graph<'_>,
    flow: &Flow,
    (from, to): (usize, usize),
    key: &str,
) -> Result<Option<Vec<u32>>> {
    let Some(names) = &flow.return_path else { return Ok(None) };
    let nodes = names.iter().enumerate().map(|(j, name)| graph.node(name, &format!("{key}.return_path.{j}")));
    let nodes: Vec<usize> = nodes.collect::<Result<_>>()?;
    if nodes.first() != Some(&to) || nodes.last() != Some(&from) {
        let end = |name: Option<&String>| name.cloned().unwrap_or_default();
        let (first, last) = (end(names.first()), end(names.last()));
        let message =
            format!("found a path from {first} to {last}, expected nodes from the receiver to the sender");
        return Err(Error::new(message, format!("{key}.return_path")));
    }
    Ok(Some(indices(&nodes)))
}

/// Returns the message about an unknown congestion controller.
///
/// If a kernel offers the controllers, the message lists all names, because a kernel has few. Suggesting only the most similar
/// name (`bbr` for `bbr3`) would look like the correction of a typing error, although the simulator has both controllers.
fn unknown_congestion(flow: &Flow, settings: &Settings<'_>) -> String {
    let name = flow.cc.name.as_str();
    let (found, known) = (found_text(name), &settings.congestion_controllers);
    if !settings.kernel.is_empty() {
        if stacks::class_file(name).is_some() {
            return format!(
                "found {found}, expected --on sim, because Python classes run only in the simulator"
            );
        }
        return format!("found {found}, expected one that {} has: {}", settings.kernel, known.join(", "));
    }
    if let Some((owner, _)) = stacks::STACKS.iter().find(|(_, names)| names.contains(&name)) {
        return format!("found {found}, which is a controller of {owner}, expected one of Narrows");
    }
    let own = stacks::controllers(flow.transport.word()).iter().copied();
    let message =
        one_of(name, own.chain(known.iter().map(String::as_str)), "a congestion controller", "congestion");
    // These words end the message if no known name is similar.
    let is_listed = message.ends_with(" has them");
    if is_listed { message + " (FILE.py:CLASS is a controller of your own)" } else { message }
}
