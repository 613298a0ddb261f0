"""The network of a scenario: nodes and directed links by index and by name, and the routes over them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from narrows.errors import ScenarioError, found, hint
from narrows.scenario import traces
from narrows.scenario.limits import MAX_LINKS
from narrows.scenario.model import RateController, Scenario
from narrows.scenario.named import Named
from narrows.scenario.network import Change, Link, Traits
from narrows.scenario.routes import Routes
from narrows.topology.facts import islands

MAX_NODES = 65_535
"""Maximum number of nodes."""


@dataclass
class Direction:
    """One direction of a link."""

    name: str
    """Name of the link in results."""
    source: int
    """Sending node."""
    to: int
    """Receiving node."""
    traits: Traits
    """Properties of this direction of the link."""
    capacity: traces.Capacity | None
    """Trace of the link's capacity, if it has one."""
    key: str
    """Key of the link in the scenario."""

    @property
    def rate(self) -> int:
        """Rate at the start, or the mean rate of a trace; bit/s."""
        return self.capacity.mean if self.capacity else self.traits.rate or 0

    @property
    def delay(self) -> int:
        """Propagation delay at the start, ns."""
        return self.traits.delay or 0


class Graph:
    """Nodes, directed links and their names.

    Args:
        scenario: the scenario.
        folder: the folder to which the scenario's paths are relative.
        ends: nodes that the scenario's flows name. If such a node is a switch of a published network, it gets
            a host.
    """

    def __init__(self, scenario: Scenario, folder: Path, ends: Iterable[str] = ()) -> None:
        self.nodes: list[str] = []
        self.links: list[Direction] = []
        self.endpoints: list[tuple[str, str]] = []
        self.bottlenecks: list[str] = []
        self.positions: dict[str, tuple[float, float]] = {}
        self.geographic = False
        self.hosts: set[str] = set()
        self._hosts: dict[str, str] = {}
        self._core: list[int] = []
        self._index: dict[str, int] = {}
        self._by_name: dict[str, int] = {}
        self._folder = folder
        self._read: dict[str, traces.Capacity] = {}
        for i, node in enumerate(scenario.nodes):
            if node.name in self._index:
                raise ScenarioError(
                    f"found {found(node.name)} again, expected another name", f"nodes.{i}.name"
                )
            self._node(node.name)
        links = [(f"links.{i}", link) for i, link in enumerate(scenario.links)]
        topology = scenario.topology
        if isinstance(topology, Named):
            links = [("topology", link) for link in self._published(topology, ends)] + links
        elif topology is not None:
            peak = self._capacity(topology, "topology")
            layout = topology.layout(len(scenario.flows), peak.peak if peak else None)
            self.endpoints, self.bottlenecks = layout.endpoints, layout.bottlenecks
            links = [("topology", link) for link in layout.links] + links
        if not links:
            raise ScenarioError("found no links, expected a [topology] or [[links]]", "links")
        if 2 * len(links) > MAX_LINKS:
            raise ScenarioError(f"found {len(links)} links, expected at most {MAX_LINKS // 2}", "links")
        for key, link in links:
            self._add(key, link)
        if len(self.nodes) > MAX_NODES:
            raise ScenarioError(f"found {len(self.nodes)} nodes, expected at most {MAX_NODES}", "nodes")
        if isinstance(topology, Named):
            self._whole(topology)
        self._routes = Routes(len(self.nodes), [(link.source, link.to, link.delay) for link in self.links])

    def end(self, name: str, key: str) -> int:
        """Index of a flow's end. If `name` is a switch of a published network, the end is the switch's host.

        Raises:
            ScenarioError: if no node has this name. The message suggests the most similar name.
        """
        return self.node(self._hosts.get(name, name), key)

    def node(self, name: str, key: str) -> int:
        """Index of a node.

        Raises:
            ScenarioError: if there is no such name. The message suggests the most similar name.
        """
        if name not in self._index:
            raise ScenarioError(f"found {found(name)}, expected a node{hint(name, self.nodes)}", key)
        return self._index[name]

    def link(self, name: str, key: str) -> int:
        """Index of a directed link by its name, ``A->B`` or ``A-B``.

        Raises:
            ScenarioError: if there is no such name. The message suggests the most similar name.
        """
        if name not in self._by_name:
            names = [link.name for link in self.links]
            raise ScenarioError(f"found {found(name)}, expected a link{hint(name, names)}", key)
        return self._by_name[name]

    def core(self) -> list[int]:
        """The links that match `*`.

        In a published network, these are the links from its switches to other nodes of the network. In other
        topologies, they are the links between nodes with more than one neighbour.
        """
        if self._core:
            return self._core
        near: dict[int, set[int]] = {}
        for link in self.links:
            near.setdefault(link.source, set()).add(link.to)
        return [i for i, link in enumerate(self.links) if len(near[link.source]) > 1 < len(near[link.to])]

    def controlled(self, controller: RateController, key: str) -> list[tuple[int, str]]:
        """The links of a rate controller, each with the key in the scenario that names it.

        Raises:
            ScenarioError: if a name or pattern matches no link.
        """
        return [
            (index, f"{key}.{where}")
            for name, where in controller.named
            for index in self._matching(name, f"{key}.{where}")
        ]

    def _matching(self, name: str, key: str) -> list[int]:
        if name in self._by_name or not any(c in name for c in "*?"):
            return [self.link(name, key)]
        if name == "*":
            matching = self.core()
        else:
            # Do not use brackets as patterns, because names may contain brackets.
            pattern = name.replace("[", "[[]")
            fitting = {i for n, i in self._by_name.items() if fnmatch.fnmatchcase(n, pattern)}
            matching = sorted(fitting.intersection(self.core()) or fitting)
        if not matching:
            what = "a link between two nodes that have more than one neighbour" if name == "*" else "a link"
            names = [] if name == "*" else [link.name for link in self.links]
            raise ScenarioError(f"found {found(name)}, expected {what}{hint(name, names)}", key)
        return matching

    def _published(self, topology: Named, ends: Iterable[str]) -> list[Link]:
        """Add the links of a published network and of its hosts."""
        facts = topology.facts()
        for name in facts.nodes:
            self._node(name)
        links = topology.links()
        self._hosts, access = topology.hosts(ends, links)
        self.hosts = {*facts.hosts, *self._hosts.values()}
        self.endpoints = facts.endpoints
        self.positions, self.geographic = facts.positions, facts.geographic
        self.bottlenecks = [f"{a}->{b}" for a, b in topology.core()]
        return links + access

    def _whole(self, topology: Named) -> None:
        """Check that a topology is connected. Links of the table `[[links]]` may connect its parts."""
        self._core = sorted(self._by_name[name] for name in self.bottlenecks)
        pairs = [(self.nodes[link.source], self.nodes[link.to]) for link in self.links]
        published = topology.facts().nodes
        parts = [part for part in islands(self.nodes, pairs) if set(part) & set(published)]
        if len(parts) > 1:
            first, second = (", ".join(part[:3]) + (", ..." if len(part) > 3 else "") for part in parts[:2])
            raise ScenarioError(
                f"found {len(parts)} islands in {found(topology.name)} ({first}; {second}), expected one; "
                "[[links]] may join them",
                "topology.name",
            )

    def route(self, source: int, to: int) -> list[int] | None:
        """The links of the shortest path from one node to another, in order. None if there is no path."""
        return self._routes.between(source, to)

    def equal(self, source: int, to: int) -> frozenset[int]:
        """The links of all shortest paths from one node to another (ECMP)."""
        return self._routes.equal(source, to)

    def hop(self, source: int, to: int) -> int | None:
        """The link from a node to its neighbour. None if `to` is not a neighbour."""
        return self._routes.hop(source, to)

    def _node(self, name: str) -> int:
        if name not in self._index:
            self._index[name] = len(self.nodes)
            self.nodes.append(name)
        return self._index[name]

    def _capacity(self, traits: Traits, key: str) -> traces.Capacity | None:
        if traits.trace is None:
            return None
        identity = traits.trace.model_dump_json()
        if identity not in self._read:
            try:
                self._read[identity] = traces.read(traits.trace, self._folder)
            except ScenarioError as error:
                # If the error has a source, it already names the trace's file and line.
                raise (error if error.source else error.at(f"{key}.trace")) from None
        return self._read[identity]

    def _add(self, key: str, link: Link) -> None:
        a, b = link.between
        if a == b:
            raise ScenarioError(f"found {found(a)} twice, expected two nodes", f"{key}.between")
        source, to = self._node(a), self._node(b)
        capacity = self._capacity(link, key)
        if capacity is None and link.rate is None:
            raise ScenarioError("found neither `rate` nor `trace`, expected one of them", f"{key}.rate")
        if capacity is not None and any(change.rate is not None for change in link.at):
            raise ScenarioError("found a rate, expected none with a trace", f"{key}.at")
        forth, back = (link.name, f"{link.name}.back") if link.name else (f"{a}->{b}", f"{b}->{a}")
        self._direction(Direction(forth, source, to, link, capacity, key), (f"{a}->{b}", f"{a}-{b}"))
        reverse, reverse_key = self._way_back(link, capacity), f"{key}.back"
        back_capacity = self._capacity(reverse, reverse_key)
        self._direction(
            Direction(back, to, source, reverse, back_capacity, reverse_key), (f"{b}->{a}", f"{b}-{a}")
        )

    def _way_back(self, link: Link, capacity: traces.Capacity | None) -> Traits:
        """The properties of the reverse direction.

        The reverse direction has the rate, delay and queue of the forward direction, and the same changes of
        rate and delay. If the forward direction has a trace, the rate is the mean rate of the trace. `back`
        overrides these properties.
        """
        shared: dict[str, object] = {
            "rate": link.rate if capacity is None else capacity.mean,
            "delay": link.delay,
            "queue": link.queue,
            "at": [
                Change.model_construct(time=c.time, when=c.when, rate=c.rate, delay=c.delay) for c in link.at
            ],
        }
        own = link.back
        if own is not None:
            shared |= {key: getattr(own, key) for key in own.model_fields_set}
            if own.trace is not None:
                shared["rate"] = own.rate
        return Traits.model_construct(**shared)  # type: ignore[arg-type]

    def _direction(self, direction: Direction, also: tuple[str, ...]) -> None:
        index = len(self.links)
        if self._by_name.setdefault(direction.name, index) != index:
            raise ScenarioError(
                f"found {found(direction.name)} again, expected another name", f"{direction.key}.name"
            )
        for name in also:
            self._by_name.setdefault(name, index)
        self.links.append(direction)
