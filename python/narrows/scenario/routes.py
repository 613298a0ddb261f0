"""Computes the same shortest paths as the simulator: least delay at the start of the run, then fewest hops.

The simulator computes its own routes (crates/narrows-sim/src/net/route.rs). Python needs the paths before the
simulator runs: for queues in bandwidth-delay products, for the warm-up, and for errors about flows without a
path.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass


class Routes:
    """Paths between the nodes of a graph.

    Hosts with one neighbour are never in the middle of a path, so searches skip them. A star or a dumbbell
    with thousands of hosts needs only one small search. A fat tree needs one search per edge switch.

    Args:
        nodes: number of nodes.
        links: source, target and delay of each link; links come in pairs, one for each direction.
    """

    def __init__(self, nodes: int, links: list[tuple[int, int, int]]) -> None:
        self._out: list[list[tuple[int, int, int]]] = [[] for _ in range(nodes)]
        self._direct: dict[tuple[int, int], int] = {}
        for index, (source, to, delay) in enumerate(links):
            self._out[source].append((index, to, delay))
            self._direct.setdefault((source, to), index)
        self._core = [[link for link in out if len(self._out[link[1]]) > 1] for out in self._out]
        self._trees: dict[int, _Tree] = {}

    def hop(self, source: int, to: int) -> int | None:
        """The first link from a node to another node (None: the nodes are not neighbours)."""
        return self._direct.get((source, to))

    def between(self, source: int, to: int) -> list[int] | None:
        """The links of the path in order (None: there is no path)."""
        ends = self._ends(source, to)
        if ends is None:
            return None
        head, source, to, tail = ends
        tree = self._tree(source)
        if to != source and to not in tree.last:
            return None
        path: list[int] = []
        node = to
        while node != source:
            link, node = tree.last[node][0]
            path.append(link)
        return [*head, *reversed(path), *tail]

    def equal(self, source: int, to: int) -> frozenset[int]:
        """The links of all paths that have the same delay and number of hops as the shortest path."""
        ends = self._ends(source, to)
        if ends is None:
            return frozenset()
        head, source, to, tail = ends
        tree = self._tree(source)
        if to != source and to not in tree.last:
            return frozenset()
        links = {*head, *tail}
        waiting, seen = [to], {to, source}
        while waiting:
            for link, node in tree.last.get(waiting.pop(), ()):
                links.add(link)
                if node not in seen:
                    seen.add(node)
                    waiting.append(node)
        return frozenset(links)

    def _ends(self, source: int, to: int) -> tuple[list[int], int, int, list[int]] | None:
        """The first and last links that all paths share, and the two nodes between which paths can differ."""
        first, last = self._out[source], self._out[to]
        if not first or not last:
            return None
        head: list[int] = []
        tail: list[int] = []
        if len(first) == 1:
            head, source = [first[0][0]], first[0][1]
        if source != to and len(last) == 1:
            # If a host has only one neighbour, this neighbour is on every path to the host.
            neighbour = last[0][1]
            tail, to = [self._direct[neighbour, to]], neighbour
        return head, source, to, tail

    def _tree(self, source: int) -> _Tree:
        """The shortest paths from a node to all nodes that can be in the middle of a path."""
        if source in self._trees:
            return self._trees[source]
        if sum(len(tree.last) for tree in self._trees.values()) > _MOST_REMEMBERED:
            self._trees.clear()
        best: dict[int, tuple[int, int]] = {source: (0, 0)}
        last: dict[int, list[tuple[int, int]]] = {}
        queue = [(0, 0, source)]
        while queue:
            cost, hops, node = heapq.heappop(queue)
            if best[node] != (cost, hops):
                continue
            for link, neighbour, delay in self._core[node]:
                candidate = (cost + delay, hops + 1)
                if neighbour not in best or candidate < best[neighbour]:
                    best[neighbour] = candidate
                    last[neighbour] = [(link, node)]
                    heapq.heappush(queue, (*candidate, neighbour))
                elif candidate == best[neighbour]:
                    last[neighbour].append((link, node))
        self._trees[source] = _Tree(last)
        return self._trees[source]


@dataclass(frozen=True)
class _Tree:
    """The shortest paths from a node."""

    last: dict[int, list[tuple[int, int]]]
    """For each node that can be reached, the last links of all shortest paths to it. Each link is stored with
    the node before it."""


_MOST_REMEMBERED = 5_000_000
"""Maximum number of nodes in all stored trees together. If there are more, all stored trees are discarded."""
