//! The network of a scenario: nodes and directed links by index and by name, and the routes over them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use indexmap::IndexMap;

use super::Picture;
use super::entries::Published;
use super::layout::{self, Draft};
use super::patterns::matches;
use super::routes::Routes;
use super::traces::{self, Capacity};
use crate::error::{Error, Result, found_text, hint};
use crate::files::Files;
use crate::model::network::{Change, Traits};
use crate::model::{MAX_LINKS, Named, RateController, Topology, Trace};
use crate::scenario::Scenario;
use crate::topology::{Facts, islands};
use crate::units::{BitRate, Span};

/// Maximum number of nodes.
const MAX_NODES: usize = 65_535;

/// One direction of a link.
#[derive(Debug)]
pub(super) struct Direction {
    /// Name of the link in results.
    pub(super) name: String,
    pub(super) from: usize,
    pub(super) to: usize,
    /// Properties of this direction of the link.
    pub(super) traits: Traits,
    /// Trace of the link's capacity, if it has one.
    pub(super) capacity: Option<Rc<Capacity>>,
    /// Key of the link in the scenario.
    pub(super) key: String,
    /// Whether the queue is that of the other direction.
    pub(super) inherits_queue: bool,
}

impl Direction {
    /// Returns the rate at the start, or the mean rate of a trace.
    pub(super) fn rate(&self) -> BitRate {
        self.capacity.as_ref().map_or(self.traits.rate.unwrap_or_default(), |capacity| capacity.mean)
    }

    /// Returns the propagation delay at the start.
    pub(super) fn delay(&self) -> Span {
        self.traits.delay.unwrap_or_default()
    }
}

/// Nodes, directed links and their names.
pub(super) struct Graph<'s> {
    files: &'s dyn Files,
    folder: &'s str,
    pub(super) nodes: Vec<String>,
    pub(super) links: Vec<Direction>,
    /// Default pairs of ends of flows.
    pub(super) endpoints: Vec<(String, String)>,
    /// Names of the intended bottlenecks.
    pub(super) bottlenecks: Vec<String>,
    /// For each end of a flow that is a switch of a published network, the name of its host.
    hosts: IndexMap<String, String>,
    /// The links that match `*`, in a published network.
    core: Vec<usize>,
    index: HashMap<String, usize>,
    by_name: IndexMap<String, usize>,
    read: Vec<(Trace, Rc<Capacity>)>,
    routes: Routes,
    pub(super) picture: Picture,
}

