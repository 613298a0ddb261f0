//! Converts a scenario into the plan that a backend runs. In a plan, indices replace names, and defaults are explicit.
//!
//! | module | idea |
//! | --- | --- |
//! | `entries`, `patterns`, `demands` | the flows that entries of `[[flows]]` stand for |
//! | `layout`, `graph`, `traces` | the network: nodes, directed links, capacities |
//! | `routes`, `paths` | the paths of flows |
//! | `flows`, `parameters` | flows with their transports and applications, and parameters in base units |
//! | `links`, `buffers` | links with their queues, and the receive buffer |
//! | `triggers` | changes at the beginning of phases |
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
mod paths;
mod patterns;
mod random;
mod routes;
mod traces;
mod triggers;

use std::collections::HashSet;

use indexmap::IndexMap;
use narrows_control::catalogue::Catalogue;
use narrows_control::parameter::{Parameter, Value as BaseValue, Values};
use narrows_control::rate::registry;
use narrows_control::units::Time;
use narrows_plan::{
    CapturePlan, ControllerPlan, FlowPlan, KernelPlan, Plan, ProbePlan, SdnPlan, TransportPlan,
};

pub use self::buffers::DEFAULT as DEFAULT_RECEIVE_BUFFER;
pub(crate) use self::entries::SNDLIB;
use self::entries::{Entry, Published};
pub use self::flows::FIRST_PORT;
use self::graph::Graph;
pub use self::layout::{ACCESS_FACTOR, HOST};
use self::links::Crossing;
use self::parameters::Known;
pub(crate) use self::parameters::file_of;
use self::paths::Path;
pub use self::paths::plan_paths;
use crate::error::{Error, Result, found_text, hint, one_of};
use crate::files::{Files, NoFiles};
use crate::model::flow::result_names;
use crate::model::queue::TXQUEUELEN;
use crate::model::{self, Capture, Kernel, MAX_FLOWS, RateController, ReceiveBuffer};
use crate::scenario::Scenario;
use crate::units::{BitRate, Span, format_duration};
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

/// The name, definition and default of each parameter of a controller.
type Defaults = Vec<(String, &'static Parameter, BaseValue)>;

/// The surroundings in which a scenario is resolved.
#[derive(Clone)]
pub struct Settings<'a> {
    /// The catalogue, with the parameters of congestion controllers and with rate controllers of other crates.
    pub catalogue: &'a Catalogue,
    /// Names that `cc` may take. If the list is empty, names are not checked.
    pub congestion_controllers: Vec<String>,
    /// Names that a rate controller's `kind` may take. If the list is empty, `kind` may name any rate controller of the
    /// catalogue.
    pub rate_controllers: Vec<String>,
    /// If a kernel offers these congestion controllers, the name of this kernel in messages. If the text is empty, the
    /// simulator offers them.
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

    /// Returns all rate controllers, each with the names, definitions and defaults of its parameters.
    pub(crate) fn rate_defaults(&self) -> Vec<(&'static str, Defaults)> {
        let own = registry::all().iter().map(|entry| {
            let parameters =
                entry.defaults(&Values::new()).map(|(p, default)| (p.name.to_owned(), p, default));
            (entry.name, parameters.collect())
        });
        let added = self.catalogue.rate_controllers().iter();
        own.chain(added.map(|entry| (entry.name, entry.parameters().collect()))).collect()
    }

    /// Returns the parameters of a rate controller, or `None` if the catalogue has no such rate controller.
    pub(crate) fn rate_parameters(&self, kind: &str) -> Option<Known> {
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

/// The properties of a network that drawings and tables show, in addition to the plan.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// For each directed link, its rate at the start, or the mean rate of its trace.
    pub rates: Vec<BitRate>,
    /// For each directed link, its propagation delay at the start.
    pub delays: Vec<Span>,
    /// Positions of the nodes of a published network: longitude and latitude, or coordinates in a plane with y upwards.
    pub positions: IndexMap<String, (f64, f64)>,
    /// Whether positions are degrees.
    pub is_geographic: bool,
    /// The nodes that a published network declares to be hosts, and the hosts of its switches.
    pub hosts: HashSet<String>,
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
    /// The rest of the network.
    pub picture: Picture,
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

/// Returns the flows of a scenario, with all entries expanded.
///
/// # Errors
/// Returns an error if an entry does not define its flows.
pub(crate) fn starts(scenario: &Scenario, settings: &Settings<'_>) -> Result<Vec<model::Flow>> {
    let published = Published::of(scenario, settings.files);
    let entries = entries::entries(scenario, &published, settings.files)?;
    Ok(entries.into_iter().map(|entry| entry.flow).collect())
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
            flows.push(flows::flow(scenario, settings, &graph, i, entry, name)?);
        }
        let mut paths = Vec::with_capacity(entries.len());
        for (entry, flow) in entries.iter().zip(&flows) {
            paths.push(paths::path(scenario, &mut graph, entry, flow)?);
        }
        let packets = fitting::largest_packets(&entries, &paths);
        let rtts = paths::rtts(&graph, &paths);
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
        let picture = Picture {
            rates: self.graph.links.iter().map(graph::Direction::rate).collect(),
            delays: self.graph.links.iter().map(graph::Direction::delay).collect(),
            ..self.graph.picture.clone()
        };
        let warmup = self.warmup()?;
        let receive_buffer = match scenario.receive_buffer {
            Some(ReceiveBuffer::Size(size)) => size,
            Some(ReceiveBuffer::Auto) | None => buffers::receive_buffer(&links, &self.paths),
        };
        let with_controllers: Vec<u32> = rate_controllers.iter().map(|controller| controller.link).collect();
        let probes = self.probes(&with_controllers, total)?;
        let capture = scenario.capture.as_ref().map(|capture| self.capture(capture)).transpose()?;
        let triggers = triggers::triggers(&self.graph, &self.entries, &self.flows, &self.settings.kernel)?;
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
            triggers,
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
            picture,
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

    /// Returns the rate controllers, at most one for each link, each with the number of its entry. An entry can define
    /// several rate controllers.
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
                    "found {} ({samples} samples), expected an interval that gives at most {MAX_SAMPLES} samples (0 \
                     gives none)",
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
    use narrows_plan::{Datapath, Delayer, Forwarding, HostQueue, Tool};

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
        host_queue: Some(match kernel.host_queue {
            model::HostQueue::Fifo => HostQueue::Fifo,
            model::HostQueue::Fq => HostQueue::Fq,
        }),
    }
}
