//! Max-min fair rates across many links: progressive filling (PAC-18; Bertsekas and Gallager, *Data Networks*, sec. 6.5.2).
//!
//! The rate of all flows rises together from the floor. A flow stops at its demand, or when one of its links is full; that
//! link is its bottleneck. The *level* of a link is what an open flow would get if it were the next link to be full. It
//! never falls while others stop below it, so a heap of levels may hold old ones: they are brought up to date when they come
//! up. Rates are whole bytes/s and levels are rounded down, so that the sum on a link exceeds its capacity only where the
//! floors alone do.
//!
//! O(claims * (log claims + hops) + stops * log links). What depends on a changed link is often most of the network, so the
//! level rises from the floor every time. What it needs in order (claims by path, paths by link, demands by size) stays from
//! the last time where claims and paths are the same, or few claims ask for other amounts; where capacities are the same,
//! too, the rates stand (`benches/pacec.rs`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use crate::rate::waterfill::UNBOUNDED;

/// Claims that may ask for something else before everything is put in order anew: each costs a move in a sorted list.
const FEW: usize = 16;

/// Paths by number, each the links that it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    links: usize,
    ends: Vec<usize>,
    hops: Vec<u32>,
}

impl Paths {
    /// Paths over links 0 to `links` - 1.
    pub fn new(links: usize) -> Self {
        Paths { links, ..Paths::default() }
    }

    /// The number of a further path. A link counts once, and one that there is not does not count.
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

    /// The links of a path; none for a path that there is not.
    pub fn get(&self, path: u32) -> &[u32] {
        let path = path as usize;
        let start = path.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(path).and_then(|end| self.hops.get(start..*end)).unwrap_or(&[])
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// What flows of one path and one demand ask for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Their path.
    pub path: u32,
    /// What each can use, bytes/s; [`UNBOUNDED`]: anything.
    pub demand: u64,
    /// How many they are.
    pub flows: u64,
}

/// Numbers in groups.
#[derive(Debug, Default)]
struct Groups {
    /// Where each group begins in `items`, and after the last where that ends.
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Groups {
    /// From (group, number) with groups below `groups`: a counting sort.
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

/// What is known while the level rises.
#[derive(Debug, Default)]
struct Progress {
    least: u64,
    /// By link: capacity that nobody has yet, and flows that have not stopped.
    left: Vec<u64>,
    open: Vec<u64>,
    /// By claim.
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
            // Both are exact but where floors exceed the capacity.
            *left = left.saturating_sub(taken);
            *open = open.saturating_sub(claim.flows);
        }
    }
}

/// What was asked for last.
#[derive(Debug, Default)]
struct Asked {
    capacities: Vec<u64>,
    paths: Paths,
    claims: Vec<Claim>,
    least: u64,
}

impl Asked {
    /// The claims that are not as they were; `None` if these are more than a few, or stand elsewhere.
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

/// The demand of a claim with its number, if it has a bound by demand.
fn bound(claim: &Claim, at: u32, least: u64) -> Option<(u64, u32)> {
    (claim.demand != UNBOUNDED).then(|| (claim.demand.max(least), at))
}

/// The filling, with the room that it works in.
#[derive(Debug, Default)]
pub struct Filler {
    asked: Asked,
    progress: Progress,
    /// By link: flows on it.
    flows_on: Vec<u64>,
    paths_of: Groups,
    claims_of: Groups,
    /// Claims with a bound by demand.
    bounded: Vec<(u64, u32)>,
    /// Level and number of links, some levels too low.
    levels: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Filler {
    /// Shares out `capacities` (bytes/s by link; a link without one has no limit). Nobody gets less than `least`: on every
    /// link the sum is at most the capacity, or `least` for each where that is more.
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
            // No link is full before `level`, so what asks for less has it.
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
        // Who is still open has no link that limits.
        for (at, claim) in claims.iter().enumerate() {
            if !self.progress.stopped[at] {
                self.progress.rates[at] = claim.demand.max(least);
            }
        }
    }

    /// Other amounts of claims that stay where they are in the groups.
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

    /// The rate of each flow of each claim of the last [`fill`](Filler::fill), bytes/s.
    pub fn rates(&self) -> &[u64] {
        &self.progress.rates
    }

    /// What a further flow on this path could have without taking from others, bytes/s. On a full link that is less than a
    /// byte/s for each of its flows, so it is never more than what they have.
    pub fn spare(&self, hops: &[u32]) -> u64 {
        let left = |link: &u32| self.progress.left.get(*link as usize).copied();
        hops.iter().filter_map(left).min().unwrap_or(UNBOUNDED)
    }
}

#[cfg(test)]
#[path = "fill_tests.rs"]
mod tests;
