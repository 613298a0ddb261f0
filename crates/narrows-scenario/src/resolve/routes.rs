//! Computes the same shortest paths as the simulator: least delay at the start of the run, then fewest hops.
//!
//! The simulator computes its own routes (`narrows-sim/src/net/route.rs`). A scenario needs the paths before the
//! simulator runs: for queues in bandwidth-delay products, for the warm-up, and for errors about flows without a path.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::rc::Rc;

/// Maximum number of nodes in all stored trees together. If there are more, all stored trees are discarded.
const MOST_REMEMBERED: usize = 5_000_000;

/// Paths between the nodes of a graph.
///
/// Hosts with one neighbour are never in the middle of a path, so searches skip them. A star or a dumbbell with
/// thousands of hosts needs only one small search. A fat tree needs one search per edge switch.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A link as (source, target, delay).
    type Way = (usize, usize, u64);

    /// Returns all paths without loops between two nodes.
    fn simple(links: &[Way], node: usize, to: usize, seen: &mut Vec<usize>) -> Vec<Vec<usize>> {
        if node == to {
            return vec![Vec::new()];
        }
        let mut paths = Vec::new();
        for (index, &(from, next, _)) in links.iter().enumerate() {
            if from == node && !seen.contains(&next) {
                seen.push(next);
                let rest = simple(links, next, to, seen);
                paths.extend(rest.into_iter().map(|rest| [vec![index], rest].concat()));
                seen.pop();
            }
        }
        paths
    }

    proptest! {
        #[test]
        fn equal_links_are_those_of_all_shortest_paths(
            ways in prop::collection::vec((0..6_usize, 0..6_usize, 0..3_u64), 1..10),
        ) {
            let ways = ways.into_iter().filter(|(a, b, _)| a != b);
            let links: Vec<Way> = ways.flat_map(|(a, b, delay)| [(a, b, delay), (b, a, delay)]).collect();
            let mut routes = Routes::new(6, &links);
            let paths = simple(&links, 0, 1, &mut vec![0]);
            let cost = |path: &Vec<usize>| (path.iter().map(|link| links[*link].2).sum::<u64>(), path.len());
            let least = paths.iter().map(cost).min();
            let best: Vec<&Vec<usize>> = paths.iter().filter(|path| Some(cost(path)) == least).collect();
            let expected: BTreeSet<usize> = best.iter().flat_map(|path| path.iter().copied()).collect();
            prop_assert_eq!(routes.equal(0, 1), expected);
            match routes.between(0, 1) {
                Some(found) => prop_assert!(best.contains(&&found)),
                None => prop_assert!(best.is_empty()),
            }
        }
    }
}
