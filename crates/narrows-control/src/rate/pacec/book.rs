//! The flows of the domain, their paths, and the destinations of future flows.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::fill::{Paths, UNBOUNDED};
use crate::rate::FlowIdentity;
use crate::units::{Rate, Span, Time};

/// Maximum number of destinations that are kept per ingress. Newcomers to other destinations begin at the floor.
const DESTINATIONS: usize = 1024;
/// A destination without flows is removed after this time.
const DESTINATION_KEPT: Span = Span::from_secs(60);

/// A flow.
#[derive(Copy, Clone, Debug)]
pub(super) struct Flow<K> {
    pub(super) key: K,
    /// The link of the flow's ingress, the port that sends the rate to the source.
    pub(super) ingress: u32,
    pub(super) path: u32,
    /// Demand, bytes/s; [`UNBOUNDED`] for a greedy flow.
    pub(super) demand: u64,
    /// The rate according to the last update, bytes/s.
    pub(super) granted: u64,
    /// The rate that was last sent to the flow's ingress, bytes/s, and the number of the period in which it was sent.
    pub(super) said: Option<u64>,
    pub(super) said_in: u64,
    /// The time of the flow's last announcement.
    heard: Time,
}

/// A destination of flows from an ingress.
#[derive(Copy, Clone, Debug)]
pub(super) struct Destination {
    pub(super) path: u32,
    /// The rate for newcomers that was last sent to the ingress.
    pub(super) said: Option<u64>,
    heard: Time,
}

/// The flows, paths and destinations of the domain.
#[derive(Debug)]
pub(super) struct Book<K: FlowIdentity> {
    flows: Vec<Flow<K>>,
    index: FxHashMap<K, usize>,
    most: usize,
    /// The paths, one for each route of the network. Paths are never removed.
    pub(super) paths: Paths,
    numbers: FxHashMap<Vec<u32>, u32>,
    /// The destinations, by link.
    pub(super) destinations: Vec<BTreeMap<K::Host, Destination>>,
    /// By link: whether a flow has begun on this link since the last update. Such a flow may have taken a part of the
    /// unallocated remainder.
    pub(super) begun: Vec<bool>,
}

impl<K: FlowIdentity> Book<K> {
    pub(super) fn new(links: usize, most: usize) -> Self {
        Book {
            flows: Vec::new(),
            index: FxHashMap::default(),
            most,
            paths: Paths::new(links),
            numbers: FxHashMap::default(),
            destinations: vec![BTreeMap::new(); links],
            begun: vec![false; links],
        }
    }

    /// Records a flow over the links `hops`. The flow begins, or is announced again, possibly with a new path.
    pub(super) fn announce(&mut self, now: Time, key: K, ingress: u32, hops: Vec<u32>, demand: Option<Rate>) {
        let demand = demand.map_or(UNBOUNDED, Rate::as_bytes_per_sec);
        let path = self.number(hops);
        let (known, full) = (self.index.get(&key).copied(), self.flows.len() >= self.most);
        match known.and_then(|at| self.flows.get_mut(at)) {
            Some(flow) => {
                if flow.ingress != ingress {
                    flow.said = None;
                }
                *flow = Flow { ingress, path, demand, heard: now, ..*flow };
            }
            None if !full => {
                self.index.insert(key, self.flows.len());
                self.flows.push(Flow {
                    key,
                    ingress,
                    path,
                    demand,
                    granted: 0,
                    said: None,
                    said_in: 0,
                    heard: now,
                });
                if let Some(begun) = self.begun.get_mut(ingress as usize) {
                    *begun = true;
                }
            }
            None => return,
        }
        let Some(destinations) = self.destinations.get_mut(ingress as usize) else { return };
        if let Some(known) = destinations.get_mut(&key.destination()) {
            (known.path, known.heard) = (path, now);
        } else if destinations.len() < DESTINATIONS {
            destinations.insert(key.destination(), Destination { path, said: None, heard: now });
        }
    }

    /// Removes a flow that began at this link and has ended.
    pub(super) fn end(&mut self, key: &K, ingress: u32) {
        if let Some(at) = self.index.get(key).copied()
            && self.flows.get(at).is_some_and(|flow| flow.ingress == ingress)
        {
            self.remove(at);
        }
    }

    /// Removes flows that were not announced for longer than `kept`.
    pub(super) fn expire(&mut self, now: Time, kept: Span) {
        for at in (0..self.flows.len()).rev() {
            if self.flows.get(at).is_some_and(|flow| now.since(flow.heard) > kept) {
                self.remove(at);
            }
        }
    }

    /// Removes destinations without flows.
    pub(super) fn expire_destinations(&mut self, now: Time) {
        for destinations in &mut self.destinations {
            destinations.retain(|_, destination| now.since(destination.heard) < DESTINATION_KEPT);
        }
    }

    pub(super) fn flows(&self) -> &[Flow<K>] {
        &self.flows
    }

    pub(super) fn flows_mut(&mut self) -> &mut [Flow<K>] {
        &mut self.flows
    }

    pub(super) fn get(&self, key: &K) -> Option<&Flow<K>> {
        self.index.get(key).and_then(|at| self.flows.get(*at))
    }

    fn remove(&mut self, at: usize) {
        let gone = self.flows.swap_remove(at);
        self.index.remove(&gone.key);
        if let Some(moved) = self.flows.get(at) {
            self.index.insert(moved.key, at);
        }
    }

    fn number(&mut self, hops: Vec<u32>) -> u32 {
        if let Some(number) = self.numbers.get(&hops) {
            return *number;
        }
        let number = self.paths.push(&hops);
        self.numbers.insert(hops, number);
        number
    }
}
