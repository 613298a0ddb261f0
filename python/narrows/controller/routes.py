"""Finds the path that packets take with the flow entries of `forwarding`."""

from __future__ import annotations

import networkx as nx

from narrows.controller import forwarding
from narrows.controller.messages import PortKey
from narrows.controller.topology import Topology


class Routes:
    """Shortest paths in the network as it is now. After a change of the network, make a new object."""

    def __init__(self, topology: Topology, delay: forwarding.Delay) -> None:
        self._graph: nx.Graph[int] = forwarding.graph_of(topology, topology.links(), delay)
        self._out: dict[int, dict[int, int]] = {}
        """For each destination switch, the outgoing port of every other switch towards the destination."""

    def path(self, source: PortKey, to: PortKey) -> list[PortKey]:
        """The port through which a packet leaves each switch on the path between two edge ports.

        Args:
            source: the edge port where the packet enters.
            to: the edge port where the packet leaves the network. This port is the last of the returned
                ports.

        Returns an empty list if there is no path.
        """
        last = to[0]
        if last not in self._graph or source[0] not in self._graph:
            return []
        if last not in self._out:
            self._out[last] = dict(forwarding.next_hops(self._graph, last))
        at, path = source[0], []
        while at != last:
            out = self._out[last].get(at)
            if out is None:
                return []
            path.append((at, out))
            at = next(n for n, edge in self._graph[at].items() if edge["ports"][at] == out)
        return [*path, to]
