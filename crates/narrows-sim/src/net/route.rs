//! Static shortest-path routing. A route is computed when a flow starts and is shared by all flows between the same
//! nodes. A packet finds its next link by one table look-up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_control::units::Span;
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::plan::{FlowPlan, Plan};

/// Marks the end of a path. A packet that reads this mark has reached its host.
pub(crate) const HOST: u32 = u32::MAX;

/// All paths in use, one after the other, each terminated by [`HOST`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    links: Vec<u32>,
    /// Start of each known path: the path along the nodes of the key, or the shortest path between its two nodes.
    known: FxHashMap<Vec<u32>, u32>,
    /// (from, to, delay) of each link, and the links that leave each node.
    edges: Vec<(u32, u32, Span)>,
    out: Vec<Vec<u32>>,
}

impl Paths {
    pub(crate) fn new(plan: &Plan) -> Self {
        let edges: Vec<_> = plan
            .links
            .iter()
            .map(|l| (l.from, l.to, l.delay.first().map_or(Span::ZERO, |&(_, delay)| delay)))
            .collect();
        let mut out = vec![Vec::new(); plan.nodes.len()];
        for (i, &(from, ..)) in edges.iter().enumerate() {
            if let Some(list) = out.get_mut(from as usize) {
                list.push(i as u32);
            }
        }
        Paths { edges, out, ..Paths::default() }
    }

    /// Returns the link at position `hop` of the table, or [`HOST`].
    #[inline]
    pub(crate) fn link(&self, hop: u32) -> u32 {
        self.links[hop as usize]
    }

    /// Returns the start of the shortest path between two nodes (least delay, then fewest hops, then lowest link
    /// numbers).
    pub(crate) fn shortest(&mut self, from: u32, to: u32) -> Option<u32> {
        if let Some(&start) = self.known.get([from, to].as_slice()) {
            return Some(start);
        }
        let links = self.dijkstra(from, to)?;
        Some(self.add(vec![from, to], &links))
    }

    /// Returns the starts of a flow's paths: towards the receiver, and back.
    pub(crate) fn both_ways(&mut self, plan: &Plan, flow: &FlowPlan) -> Result<(u32, u32), Error> {
        let unreachable = |from: u32, to: u32| Error::Unreachable {
            flow: flow.name.clone(),
            from: plan.nodes[from as usize].clone(),
            to: plan.nodes[to as usize].clone(),
        };
        let forward = self.shortest(flow.from, flow.to).ok_or_else(|| unreachable(flow.from, flow.to))?;
        let reverse = match &flow.return_path {
            Some(nodes) => self.along(nodes),
            None => self.shortest(flow.to, flow.from),
        };
        Ok((forward, reverse.ok_or_else(|| unreachable(flow.to, flow.from))?))
    }

    /// Returns the start of the path along these nodes.
    pub(crate) fn along(&mut self, nodes: &[u32]) -> Option<u32> {
        // A list of two nodes could mean "shortest path" or "this link". A leading marker distinguishes the keys.
        let key: Vec<u32> = std::iter::once(HOST).chain(nodes.iter().copied()).collect();
        if let Some(&start) = self.known.get(&key) {
            return Some(start);
        }
        let links: Option<Vec<u32>> = nodes
            .windows(2)
            .map(|w| self.out.get(w[0] as usize)?.iter().copied().find(|&l| self.edges[l as usize].1 == w[1]))
            .collect();
        Some(self.add(key, &links?))
    }

    /// Returns the links of the path that starts at `start`.
    pub(crate) fn links_of(&self, start: u32) -> &[u32] {
        let rest = &self.links[start as usize..];
        let end = rest.iter().position(|&l| l == HOST).unwrap_or(rest.len());
        &rest[..end]
    }

    fn add(&mut self, key: Vec<u32>, links: &[u32]) -> u32 {
        let start = self.links.len() as u32;
        self.links.extend_from_slice(links);
        self.links.push(HOST);
        self.known.insert(key, start);
        start
    }

    fn dijkstra(&self, from: u32, to: u32) -> Option<Vec<u32>> {
        let mut best: Vec<Option<(Span, u32)>> = vec![None; self.out.len()];
        let mut via: Vec<Option<u32>> = vec![None; self.out.len()];
        let mut open = BinaryHeap::new();
        *best.get_mut(from as usize)? = Some((Span::ZERO, 0));
        open.push(Reverse((Span::ZERO, 0u32, from)));
        while let Some(Reverse((cost, hops, node))) = open.pop() {
            if best[node as usize] != Some((cost, hops)) {
                continue;
            }
            if node == to {
                break;
            }
            for &link in &self.out[node as usize] {
                let (_, next, delay) = self.edges[link as usize];
                let candidate = (cost + delay, hops + 1);
                let Some(slot) = best.get_mut(next as usize) else { continue };
                if slot.is_none_or(|b| candidate < b) {
                    *slot = Some(candidate);
                    via[next as usize] = Some(link);
                    open.push(Reverse((candidate.0, candidate.1, next)));
                }
            }
        }
        let mut links = Vec::new();
        let mut node = to;
        while node != from {
            let link = via.get(node as usize).copied().flatten()?;
            links.push(link);
            node = self.edges[link as usize].0;
        }
        links.reverse();
        Some(links)
    }
}
