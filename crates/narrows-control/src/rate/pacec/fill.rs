//! Max-min fair rates across many links: progressive filling (PAC-18; Bertsekas and Gallager, *Data Networks*, sec. 6.5.2).
//!
//! The rate of all flows rises together from the floor. A flow stops at its demand, or when one of its links is full; that
//! link is its bottleneck. The *level* of a link is what an open flow would get if it were the next link to be full. It
//! never falls while others stop below it, so a heap of levels may hold old ones: they are brought up to date when they come
//! up. Rates are whole bytes/s and levels are rounded down, so that the sum on a link exceeds its capacity only where the
//! floors alone do.
//!
//! O(claims * (log claims + hops) + stops * log links), from scratch every time. What depends on a changed link is
//! often most of the network, and the whole takes less than a control period by far (`benches/pacec.rs`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use crate::rate::waterfill::UNBOUNDED;

/// Paths by number, each the links that it takes.
#[derive(Clone, Debug, Default)]
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

/// The filling, with the room that it works in.
#[derive(Debug, Default)]
pub struct Filler {
    progress: Progress,
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

    fn begin(&mut self, capacities: &[u64], paths: &Paths, claims: &[Claim], least: u64) {
        let progress = &mut self.progress;
        progress.least = least;
        progress.left.clear();
        progress.left.extend(capacities.iter().take(paths.links));
        progress.left.resize(paths.links, UNBOUNDED);
        progress.open.clear();
        progress.open.resize(paths.links, 0);
        progress.rates.clear();
        progress.rates.resize(claims.len(), 0);
        progress.stopped.clear();
        progress.stopped.resize(claims.len(), false);

        let routed = claims.iter().enumerate().filter(|(_, claim)| (claim.path as usize) < paths.len());
        self.claims_of.build(paths.len(), routed.map(|(at, claim)| (claim.path, at as u32)));
        let claims_of = &self.claims_of;
        let used = (0..paths.len() as u32).filter(|path| !claims_of.get(*path).is_empty());
        let hops = used.flat_map(|path| paths.get(path).iter().map(move |link| (*link, path)));
        self.paths_of.build(paths.links, hops);

        self.bounded.clear();
        for (at, claim) in claims.iter().enumerate() {
            for link in paths.get(claim.path) {
                let open = &mut progress.open[*link as usize];
                *open = open.saturating_add(claim.flows);
            }
            if claim.demand != UNBOUNDED {
                self.bounded.push((claim.demand.max(least), at as u32));
            }
        }
        self.bounded.sort_unstable();
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
