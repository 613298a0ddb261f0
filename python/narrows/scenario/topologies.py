"""Layouts: topologies that convert a few keys into nodes, links and default ends of flows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from narrows import units
from narrows.errors import Expected
from narrows.scenario.fields import Delay, Int, Rate, Rtt
from narrows.scenario.named import ACCESS_FACTOR, Named
from narrows.scenario.network import Limited, Link, Traits

_OWN_KEYS = frozenset(Traits.model_fields)


@dataclass
class Layout:
    """The expansion of a topology."""

    links: list[Link]
    """Links of the expanded topology."""
    endpoints: list[tuple[str, str]] = field(default_factory=list)
    """Default ends of flows, as pairs of (from, to). If entry i of the flows has no `from` or `to`, it takes
    that end from pair i modulo the number of pairs."""
    bottlenecks: list[str] = field(default_factory=list)
    """Names of the intended bottleneck links."""


class Bottlenecked(Traits):
    """Keys of the bottleneck link; access links are fast and never drop."""

    rate: Rate | None = None
    """L3 rate of each bottleneck link; either this or a `trace` is required."""
    access_rate: Rate | None = None
    """L3 rate of the access links (default: ten times the bottleneck's highest rate)."""

    @model_validator(mode="after")
    def _rate_from_one_place(self) -> Bottlenecked:
        if (self.rate is None) == (self.trace is None):
            raise Expected("a rate or a trace")
        return self

    def tight(self, between: list[str], name: str | None, delay: int) -> Link:
        """A bottleneck link with this topology's properties. By default its queue is one BDP."""
        given: dict[str, Any] = {
            key: getattr(self, key) for key in self.model_fields_set & _OWN_KEYS if key != "delay"
        }
        given.setdefault("queue", Limited.one_bdp())
        return Link.model_construct(name=name, between=between, **(given | {"delay": delay}))

    def access(self, between: list[str], delay: int, rate: int) -> Link:
        """The access link between these two nodes."""
        return Link.model_construct(
            between=between, rate=self.access_rate or rate, delay=delay, queue=Limited.endless()
        )

    def widest(self, trace_peak: int | None) -> int:
        """Default rate of access links: `ACCESS_FACTOR` times the highest rate of the bottleneck."""
        rates = [change.rate for change in self.at if change.rate is not None]
        return min(units.MAX_BITS_PER_SEC, ACCESS_FACTOR * max([self.rate or 0, trace_peak or 0, *rates]))


class Dumbbell(Bottlenecked):
    """Senders s1..sn, routers r1 and r2, receivers d1..dn; r1->r2 is called `bottleneck`."""

    kind: Literal["dumbbell"]
    pairs: Annotated[Int, Field(ge=1, le=4096)] | None = None
    """Number of pairs of hosts (default: the number of `rtts` or of `flows`)."""
    rtt: Rtt | None = None
    """Two-way propagation delay between the hosts of a pair. Alternatives are `rtts`, and `delay` (the delay
    of r1->r2)."""
    rtts: Annotated[list[Rtt], Field(min_length=1, max_length=4096)] | None = None
    """Two-way propagation delay of each pair."""

    @model_validator(mode="after")
    def _one_delay(self) -> Dumbbell:
        if sum(value is not None for value in (self.rtt, self.rtts, self.delay)) != 1:
            raise Expected("one of rtt, rtts and delay")
        if self.pairs is not None and self.rtts is not None and self.pairs != len(self.rtts):
            raise Expected(f"as many rtts as pairs ({self.pairs})")
        return self

    def layout(self, flows: int, trace_peak: int | None) -> Layout:
        """The delay of the bottleneck link is `delay`, or half of the smallest one-way delay of all pairs.

        The rest of a pair's delay is divided between the access links of the pair.
        """
        pairs = self.pairs or (len(self.rtts) if self.rtts else min(max(1, flows), 4096))
        one_way = [rtt // 2 for rtt in (self.rtts or [self.rtt or 0] * pairs)]
        middle = self.delay if self.delay is not None else min(one_way) // 2
        links = [self.tight(["r1", "r2"], "bottleneck", middle)]
        rate = self.widest(trace_peak)
        for i in range(pairs):
            rest = 0 if self.delay is not None else one_way[i] - middle
            links.append(self.access([f"s{i + 1}", "r1"], rest // 2, rate))
            links.append(self.access(["r2", f"d{i + 1}"], rest - rest // 2, rate))
        ends = [(f"s{i + 1}", f"d{i + 1}") for i in range(pairs)]
        return Layout(links, ends, ["bottleneck"])


class ParkingLot(Bottlenecked):
    """Routers r1..r(n+1) with bottleneck links hop1..hopn between them.

    The hosts are the pair s0-d0, whose flows cross all hops, and a pair si-di for each hop i. The flows of
    the pair si-di cross only hop i.
    """

    kind: Literal["parking-lot"]
    hops: Annotated[Int, Field(ge=1, le=1024)]
    """Number of bottleneck links in series."""
    delay: Delay | None = None
    """One-way propagation delay of each hop; required."""
    access_delay: Delay = 1_000_000
    """One-way propagation delay of each access link."""

    @model_validator(mode="after")
    def _has_delay(self) -> ParkingLot:
        if self.delay is None:
            raise Expected("a delay")
        return self

    def layout(self, flows: int, trace_peak: int | None) -> Layout:  # noqa: ARG002 (one signature for all)
        """The nodes and links. By default, flow 0 crosses all hops, and flow i crosses hop i."""
        rate, n = self.widest(trace_peak), self.hops
        hops = [self.tight([f"r{i}", f"r{i + 1}"], f"hop{i}", self.delay or 0) for i in range(1, n + 1)]
        ends = [("s0", "d0"), *((f"s{i}", f"d{i}") for i in range(1, n + 1))]
        access = [self.access(["s0", "r1"], self.access_delay, rate)]
        access.append(self.access([f"r{n + 1}", "d0"], self.access_delay, rate))
        for i in range(1, n + 1):
            access.append(self.access([f"s{i}", f"r{i}"], self.access_delay, rate))
            access.append(self.access([f"r{i + 1}", f"d{i}"], self.access_delay, rate))
        return Layout(hops + access, ends, [f"hop{i}" for i in range(1, n + 1)])


class Star(Traits):
    """Hosts h1..hn around a switch `hub`.

    If `from` and `to` are not set, the flows go from h2, h3, ... to h1 (incast).
    """

    kind: Literal["star"]
    leaves: Annotated[Int, Field(ge=2, le=4096)]
    """Number of hosts."""
    rtt: Rtt | None = None
    """Two-way propagation delay between two hosts. Either this key or `delay` (the delay of one link) is
    required."""

    @model_validator(mode="after")
    def _complete(self) -> Star:
        if (self.rate is None) == (self.trace is None):
            raise Expected("a rate or a trace")
        if (self.rtt is None) == (self.delay is None):
            raise Expected("one of rtt and delay")
        return self

    def layout(self, flows: int, trace_peak: int | None) -> Layout:  # noqa: ARG002 (one signature for all)
        """Equal links. They begin at the hub, so their loss and trace apply to packets to the hosts."""
        delay = self.delay if self.delay is not None else (self.rtt or 0) // 4
        traits: dict[str, Any] = {key: getattr(self, key) for key in self.model_fields_set & _OWN_KEYS}
        traits.setdefault("queue", Limited.one_bdp())
        hosts = [f"h{i}" for i in range(1, self.leaves + 1)]
        links = [Link.model_construct(between=["hub", h], **(traits | {"delay": delay})) for h in hosts]
        return Layout(links, [(h, "h1") for h in hosts[1:]], ["hub->h1"])


def _by_name(value: object) -> object:
    """Add the kind `named` to a table that has a name instead of a kind."""
    if isinstance(value, dict) and "name" in value and "kind" not in value:
        return {"kind": "named"} | value
    return value


_topologies = Annotated[Dumbbell | ParkingLot | Star | Named, Field(discriminator="kind")]

Topology = Annotated[_topologies, BeforeValidator(_by_name, json_schema_input_type=_topologies)]
"""One of the layouts by kind, or a published network by name."""

TOPOLOGIES: dict[str, type[Dumbbell] | type[ParkingLot] | type[Star] | type[Named]] = {
    "dumbbell": Dumbbell,
    "parking-lot": ParkingLot,
    "star": Star,
    "named": Named,
}
"""Models by kind."""
