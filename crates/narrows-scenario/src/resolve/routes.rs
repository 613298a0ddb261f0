//! Computes the same shortest paths as the simulator: least delay at the start of the run, then fewest hops.
//!
//! The simulator computes its own routes (`narrows-sim/src/net/route.rs`). A scenario needs the paths before the simulator
//! runs: for queues in bandwidth-delay products, for the warm-up, and for errors about flows without a path.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::rc::Rc;

/// Maximum number of nodes in all stored trees together. If there are more, all stored trees are discarded.
const MOST_REMEMBERED: usize = 5_000_000;

/// Paths between the nodes of a graph.
///
/// Hosts with one neighbour are never in the middle of a path, so searches skip them. A star or a dumbbell with thousands
/// of hosts needs only one small search. A fat tree needs one search per edge switch.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// For each node, its links as (link, node at the other end, delay).
    out: Vec<Vec<(usize, usize, u64)>>,
    direct: HashMap<(usize, usize), usize>,
    trees: HashMap<usize, Rc<Tree>>,
    remembered: usize,
}

/// The shortest paths from a node: for each node that can be reached, the last links of all shortest paths to it. Each
/// link is stored with the node before it.
type Tree = HashMap<usize, Vec<(usize, usize)>>;

/// The first and last links that all paths between two nodes share, and the two nodes between which paths can differ.
struct Ends {
    head: Option<usize>,
    from: usize,
    to: usize,
    tail: Option<usize>,
}

impl Routes {
    /// Creates the routes for links, given as (source, target, delay). Links come in pairs, one for each direction.
    pub(super) fn new(nodes: usize, links: &[(usize, usize, u64)]) -> Self {
        let mut routes = Routes { out: vec![Vec::new(); nodes], ..Routes::default() };
        for (index, &(from, to, delay)) in links.iter().enumerate() {
            if let Some(out) = routes.out.get_mut(from) {
                out.push((index, to, delay));
            }
            routes.direct.entry((from, to)).or_insert(index);
        }
        routes
    }

    /// Returns the first link from a node to another node, or `None` if the nodes are not neighbours.
    pub(super) fn hop(&self, from: usize, to: usize) -> Option<usize> {
        self.direct.get(&(from, to)).copied()
    }

    /// Returns the links of the path in order, or `None` if there is no path.
    pub(super) fn between(&mut self, from: usize, to: usize) -> Option<Vec<usize>> {
        let ends = self.ends(from, to)?;
        let tree = self.tree(ends.from);
        let (mut path, mut node) = (Vec::new(), ends.to);
        while node != ends.from {
            let (link, before) = *tree.get(&node)?.first()?;
            path.push(link);
            node = before;
        }
        path.reverse();
        Some(ends.head.into_iter().chain(path).chain(ends.tail).collect())
    }

    /// Returns the links of all paths that have the same delay and number of hops as the shortest path.
    pub(super) fn equal(&mut self, from: usize, to: usize) -> BTreeSet<usize> {
        let Some(ends) = self.ends(from, to) else { return BTreeSet::new() };
        let tree = self.tree(ends.from);
        if ends.to != ends.from && !tree.contains_key(&ends.to) {
            return BTreeSet::new();
        }
        let mut links: BTreeSet<usize> = ends.head.into_iter().chain(ends.tail).collect();
        let (mut waiting, mut seen) = (vec![ends.to], BTreeSet::from([ends.to, ends.from]));
        while let Some(next) = waiting.pop() {
            for &(link, node) in tree.get(&next).into_iter().flatten() {
                links.insert(link);
                if seen.insert(node) {
                    waiting.push(node);
                }
            }
        }
        links
    }

    fn ends(&self, mut from: usize, mut to: usize) -> Option<Ends> {
        let (first, last) = (self.out.get(from)?, self.out.get(to)?);
        if first.is_empty() || last.is_empty() {
            return None;
        }
        let (mut head, mut tail) = (None, None);
        if let [(link, neighbour, _)] = first[..] {
            (head, from) = (Some(link), neighbour);
        }
        if from != to {
            // If a host has only one neighbour, this neighbour is on every path to the host.
            if let [(_, neighbour, _)] = last[..] {
                (tail, to) = (self.hop(neighbour, to), neighbour);
            }
        }
        Some(Ends { head, from, to, tail })
    }

    /// Returns the shortest paths from a node to all nodes that can be in the middle of a path.
    fn tree(&mut self, from: usize) -> Rc<Tree> {
        if let Some(tree) = self.trees.get(&from) {
            return Rc::clone(tree);
        }
        if self.remembered > MOST_REMEMBERED {
            self.trees.clear();
            self.remembered = 0;
        }
        let mut best: HashMap<usize, (u64, u32)> = HashMap::from([(from, (0, 0))]);
        let mut last: Tree = HashMap::new();
        let mut queue = BinaryHeap::from([Reverse((0, 0, from))]);
        while let Some(Reverse((cost, hops, node))) = queue.pop() {
            if best.get(&node) != Some(&(cost, hops)) {
                continue;
            }
            for &(link, neighbour, delay) in self.out.get(node).into_iter().flatten() {
                if self.out.get(neighbour).is_none_or(|out| out.len() < 2) {
                    continue;
                }
                let candidate = (cost.saturating_add(delay), hops + 1);
                match best.get(&neighbour) {
                    Some(known) if *known < candidate => {}
                    Some(known) if *known == candidate => {
                        last.entry(neighbour).or_default().push((link, node));
                    }
                    _ => {
                        best.insert(neighbour, candidate);
                        last.insert(neighbour, vec![(link, node)]);
                        queue.push(Reverse((candidate.0, candidate.1, neighbour)));
                    }
                }
            }
        }
        self.remembered += last.len();
        let tree = Rc::new(last);
        self.trees.insert(from, Rc::clone(&tree));
        tree
    }
}
