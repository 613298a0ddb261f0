"""The facts of a published network, in the units of its source."""

from __future__ import annotations

from dataclasses import dataclass, field

NANOS_PER_KM = 5_000
"""Delay of fibre: light covers 200 km in a millisecond (PAC-30)."""


@dataclass(frozen=True)
class Edge:
    """A link with the same properties in both directions."""

    a: str
    """Name of one end."""
    b: str
    """Name of the other end."""
    km: float | None = None
    """Length; None if the source gives no length."""
    rate: int | None = None
    """Capacity, bit/s; None if the source gives no capacity."""
    delay: int = 0
    """One-way propagation delay if there is no length, ns."""

    @property
    def nanos(self) -> int:
        """One-way propagation delay, ns: computed from the length if there is one."""
        return self.delay if self.km is None else round(self.km * NANOS_PER_KM)


@dataclass(frozen=True)
class Group:
    """Equal flows that belong to a network, as in the generic fairness configurations (GFC)."""

    name: str
    """Letter of the group."""
    source: str
    """Node at which the flows start."""
    to: str
    """Node at which the flows end."""
    count: int
    """Number of flows."""


@dataclass(frozen=True)
class Demand:
    """Traffic from one node to another."""

    source: str
    """Node at which the traffic starts."""
    to: str
    """Node at which the traffic ends."""
    mbit: float
    """Rate of the traffic, in Mbit/s."""


@dataclass(frozen=True)
class Facts:
    """A network."""

    name: str
    """The name by which a scenario refers to the network."""
    nodes: list[str]
    """Names, without spaces."""
    edges: list[Edge]
    """Links."""
    positions: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Positions for drawing nodes: longitude and latitude, or coordinates in a plane with y upwards."""
    geographic: bool = False
    """Whether positions are degrees."""
    hosts: frozenset[str] = frozenset()
    """Nodes that are hosts. All other nodes are switches; if a flow ends at a switch, the switch gets a
    host."""
    access_delay: int = 1_000_000
    """Propagation delay of a host's link unless the scenario says otherwise, ns."""
    groups: list[Group] = field(default_factory=list)
    """Flows that belong to the network."""
    demands: list[Demand] = field(default_factory=list)
    """Traffic matrix of the network."""
    endpoints: list[tuple[str, str]] = field(default_factory=list)
    """Default pairs of source and destination, which the flows of a scenario use in turn."""


def islands(nodes: list[str], links: list[tuple[str, str]]) -> list[list[str]]:
    """Groups of connected nodes, the largest group first. Within a group, the order is that of `nodes`."""
    near: dict[str, list[str]] = {node: [] for node in nodes}
    for a, b in links:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    rank = {node: place for place, node in enumerate(near)}
    found: list[list[str]] = []
    seen: set[str] = set()
    for node in near:
        if node in seen:
            continue
        seen.add(node)
        island, waiting = [node], [node]
        while waiting:
            for other in near[waiting.pop()]:
                if other not in seen:
                    seen.add(other)
                    island.append(other)
                    waiting.append(other)
        found.append(sorted(island, key=rank.__getitem__))
    return sorted(found, key=len, reverse=True)
