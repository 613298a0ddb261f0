//! Max-min fair rates across many links: progressive filling (PAC-18; Bertsekas and Gallager, *Data Networks*,
//! sec. 6.5.2).
//!
//! All rates rise together from the floor. A flow's rate stops rising at the flow's demand, or when a link on its path
//! is full. This link is the flow's bottleneck. The *level* of a link is the rate at which this link would be full if
//! it were the next link to fill. A link's level never falls when a flow stops at a rate below this level. So the heap
//! may contain outdated levels, which are updated when they reach the top. Rates are whole bytes/s, and levels are
//! rounded down. So the rates on a link exceed its capacity only if the floors alone exceed it.
//!
//! The cost is O(claims * (log claims + hops) + stops * log links). A change of one link often affects most of the
//! network, so every run starts again from the floor. The sorted lists (claims by path, paths by link, demands by size)
//! are reused if the paths are unchanged and at most a few demands have changed. If the capacities and all demands are
//! unchanged, the rates of the last run are reused (`benches/pacec.rs`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use crate::rate::kit::waterfill::UNBOUNDED;

/// If more than this many demands have changed, the list is sorted again. Otherwise each changed demand is moved to its
/// new place in the list.
const FEW: usize = 16;

/// Paths by number, each with its links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    links: usize,
    ends: Vec<usize>,
    hops: Vec<u32>,
}

impl Paths {
    /// Creates an empty set of paths over links 0 to `links` - 1.
    pub fn new(links: usize) -> Self {
        Paths { links, ..Paths::default() }
    }

    /// Adds a path and returns its number. Links that are repeated or unknown are ignored.
    pub fn push(&mut self, path: &[u32]) -> u32 {
        let start = self.hops.len();
        for link in path {
            if (*link as usize) < self.links && !self.hops.iter().skip(start).any(|hop| hop == link) {
                self.hops.push(*link);
            }
        }
        self.ends.push(self.hops.len());
        (self.ends.len() - 1) as u32
    }

    /// Returns the links of a path; none for an unknown path.
    pub fn get(&self, path: u32) -> &[u32] {
        let path = path as usize;
        let start = path.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(path).and_then(|end| self.hops.get(start..*end)).unwrap_or(&[])
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// The demand of the flows of one path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The path of the flows.
    pub path: u32,
    /// Demand of each flow, bytes/s; [`UNBOUNDED`] if the flows are greedy.
    pub demand: u64,
    /// Number of flows.
    pub flows: u64,
}

/// Lists of numbers, one list per group.
#[derive(Debug, Default)]
struct Groups {
    /// The start of each group in `items`, and the end of the last group.
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Groups {
    /// Builds the groups from pairs (group, number), by a counting sort. Every group number is below `groups`.
    fn build(&mut self, groups: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) {
        self.starts.clear();
        self.starts.resize(groups + 1, 0);
        let mut total = 0;
        for (group, _) in pairs.clone() {
            self.starts[group as usize] += 1;
            total += 1;
        }
        let mut end = 0;
        for start in &mut self.starts {
            end += *start;
            *start = end;
        }
        self.items.clear();
        self.items.resize(total, 0);
        for (group, item) in pairs {
            let start = &mut self.starts[group as usize];
            *start -= 1;
            self.items[*start as usize] = item;
        }
    }

    fn get(&self, group: u32) -> &[u32] {
        let group = group as usize;
        &self.items[self.starts[group] as usize..self.starts[group + 1] as usize]
    }
}

/// The state of a run, in which the level rises step by step.
#[derive(Debug, Default)]
struct Progress {
    least: u64,
    /// Unallocated capacity, and number of flows that have not stopped, by link.
    left: Vec<u64>,
    open: Vec<u64>,
    /// Rate of each claim's flows, and whether they have stopped, by claim.
    rates: Vec<u64>,
    stopped: Vec<bool>,
}

impl Progress {
    fn level(&self, link: u32) -> Option<u64> {
        self.left[link as usize].checked_div(self.open[link as usize]).map(|level| level.max(self.least))
    }

