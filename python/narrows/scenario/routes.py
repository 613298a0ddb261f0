"""Shortest paths as in the simulator: least delay at the start of the run, and then fewest hops.

The simulator computes its own routes (crates/narrows-sim/src/net/route.rs). Paths are needed here before
the simulator runs: for queues in bandwidth-delay products, for the warm-up, and for errors about flows
without a path.
"""

from __future__ import annotations

import heapq


class Routes:
    """Paths between the nodes of a graph.

    Hosts with one neighbour are never in the middle of a path, so the search skips them. In a star or a
    dumbbell with thousands of hosts, all paths need only one small search.

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
        self._found: dict[tuple[int, int], list[int] | None] = {}

    def hop(self, source: int, to: int) -> int | None:
        """The link from a node to its neighbour, or the first of several. None if they are not neighbours."""
        return self._direct.get((source, to))

    def between(self, source: int, to: int) -> list[int] | None:
        """The links of the path in order (None: there is no path)."""
        first, last = self._out[source], self._out[to]
        if not first or not last:
            return None
        head: list[int] = []
        tail: list[int] = []
        if len(first) == 1:
            head, source = [first[0][0]], first[0][1]
        if source != to and len(last) == 1:
            # The only neighbour of a host is on every path to the host.
            neighbour = last[0][1]
            tail, to = [self._direct[neighbour, to]], neighbour
        middle = self._search(source, to)
        return None if middle is None else head + middle + tail

    def _search(self, source: int, to: int) -> list[int] | None:
        if (source, to) in self._found:
            return self._found[source, to]
        best: dict[int, tuple[int, int]] = {source: (0, 0)}
        came: dict[int, tuple[int, int]] = {}
        queue = [(0, 0, source)]
        while queue:
            cost, hops, node = heapq.heappop(queue)
            if node == to:
                break
            if best[node] != (cost, hops):
                continue
            for link, neighbour, delay in self._core[node]:
                candidate = (cost + delay, hops + 1)
                if neighbour not in best or candidate < best[neighbour]:
                    best[neighbour] = candidate
                    came[neighbour] = (link, node)
                    heapq.heappush(queue, (*candidate, neighbour))
        path: list[int] | None = None
        if to in best:
            path, node = [], to
            while node != source:
                link, node = came[node]
                path.append(link)
            path.reverse()
        self._found[source, to] = path
        return path