impl<'s> Graph<'s> {
    /// Creates the network of a scenario. If one of `ends` is a switch of a published network, it gets a host.
    ///
    /// # Errors
    /// Returns an error if nodes and links contradict each other.
    pub(super) fn new<'e>(
        scenario: &'s Scenario,
        published: &Published,
        ends: impl Iterator<Item = &'e str>,
        files: &'s dyn Files,
    ) -> Result<Self> {
        let mut graph = Graph {
            files,
            folder: scenario.folder(),
            nodes: Vec::new(),
            links: Vec::new(),
            endpoints: Vec::new(),
            bottlenecks: Vec::new(),
            hosts: IndexMap::new(),
            core: Vec::new(),
            index: HashMap::new(),
            by_name: IndexMap::new(),
            read: Vec::new(),
            routes: Routes::default(),
            picture: Picture::default(),
        };
        for (i, node) in scenario.nodes.iter().enumerate() {
            if graph.index.contains_key(&node.name) {
                let message = format!("found {} again, expected another name", found_text(&node.name));
                return Err(Error::new(message, format!("nodes.{i}.name")));
            }
            graph.add_node(&node.name);
        }
        let mut links: Vec<(String, Draft)> = Vec::new();
        match &scenario.topology {
            Some(Topology::Named(named)) => {
                if let Some(facts) = published.get()? {
                    let published = graph.published(named, facts, ends)?;
                    links.extend(published.into_iter().map(|link| ("topology".to_owned(), link)));
                }
            }
            Some(topology) => {
                let peak = match topology.traits() {
                    Some(traits) => graph.capacity(traits, "topology")?.map(|capacity| capacity.peak),
                    None => None,
                };
                if let Some(layout) = layout::layout(topology, scenario.flows.len(), peak) {
                    (graph.endpoints, graph.bottlenecks) = (layout.endpoints, layout.bottlenecks);
                    links.extend(layout.links.into_iter().map(|link| ("topology".to_owned(), link)));
                }
            }
            None => {}
        }
        links.extend(
            scenario.links.iter().enumerate().map(|(i, link)| (format!("links.{i}"), Draft::of(link))),
        );
        if links.is_empty() {
            return Err(Error::new("found no links, expected a [topology] or [[links]]", "links"));
        }
        if 2 * links.len() > MAX_LINKS {
            let message = format!("found {} links, expected at most {}", links.len(), MAX_LINKS / 2);
            return Err(Error::new(message, "links"));
        }
        for (key, link) in links {
            graph.add_link(key, link)?;
        }
        if graph.nodes.len() > MAX_NODES {
            let message = format!("found {} nodes, expected at most {MAX_NODES}", graph.nodes.len());
            return Err(Error::new(message, "nodes"));
        }
        if let (Some(Topology::Named(named)), Some(facts)) = (&scenario.topology, published.get()?) {
            graph.check_whole(named, facts)?;
        }
        let ways: Vec<_> =
            graph.links.iter().map(|link| (link.from, link.to, link.delay().as_nanos())).collect();
        graph.routes = Routes::new(graph.nodes.len(), &ways);
        Ok(graph)
    }

    /// Returns the index of a flow's end. If `name` is a switch of a published network, the end is the switch's host.
    pub(super) fn end(&self, name: &str, key: &str) -> Result<usize> {
        self.node(self.hosts.get(name).map_or(name, String::as_str), key)
    }

    /// Returns the index of a node.
    pub(super) fn node(&self, name: &str, key: &str) -> Result<usize> {
        self.index.get(name).copied().ok_or_else(|| {
            let near = hint(name, self.nodes.iter().map(String::as_str));
            Error::new(format!("found {}, expected a node{near}", found_text(name)), key)
        })
    }

    /// Returns the index of a directed link by its name, `A->B` or `A-B`.
    pub(super) fn link(&self, name: &str, key: &str) -> Result<usize> {
        self.by_name.get(name).copied().ok_or_else(|| self.unknown_link(name, "a link", true, key))
    }

    fn unknown_link(&self, name: &str, what: &str, has_hint: bool, key: &str) -> Error {
        let names = self.links.iter().map(|link| link.name.as_str()).filter(|_| has_hint);
        Error::new(format!("found {}, expected {what}{}", found_text(name), hint(name, names)), key)
    }

    /// Returns the links that match `*`.
    ///
    /// In a published network, these are the links from its switches to other nodes of the network. In other
    /// topologies, they are the links between nodes with more than one neighbour.
    fn core(&self) -> Vec<usize> {
        if !self.core.is_empty() {
            return self.core.clone();
        }
        let mut near: HashMap<usize, HashSet<usize>> = HashMap::new();
        for link in &self.links {
            near.entry(link.from).or_default().insert(link.to);
        }
        let has_several = |node: &usize| near.get(node).is_some_and(|others| others.len() > 1);
        let links = self.links.iter().enumerate();
        links.filter(|(_, link)| has_several(&link.from) && has_several(&link.to)).map(|(i, _)| i).collect()
    }

    /// Returns the links of a rate controller, each with the key in the scenario that names it.
    pub(super) fn controlled(&self, controller: &RateController, key: &str) -> Result<Vec<(usize, String)>> {
        let mut links = Vec::new();
        for (name, place) in controller.named() {
            let place = format!("{key}.{place}");
            links.extend(self.matching(name, &place)?.into_iter().map(|index| (index, place.clone())));
        }
        Ok(links)
    }

    fn matching(&self, name: &str, key: &str) -> Result<Vec<usize>> {
        if self.by_name.contains_key(name) || !name.contains(['*', '?']) {
            return Ok(vec![self.link(name, key)?]);
        }
        if name == "*" {
            let core = self.core();
            let what = "a link between two nodes that have more than one neighbour";
            return if core.is_empty() { Err(self.unknown_link(name, what, false, key)) } else { Ok(core) };
        }
        let fitting: BTreeSet<usize> =
            self.by_name.iter().filter(|(other, _)| matches(name, other)).map(|(_, index)| *index).collect();
        let in_core: Vec<usize> = self.core().into_iter().filter(|index| fitting.contains(index)).collect();
        let matching: Vec<usize> = if in_core.is_empty() { fitting.into_iter().collect() } else { in_core };
        if matching.is_empty() { Err(self.unknown_link(name, "a link", true, key)) } else { Ok(matching) }
    }

    /// Returns the links of a published network and of its hosts.
    fn published<'e>(
        &mut self,
        named: &Named,
        facts: &Facts,
        ends: impl Iterator<Item = &'e str>,
    ) -> Result<Vec<Draft>> {
        facts.nodes.iter().for_each(|name| {
            self.add_node(name);
        });
        let mut links = layout::published_links(named, facts)?;
        let (hosts, access) = layout::published_hosts(named, facts, ends, &links);
        self.picture.hosts = facts.hosts.iter().chain(hosts.values()).cloned().collect();
        self.picture.positions = facts.positions.clone();
        self.picture.is_geographic = facts.is_geographic;
        self.hosts = hosts;
        self.endpoints = facts.endpoints.clone();
        self.bottlenecks =
            layout::published_core(facts).into_iter().map(|(a, b)| format!("{a}->{b}")).collect();
        links.extend(access);
        Ok(links)
    }

    /// Checks that a published network is connected. Links of the table `[[links]]` may connect its parts.
    fn check_whole(&mut self, named: &Named, facts: &Facts) -> Result<()> {
        let core: BTreeSet<usize> =
            self.bottlenecks.iter().filter_map(|name| self.by_name.get(name)).copied().collect();
        self.core = core.into_iter().collect();
        let name = |node: usize| self.nodes.get(node).map_or("", String::as_str);
        let pairs: Vec<(&str, &str)> =
            self.links.iter().map(|link| (name(link.from), name(link.to))).collect();
        let published: HashSet<&str> = facts.nodes.iter().map(String::as_str).collect();
        let parts: Vec<Vec<&str>> = islands(&self.nodes, &pairs)
            .into_iter()
            .filter(|part| part.iter().any(|node| published.contains(node)))
            .collect();
        let [first, second, ..] = parts.as_slice() else { return Ok(()) };
        let shown = |part: &[&str]| {
            let more = if part.len() > 3 { ", ..." } else { "" };
            format!("{}{more}", part[..part.len().min(3)].join(", "))
        };
        let message = format!(
            "found {} islands in {} ({}; {}), expected one; [[links]] may join them",
            parts.len(),
            found_text(&named.name),
            shown(first),
            shown(second)
        );
        Err(Error::new(message, "topology.name"))
    }

    /// Returns the links of the shortest path from one node to another, in order, or `None` if there is no path.
    pub(super) fn route(&mut self, from: usize, to: usize) -> Option<Vec<usize>> {
        self.routes.between(from, to)
    }

    /// Returns the links of all shortest paths from one node to another (ECMP).
    pub(super) fn equal(&mut self, from: usize, to: usize) -> BTreeSet<usize> {
        self.routes.equal(from, to)
    }

    /// Returns the link from a node to its neighbour, or `None` if `to` is not a neighbour.
    pub(super) fn hop(&self, from: usize, to: usize) -> Option<usize> {
        self.routes.hop(from, to)
    }

    fn add_node(&mut self, name: &str) -> usize {
        if let Some(index) = self.index.get(name) {
            return *index;
        }
        let index = self.nodes.len();
        self.nodes.push(name.to_owned());
        self.index.insert(name.to_owned(), index);
        index
    }

    /// Returns the capacity of a link that has a trace. Each trace is read once.
    fn capacity(&mut self, traits: &Traits, key: &str) -> Result<Option<Rc<Capacity>>> {
        let Some(trace) = &traits.trace else { return Ok(None) };
        if let Some((_, capacity)) = self.read.iter().find(|(known, _)| known == trace) {
            return Ok(Some(Rc::clone(capacity)));
        }
        let capacity = traces::read(trace, self.folder, self.files).map_err(|error| {
            // If the error has a source, it already names the trace's file and line.
            if error.source.is_empty() { error.at(&format!("{key}.trace")) } else { error }
        })?;
        self.read.push((trace.clone(), Rc::clone(&capacity)));
        Ok(Some(capacity))
    }

    fn add_link(&mut self, key: String, link: Draft) -> Result<()> {
        let (a, b) = &link.between;
        if a == b {
            let message = format!("found {} twice, expected two nodes", found_text(a));
            return Err(Error::new(message, format!("{key}.between")));
        }
        let (from, to) = (self.add_node(a), self.add_node(b));
        let capacity = self.capacity(&link.traits, &key)?;
        if capacity.is_none() && link.traits.rate.is_none() {
            let message = "found neither `rate` nor `trace`, expected one of them";
            return Err(Error::new(message, format!("{key}.rate")));
        }
        if capacity.is_some() && link.traits.at.iter().any(|change| change.rate.is_some()) {
            return Err(Error::new("found a rate, expected none with a trace", format!("{key}.at")));
        }
        let (there, and_back) = (format!("{a}->{b}"), format!("{b}->{a}"));
        let (forth, back) = match &link.name {
            Some(name) => (name.clone(), format!("{name}.back")),
            None => (there.clone(), and_back.clone()),
        };
        let reverse = way_back(&link, capacity.as_deref());
        let inherits_queue = !link.back.as_ref().is_some_and(|back| back.sets("queue"));
        let reverse_key = format!("{key}.back");
        let (short, short_back) = (format!("{a}-{b}"), format!("{b}-{a}"));
        let forward =
            Direction { name: forth, from, to, traits: link.traits, capacity, key, inherits_queue: false };
        self.add_direction(forward, [there, short])?;
        let capacity = self.capacity(&reverse, &reverse_key)?;
        let direction = Direction {
            name: back,
            from: to,
            to: from,
            traits: reverse,
            capacity,
            key: reverse_key,
            inherits_queue,
        };
        self.add_direction(direction, [and_back, short_back])
    }

    fn add_direction(&mut self, direction: Direction, also: [String; 2]) -> Result<()> {
        let index = self.links.len();
        if self.by_name.contains_key(&direction.name) {
            let message = format!("found {} again, expected another name", found_text(&direction.name));
            return Err(Error::new(message, format!("{}.name", direction.key)));
        }
        self.by_name.insert(direction.name.clone(), index);
        for name in also {
            self.by_name.entry(name).or_insert(index);
        }
        self.links.push(direction);
        Ok(())
    }
}

/// Returns the properties of the reverse direction.
///
/// The reverse direction has the rate, delay and queue of the forward direction, and the same changes of rate and
/// delay. If the forward direction has a trace, the rate is the mean rate of the trace. `back` overrides these
/// properties.
fn way_back(link: &Draft, capacity: Option<&Capacity>) -> Traits {
    let forward = &link.traits;
    let changes = forward.at.iter().map(|change| Change { loss: None, jitter: None, ..change.clone() });
    let mut shared = Traits {
        rate: capacity.map_or(forward.rate, |capacity| Some(capacity.mean)),
        delay: forward.delay,
        queue: forward.queue.clone(),
        loss: None,
        jitter: None,
        duplicate: 0.0,
        policer: None,
        aggregation: None,
        trace: None,
        at: changes.collect(),
        given: Default::default(),
    };
    let Some(own) = &link.back else { return shared };
    macro_rules! take {
        ($($key:ident),*) => {$( if own.sets(stringify!($key)) { shared.$key = own.$key.clone(); } )*};
    }
    take!(rate, delay, queue, loss, jitter, duplicate, policer, aggregation, trace, at);
    if own.trace.is_some() {
        shared.rate = own.rate;
    }
    shared
}
