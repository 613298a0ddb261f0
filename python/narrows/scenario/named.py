"""Converts a published network, given by `name` in the table `[topology]`, into links and hosts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from narrows import units
from narrows.errors import Expected, ScenarioError, found
from narrows.scenario.fields import MOST_DELAY, Delay, Float, Int, Rate, Table
from narrows.scenario.network import JitterField, Limited, Link, Queue
from narrows.topology import catalogue
from narrows.topology.facts import Facts

ACCESS_FACTOR = 10
"""Ratio of the rate of access links to the rate of the topology's fastest link."""
LEAST_RATE = 8
"""Lowest rate, bit/s. It is one byte per second, because rates in plans are whole bytes per second."""
RATES = f"from {units.format_rate(LEAST_RATE)} to {units.format_rate(units.MAX_BITS_PER_SEC)}"
"""Rates that a scaled link or demand may have, in words."""
HOST = ".host"
"""Suffix of the names of hosts. The rest of the name is the name of the host's switch."""


def _delay(value: object) -> object:
    if value == "distance":
        return value
    try:
        nanos = units.parse_duration(value)
    except Expected:
        raise Expected("'distance' or a time such as '20ms'") from None
    if nanos > MOST_DELAY:
        raise Expected(f"a time of at most {units.format_duration(MOST_DELAY)}")
    return nanos


def _written(value: str | int) -> str:
    return value if isinstance(value, str) else units.format_duration(value)


Distance = Annotated[
    Literal["distance"] | int,
    BeforeValidator(_delay, json_schema_input_type=Literal["distance"] | Delay),
    PlainSerializer(_written, when_used="json"),
]
"""A delay in nanoseconds, or `distance` for delays that are computed from the lengths of links."""


class Access(Table):
    """The link between a host and its switch."""

    rate: Rate | None = None
    """Rate (default: ten times the rate of the topology's fastest link)."""
    delay: Delay | None = None
    """One-way propagation delay (default: 930us for Abilene, 4ms for gfc-1 and gfc-2, otherwise 1ms)."""
    jitter: JitterField | None = None
    """Random extra delay of each packet that leaves the host: its maximum or a table. With jitter, runs with
    different seeds differ."""


class Named(Table):
    """A published network.

    The keys `from` and `to` of flows are names of nodes. Each switch that is an end of a flow gets a host.
    Links are called `A->B` and `B->A`.
    """

    kind: Literal["named"] = "named"
    """Optional if there is a `name`."""
    name: Annotated[str, Field(min_length=1, max_length=100)]
    """abilene, abilene-zoo, gfc-1, gfc-2, fat-tree, or a name from topohub such as 'topozoo/Geant2012'."""
    k: Annotated[Int, Field(ge=2, le=32)] | None = None
    """Fat tree: number of ports of each switch; an even number."""
    rate: Rate | None = None
    """L3 rate of every link; required if the topology has no capacities (fat-tree, topohub)."""
    scale: Annotated[Float, Field(gt=0, le=1e6)] | None = None
    """Factor by which the topology's own capacities are multiplied. An alternative to `rate`."""
    queue: Queue | None = None
    """Queue of every link in both directions (default: one BDP)."""
    delay: Distance = "distance"
    """One-way propagation delay of links. With 'distance', a link has 5 us per km of its length, or the
    topology's own delay if the topology has no lengths. With a time such as '20ms', all links have this
    delay."""
    access: Access = Access.model_construct()
    """The links of the hosts. These links never drop packets."""

    @model_validator(mode="after")
    def _consistent(self) -> Named:
        if self.rate is not None and self.scale is not None:
            raise Expected("one of rate and scale")
        if self.k is not None and self.k % 2:
            raise Expected("an even k")
        return self

    def facts(self) -> Facts:
        """The facts of the topology.

        Raises:
            ScenarioError: if there is no such topology.
        """
        try:
            return catalogue.find(self.name, self.k)
        except ScenarioError as error:
            raise error.at("topology") from None

    def links(self) -> list[Link]:
        """The links of the topology.

        Raises:
            ScenarioError: if the given keys do not determine their rates.
        """
        queue = self.queue or Limited.one_bdp()
        made = []
        for edge in self.facts().edges:
            delay = edge.nanos if isinstance(self.delay, str) else self.delay
            made.append(
                Link.model_construct(
                    between=[edge.a, edge.b],
                    rate=self._rate(edge.rate, edge.a, edge.b),
                    delay=delay,
                    queue=queue,
                )
            )
        return made

    def _rate(self, own: int | None, a: str, b: str) -> int:
        if self.rate is not None:
            return self.rate
        if own is None:
            unused = "; scale has no effect" if self.scale is not None else ""
            raise ScenarioError(
                f"found nothing, expected a rate: {found(self.name)} has no capacities of its own{unused}",
                "topology.rate",
            )
        scaled = round(own * (1.0 if self.scale is None else self.scale))
        if not LEAST_RATE <= scaled <= units.MAX_BITS_PER_SEC:
            raise ScenarioError(
                f"found {self.scale:g} (the link {a}-{b} would have {units.format_rate(scaled)}), "
                f"expected a scale that gives a rate {RATES}",
                "topology.scale",
            )
        return scaled

    def hosts(self, ends: Iterable[str], links: list[Link]) -> tuple[dict[str, str], list[Link]]:
        """For each switch among `ends`, the name of its host, and the links of these hosts."""
        facts = self.facts()
        switches = set(facts.nodes) - facts.hosts
        hosts: dict[str, str] = {}
        for end in ends:
            switch = end.removesuffix(HOST)
            if switch in switches:
                hosts[end] = f"{switch}{HOST}"
        fastest = max((link.rate or 0 for link in links), default=0)
        traits: dict[str, Any] = {
            "rate": self.access.rate or min(units.MAX_BITS_PER_SEC, ACCESS_FACTOR * fastest),
            "delay": facts.access_delay if self.access.delay is None else self.access.delay,
            "queue": Limited.endless(),
            "jitter": self.access.jitter,
        }
        made = [
            Link.model_construct(between=[host, host.removesuffix(HOST)], **traits)
            for host in dict.fromkeys(hosts.values())
        ]
        return hosts, made

    def core(self) -> list[tuple[str, str]]:
        """The links from switches of the topology to its other nodes, as (from, to)."""
        facts = self.facts()
        both = [pair for edge in facts.edges for pair in ((edge.a, edge.b), (edge.b, edge.a))]
        return [(a, b) for a, b in both if a not in facts.hosts]
