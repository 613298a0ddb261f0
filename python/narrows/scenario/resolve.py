"""Converts a scenario into the plan that a backend runs.

In a plan, indices replace names, and defaults are explicit. `crates/narrows-plan` defines the plan.
Times are in ns, rates in L3 bytes/s, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from narrows import _native
from narrows.errors import ScenarioError
from narrows.plan import Plan
from narrows.scenario import hub
from narrows.scenario.model import Scenario

HOST = _native.HOST
"""Suffix of the names of hosts in a published network. The rest of the name is the name of the host's
switch."""


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a link."""

    name: str
    """Name of the link in results."""
    source: int
    """Sending node."""
    to: int
    """Receiving node."""
    rate: int
    """Rate at the start, or the mean rate of a trace; bit/s."""
    delay: int
    """Propagation delay at the start, ns."""


@dataclass(frozen=True)
class Network:
    """The network of a plan, for drawings and tables."""

    nodes: list[str]
    """Names of the nodes."""
    links: list[Direction]
    """Directed links. The two directions of a link follow each other."""
    positions: dict[str, tuple[float, float]]
    """Positions of the nodes of a published network: longitude and latitude, or coordinates in a plane with y
    upwards."""
    geographic: bool
    """Whether positions are degrees."""
    hosts: set[str]
    """The nodes that a published network declares to be hosts, and the hosts of its switches."""


@dataclass(frozen=True, slots=True)
class Path:
    """The directed links of a flow's paths."""

    forth: list[int]
    """Path of the flow's data."""
    back: list[int]
    """Path of the flow's ACKs."""


class Survey:
    """A plan, and the network and paths from which it was made."""

    def __init__(self, made: _native.Survey) -> None:
        self._made = made

    @cached_property
    def plan(self) -> Plan:
        """The plan for the backend."""
        return self._made.plan()

    @cached_property
    def graph(self) -> Network:
        """Network of the plan."""
        ways = zip(self.plan["links"], self._made.ways(), strict=True)
        links = [Direction(link["name"], link["from"], link["to"], *way) for link, way in ways]
        return Network(
            self.plan["nodes"],
            links,
            self._made.positions(),
            self._made.is_geographic,
            self._made.hosts(),
        )

    @cached_property
    def paths(self) -> list[Path]:
        """The links of each flow of the plan."""
        return [Path(forth, back) for forth, back in self._made.paths()]

    def in_scenario(self, error: ScenarioError) -> ScenarioError:
        """The same error. In its key, the number of the scenario's entry replaces the plan's number."""
        return ScenarioError(error.message, self._made.key_in_scenario(error.key), error.source)


def resolve(
    scenario: Scenario,
    congestion_controllers: Iterable[str] = (),
    rate_controllers: Iterable[str] = (),
    kernel: str = "",
) -> Plan:
    """The plan of one run.

    Args:
        scenario: the scenario, whose sweep is ignored.
        congestion_controllers: names that `cc` may take (empty: names are not checked).
        rate_controllers: names that a rate controller's `kind` may take (empty: names are not checked).
        kernel: the kernel that offers these congestion controllers, as messages call it (empty: the simulator
            offers them).

    Raises:
        ScenarioError: if names, routes or values contradict each other.
    """
    return survey(scenario, congestion_controllers, rate_controllers, kernel).plan


def survey(
    scenario: Scenario,
    congestion_controllers: Iterable[str] = (),
    rate_controllers: Iterable[str] = (),
    kernel: str = "",
) -> Survey:
    """Like `resolve`, but also returns the network and the paths."""
    return Survey(
        scenario.checked.survey(
            list(congestion_controllers), list(rate_controllers), kernel, hub.needed([scenario])
        )
    )
