//! Routing by static shortest paths. A route is computed when a flow starts, and all flows between the same two nodes
//! share this route. With ECMP, each link of a route is drawn at random among the best ones. A packet finds its next
//! link by one look-up in a table.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_control::units::Span;
use rustc_hash::FxHashMap;

use crate::engine::Random;
use crate::error::Error;
use crate::plan::{FlowPlan, Plan};

/// Marks the end of a path in the table. A packet that reaches this mark has reached its host.
pub(crate) const HOST: u32 = u32::MAX;
/// First element of a key in `known`, if the key lists the links of a path.
const BY_LINKS: u32 = u32::MAX - 1;

/// The paths of a flow. A path is given by the position in the table of paths at which it starts.
#[derive(Copy, Clone, Debug)]
pub(crate) struct BothWays {
    /// Path from the sender to the receiver.
    pub(crate) forward: u32,
    /// Path from the receiver to the sender.
    pub(crate) reverse: u32,
}

/// The table of paths. It contains the links of each path in use, followed by [`HOST`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    links: Vec<u32>,
    /// The position at which each known path starts in the table. The key of a shortest path consists of its two end
    /// nodes. Other keys list the nodes or the links of the path.
    known: FxHashMap<Vec<u32>, u32>,
    /// Each link as (from, to, delay). `out` and `into` list the links that leave and enter each node.
    edges: Vec<(u32, u32, Span)>,
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
    /// The shortest paths from a node to all other nodes. The key is the start node. For each other node, the vector
    /// contains the last link of the path to this node.
    trees: FxHashMap<u32, Vec<Option<u32>>>,
    /// For ECMP: the distances from all nodes to a destination. The key is the destination.
    distances: FxHashMap<u32, Vec<Distance>>,
}

/// Largest number of elements in `trees`, and also in `distances`. The limit bounds the memory. Before a map would
/// exceed the limit, the map is cleared, and its elements are computed again on demand. A fat tree with k = 32 needs 5
/// million elements. An element takes 8 bytes in `trees` and 24 bytes in `distances`.
const MOST_REMEMBERED: usize = 16_000_000;

/// Delay and number of hops of a shortest path. `None` if no path exists.
type Distance = Option<(Span, u32)>;

/// Whether a search looks for the paths from a node or to a node.
#[derive(Copy, Clone)]
enum Way {
    From,
    To,
}

impl Paths {
    pub(crate) fn new(plan: &Plan) -> Self {
        let edges: Vec<_> = plan
            .links
            .iter()
            .map(|l| (l.from, l.to, l.delay.first().map_or(Span::ZERO, |&(_, delay)| delay)))
            .collect();
        let [mut out, mut into] = [vec![Vec::new(); plan.nodes.len()], vec![Vec::new(); plan.nodes.len()]];
        for (i, &(from, to, _)) in edges.iter().enumerate() {
            for (lists, node) in [(&mut out, from), (&mut into, to)] {
                if let Some(list) = lists.get_mut(node as usize) {
                    list.push(i as u32);
                }
            }
        }
        Paths { edges, out, into, ..Paths::default() }
    }

    /// Returns the link at position `hop` of the table. The result is [`HOST`] at the end of a path.
    #[inline]
    pub(crate) fn link(&self, hop: u32) -> u32 {
        self.links[hop as usize]
    }

    /// Returns the shortest path between two nodes. This is the path with the least delay, then the fewest hops, then
    /// the lowest link numbers. The result is the path's position in the table.
    pub(crate) fn shortest(&mut self, from: u32, to: u32) -> Option<u32> {
        if let Some(&start) = self.known.get([from, to].as_slice()) {
            return Some(start);
        }
        let links = self.links_between(from, to)?;
        Some(self.add(vec![from, to], &links))
    }

    /// Returns the paths that the flows of a flow plan take if the plan does not use ECMP. With ECMP,
    /// [`spread`](Self::spread) chooses the paths.
    pub(crate) fn both_ways(&mut self, plan: &Plan, flow: &FlowPlan) -> Result<BothWays, Error> {
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
        Ok(BothWays { forward, reverse: reverse.ok_or_else(|| unreachable(flow.to, flow.from))? })
    }

    /// Draws the paths of a flow with ECMP. `usual` contains the paths that the flow takes without ECMP.
    pub(crate) fn spread(&mut self, flow: &FlowPlan, usual: BothWays, random: &mut Random) -> BothWays {
        let forward = self.one_of_equal(flow.from, flow.to, random).unwrap_or(usual.forward);
        let reverse = if flow.return_path.is_some() {
            usual.reverse
        } else {
            self.one_of_equal(flow.to, flow.from, random).unwrap_or(usual.reverse)
        };
        BothWays { forward, reverse }
    }