    fn stop(&mut self, at: u32, claim: &Claim, hops: &[u32], rate: u64) {
        let at = at as usize;
        if core::mem::replace(&mut self.stopped[at], true) {
            return;
        }
        self.rates[at] = rate;
        let taken = rate.saturating_mul(claim.flows);
        for link in hops {
            let (left, open) = (&mut self.left[*link as usize], &mut self.open[*link as usize]);
            // The subtractions saturate only if floors exceed the capacity.
            *left = left.saturating_sub(taken);
            *open = open.saturating_sub(claim.flows);
        }
    }
}

/// The claims of the last run.
#[derive(Debug, Default)]
struct Asked {
    capacities: Vec<u64>,
    paths: Paths,
    claims: Vec<Claim>,
    least: u64,
}

impl Asked {
    /// Returns the claims with changed demands, or `None` if more than [`FEW`] demands have changed or if the paths
    /// have changed.
    fn changed(&self, paths: &Paths, claims: &[Claim], least: u64) -> Option<Vec<u32>> {
        if self.least != least || self.claims.len() != claims.len() || self.paths != *paths {
            return None;
        }
        let pairs = self.claims.iter().zip(claims).enumerate();
        let changed: Vec<u32> =
            pairs.filter(|(_, (old, new))| old != new).map(|(at, _)| at as u32).take(FEW + 1).collect();
        let stays = |at: &u32| self.claims[*at as usize].path == claims[*at as usize].path;
        (changed.len() <= FEW && changed.iter().all(stays)).then_some(changed)
    }
}

/// Returns the demand and the index of a claim, if the demand limits the claim's flows.
fn bound(claim: &Claim, at: u32, least: u64) -> Option<(u64, u32)> {
    (claim.demand != UNBOUNDED).then(|| (claim.demand.max(least), at))
}

/// The filling algorithm with its buffers.
#[derive(Debug, Default)]
pub struct Filler {
    asked: Asked,
    progress: Progress,
    /// Number of flows, by link.
    flows_on: Vec<u64>,
    paths_of: Groups,
    claims_of: Groups,
    /// Claims whose flows stop at their demand.
    bounded: Vec<(u64, u32)>,
    /// Pairs of a level and the number of its link. Some levels are outdated and too low.
    levels: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Filler {
    /// Divides `capacities` (bytes/s by link; a link without an entry has no limit). No flow gets less than `least`.
    /// The sum of the rates on a link is at most the capacity, or at most the sum of the floors if this is larger.
    pub fn fill(&mut self, capacities: &[u64], paths: &Paths, claims: &[Claim], least: u64) {
        match self.asked.changed(paths, claims, least) {
            Some(changed) if changed.is_empty() && self.asked.capacities == capacities => return,
            Some(changed) => self.put_few_in_order(&changed, paths, claims),
            None => self.put_in_order(paths, claims, least),
        }
        self.asked.capacities.clear();
        self.asked.capacities.extend_from_slice(capacities);
        self.begin(capacities, paths, claims, least);
        let mut bounded = self.bounded.iter().copied().peekable();
        while let Some(Reverse((level, link))) = self.levels.peek().copied() {
            // No link becomes full below `level`, so all demands up to `level` are satisfied.
            if let Some((demand, at)) = bounded.next_if(|(demand, _)| *demand <= level) {
                let claim = &claims[at as usize];
                self.progress.stop(at, claim, paths.get(claim.path), demand);
                continue;
            }
            self.levels.pop();
            let Some(now) = self.progress.level(link) else { continue };
            if now > level {
                self.levels.push(Reverse((now, link)));
                continue;
            }
            for path in self.paths_of.get(link) {
                for at in self.claims_of.get(*path) {
                    self.progress.stop(*at, &claims[*at as usize], paths.get(*path), level);
                }
            }
        }
        // No link limits the remaining flows.
        for (at, claim) in claims.iter().enumerate() {
            if !self.progress.stopped[at] {
                self.progress.rates[at] = claim.demand.max(least);
            }
        }
    }

    /// Moves claims with changed demands to their new places in the sorted list. Their groups do not change.
    fn put_few_in_order(&mut self, changed: &[u32], paths: &Paths, claims: &[Claim]) {
        for at in changed {
            let (old, new) = (self.asked.claims[*at as usize], claims[*at as usize]);
            if let Some(old) = bound(&old, *at, self.asked.least)
                && let Ok(place) = self.bounded.binary_search(&old)
            {
                self.bounded.remove(place);
            }
            if let Some(new) = bound(&new, *at, self.asked.least)
                && let Err(place) = self.bounded.binary_search(&new)
            {
                self.bounded.insert(place, new);
            }
            self.asked.claims[*at as usize] = new;
        }
        if !changed.is_empty() {
            self.count_flows(paths, claims);
        }
    }

    fn put_in_order(&mut self, paths: &Paths, claims: &[Claim], least: u64) {
        let routed = claims.iter().enumerate().filter(|(_, claim)| (claim.path as usize) < paths.len());
        self.claims_of.build(paths.len(), routed.map(|(at, claim)| (claim.path, at as u32)));
        let claims_of = &self.claims_of;
        let used = (0..paths.len() as u32).filter(|path| !claims_of.get(*path).is_empty());
        let hops = used.flat_map(|path| paths.get(path).iter().map(move |link| (*link, path)));
        self.paths_of.build(paths.links, hops);
        self.bounded.clear();
        self.bounded
            .extend(claims.iter().enumerate().filter_map(|(at, claim)| bound(claim, at as u32, least)));
        self.bounded.sort_unstable();
        self.count_flows(paths, claims);
        self.asked.least = least;
        self.asked.claims.clear();
        self.asked.claims.extend_from_slice(claims);
        if self.asked.paths != *paths {
            self.asked.paths.clone_from(paths);
        }
    }

    fn count_flows(&mut self, paths: &Paths, claims: &[Claim]) {
        self.flows_on.clear();
        self.flows_on.resize(paths.links, 0);
        for claim in claims {
            for link in paths.get(claim.path) {
                let flows = &mut self.flows_on[*link as usize];
                *flows = flows.saturating_add(claim.flows);
            }
        }
    }

    fn begin(&mut self, capacities: &[u64], paths: &Paths, claims: &[Claim], least: u64) {
        let progress = &mut self.progress;
        progress.least = least;
        progress.left.clear();
        progress.left.extend(capacities.iter().take(paths.links));
        progress.left.resize(paths.links, UNBOUNDED);
        progress.open.clear();
        progress.open.extend_from_slice(&self.flows_on);
        progress.rates.clear();
        progress.rates.resize(claims.len(), 0);
        progress.stopped.clear();
        progress.stopped.resize(claims.len(), false);
        self.levels.clear();
        let levels = (0..paths.links as u32).filter_map(|link| Some(Reverse((progress.level(link)?, link))));
        self.levels.extend(levels);
    }

    /// Returns the rate of each flow of each claim of the last [`fill`](Filler::fill), bytes/s.
    pub fn rates(&self) -> &[u64] {
        &self.progress.rates
    }

    /// Returns the rate that an additional flow on this path could get without reducing other rates, bytes/s. On a full
    /// link, only the rounding remainder is left, which is less than one byte/s per flow.
    pub fn spare(&self, hops: &[u32]) -> u64 {
        let left = |link: &u32| self.progress.left.get(*link as usize).copied();
        hops.iter().filter_map(left).min().unwrap_or(UNBOUNDED)
    }
}

#[cfg(test)]
#[path = "fill_tests.rs"]
mod tests;
