"""The network of a scenario: nodes and directed links by index and by name, and the routes over them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from narrows.errors import ScenarioError, found, hint
from narrows.scenario import traces
from narrows.scenario.model import MAX_LINKS, Scenario
from narrows.scenario.network import Change, Link, Traits
from narrows.scenario.routes import Routes

MAX_NODES = 65_535
"""Most nodes of a scenario."""


@dataclass
class Direction:
    """One direction of a link."""

    name: str
    """Name in results."""
    source: int
    """Sending node."""
    to: int
    """Receiving node."""
    traits: Traits
    """What it is like."""
    capacity: traces.Capacity | None
    """Its trace, if it has one."""
    key: str
    """Where the scenario speaks of it."""

    @property
    def rate(self) -> int:
        """Rate at the start (of a trace: its mean), bit/s."""
        return self.capacity.mean if self.capacity else self.traits.rate or 0

    @property
    def delay(self) -> int:
        """Propagation delay at the start, ns."""
        return self.traits.delay or 0


class Graph:
    """Nodes, directed links and their names."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.nodes: list[str] = []
        self.links: list[Direction] = []
        self.endpoints: list[tuple[str, str]] = []
        self.bottlenecks: list[str] = []
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
        if topology is not None:
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
        self._routes = Routes(len(self.nodes), [(link.source, link.to, link.delay) for link in self.links])

    def node(self, name: str, key: str) -> int:
        """Index of a node.

        Raises:
            ScenarioError: naming the nearest one.
        """
        if name not in self._index:
            raise ScenarioError(f"found {found(name)}, expected a node{hint(name, self.nodes)}", key)
        return self._index[name]

    def link(self, name: str, key: str) -> int:
        """Index of a directed link by its name, ``A->B`` or ``A-B``.

        Raises:
            ScenarioError: naming the nearest one.
        """
        if name not in self._by_name:
            names = [link.name for link in self.links]
            raise ScenarioError(f"found {found(name)}, expected a link{hint(name, names)}", key)
        return self._by_name[name]

    def route(self, source: int, to: int) -> list[int] | None:
        """Links from one node to another on the shortest path; None if there is none."""
        return self._routes.between(source, to)

    def hop(self, source: int, to: int) -> int | None:
        """The link from a node to its neighbour; None if it is none."""
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
                # One with a source names the trace's own file and line.
                raise (error if error.source else error.at(f"{key}.trace")) from None
        return self._read[identity]

    def _add(self, key: str, link: Link) -> None:
        a, b = link.between
        if a == b:
            raise ScenarioError(f"found {found(a)} twice, expected two nodes", f"{key}.between")
        source, to = self._node(a), self._node(b)
        capacity = self._capacity(link, key)
        if capacity is None and link.rate is None:
            raise ScenarioError("found neither, expected a rate or a trace", f"{key}.rate")
        if capacity is not None and any(change.rate is not None for change in link.at):
            raise ScenarioError("found a rate, expected none beside a trace", f"{key}.at")
        forth, back = (link.name, f"{link.name}.back") if link.name else (f"{a}->{b}", f"{b}->{a}")
        self._direction(Direction(forth, source, to, link, capacity, key), (f"{a}->{b}", f"{a}-{b}"))
        reverse, reverse_key = self._way_back(link, capacity), f"{key}.back"
        back_capacity = self._capacity(reverse, reverse_key)
        self._direction(
            Direction(back, to, source, reverse, back_capacity, reverse_key), (f"{b}->{a}", f"{b}-{a}")
        )

    def _way_back(self, link: Link, capacity: traces.Capacity | None) -> Traits:
        """Rate, delay, queue and their changes as on the way there; a trace's mean in place of the trace."""
        shared: dict[str, object] = {
            "rate": link.rate if capacity is None else capacity.mean,
            "delay": link.delay,
            "queue": link.queue,
            "at": [Change.model_construct(time=c.time, rate=c.rate, delay=c.delay) for c in link.at],
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