    /// Draws one of the best paths at random. The best paths are those with the least delay. If several paths have this
    /// delay, only those with the fewest hops count. The result is the path's position in the table.
    ///
    /// At each node, a random draw chooses one of the links towards the receiver. Real switches hash the addresses and
    /// ports of a packet instead (RFC 2992, section 2). With both methods, all packets of a flow take the same path.
    /// The draws at two nodes are independent, as if the two switches had independent hash functions.
    fn one_of_equal(&mut self, from: u32, to: u32, random: &mut Random) -> Option<u32> {
        // If the host has only one neighbour, every path to the host ends with the same link. The search therefore uses
        // the neighbour as destination. All hosts behind this neighbour share the result of the search.
        let last = match self.into.get(to as usize)?.as_slice() {
            &[only] if self.edges[only as usize].0 != from => Some(only),
            _ => None,
        };
        let end = last.map_or(to, |link| self.edges[link as usize].0);
        if !self.distances.contains_key(&end) {
            let (distances, _) = self.search(end, Way::To);
            forget_if_many(&mut self.distances, distances.len());
            self.distances.insert(end, distances);
        }
        let distances = &self.distances[&end];
        let mut key = vec![BY_LINKS];
        let mut node = from;
        while node != end {
            let (delay, hops) = distances[node as usize]?;
            let next = self.out[node as usize].iter().copied().filter(|&link| {
                let (_, next, on_link) = self.edges[link as usize];
                distances[next as usize]
                    .is_some_and(|(rest, more)| (rest + on_link, more + 1) == (delay, hops))
            });
            let choices = next.clone().count().max(1);
            let chosen = if choices == 1 { 0 } else { (random.bits() % choices as u64) as usize };
            let link = next.clone().nth(chosen)?;
            key.push(link);
            node = self.edges[link as usize].1;
        }
        key.extend(last);
        match self.known.get(&key) {
            Some(&start) => Some(start),
            None => Some(self.add(key.clone(), &key[1..])),
        }
    }

    /// Returns the path along these nodes. The result is the path's position in the table.
    pub(crate) fn along(&mut self, nodes: &[u32]) -> Option<u32> {
        // The key begins with a marker that is not a node. Without the marker, a key of two nodes would also be the key
        // of the shortest path between them.
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

    /// Returns the links of the path that starts at position `start` of the table.
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

    fn links_between(&mut self, from: u32, to: u32) -> Option<Vec<u32>> {
        // If the host has only one neighbour, every path from the host begins with the same link. The search therefore
        // starts at the neighbour. All hosts behind this neighbour share the result of the search.
        let first = match self.out.get(from as usize)?.as_slice() {
            &[only] if from != to => Some(only),
            _ => None,
        };
        let root = first.map_or(from, |link| self.edges[link as usize].1);
        if !self.trees.contains_key(&root) {
            let (_, tree) = self.search(root, Way::From);
            forget_if_many(&mut self.trees, tree.len());
            self.trees.insert(root, tree);
        }
        let last_links = &self.trees[&root];
        let mut links = Vec::new();
        let mut node = to;
        while node != root {
            let link = last_links.get(node as usize).copied().flatten()?;
            links.push(link);
            node = self.edges[link as usize].0;
        }
        links.extend(first);
        links.reverse();
        Some(links)
    }

    /// Runs Dijkstra's algorithm. Both results have one element per node:
    ///
    /// * `Way::From`: the distance from `root` to the node, and the last link of the shortest path.
    /// * `Way::To`: the distance from the node to `root`, and the first link of the shortest path.
    fn search(&self, root: u32, way: Way) -> (Vec<Distance>, Vec<Option<u32>>) {
        let at_node = match way {
            Way::From => &self.out,
            Way::To => &self.into,
        };
        let mut best: Vec<Distance> = vec![None; self.out.len()];
        let mut via: Vec<Option<u32>> = vec![None; self.out.len()];
        let mut open = BinaryHeap::from([Reverse((Span::ZERO, 0u32, root))]);
        best[root as usize] = Some((Span::ZERO, 0));
        while let Some(Reverse((cost, hops, node))) = open.pop() {
            if best[node as usize] != Some((cost, hops)) {
                continue;
            }
            for &link in &at_node[node as usize] {
                let (from, to, delay) = self.edges[link as usize];
                let next = match way {
                    Way::From => to,
                    Way::To => from,
                };
                let candidate = (cost + delay, hops + 1);
                if let Some(slot) = best.get_mut(next as usize)
                    && slot.is_none_or(|known| candidate < known)
                {
                    *slot = Some(candidate);
                    via[next as usize] = Some(link);
                    open.push(Reverse((candidate.0, candidate.1, next)));
                }
            }
        }
        (best, via)
    }
}

/// Clears `memory` if it would exceed [`MOST_REMEMBERED`] with another entry of `len` elements.
fn forget_if_many<T>(memory: &mut FxHashMap<u32, Vec<T>>, len: usize) {
    if (memory.len() + 1) * len > MOST_REMEMBERED {
        memory.clear();
    }
}
