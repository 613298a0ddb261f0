"""The scenario: what a TOML file says, typed and checked key by key. `resolve` works out what it means."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, model_validator

from narrows.errors import Expected
from narrows.scenario.fields import (
    AUTO,
    Data,
    Delay,
    Duration,
    FileName,
    Flag,
    Int,
    Limit,
    Name,
    Period,
    PeriodOrZero,
    PositiveDuration,
    Rate,
    RateOrZero,
    ReceiveBuffer,
    Table,
)
from narrows.scenario.network import Link, Node
from narrows.scenario.problems import translate
from narrows.scenario.topologies import Topology
from narrows.scenario.traffic import Flow

MAX_SEEDS = 100_000
MAX_SEED = 2**63 - 1
"""Of a sweep."""
MAX_LINKS = 50_000
"""Most links of a scenario."""

Outage = Annotated[list[Duration], Field(min_length=2, max_length=2)]
"""From and to."""


def _ordered(outages: list[list[int]]) -> list[list[int]]:
    end = -1
    for start, stop in outages:
        if start >= stop or start < end:
            raise Expected("pairs of times in order, e.g. [['10s', '20s']]")
        end = stop
    return outages


class RateStep(Table):
    """A rate from a time on."""

    time: Duration
    """When."""
    rate: RateOrZero
    """Rate from then on."""


def _steps(value: object) -> object:
    return [{"time": 0, "rate": value}] if isinstance(value, str) else value


class Controller(Table):
    """A rate controller at the port of a link, or equal ones at several."""

    kind: Annotated[str, Field(min_length=1, max_length=64)]
    """Its name, e.g. 'brf'."""
    link: Name | None = None
    """The link (direction) it controls: a name, 'A->B', a pattern as 'hop*', or '*' for all core links."""
    links: Annotated[list[Name], Field(min_length=1)] | None = None
    """In place of `link`: several, each with a controller of its own; names and patterns."""
    shape: (
        Annotated[
            list[RateStep],
            Field(min_length=1),
            BeforeValidator(_steps, json_schema_input_type=Rate | list[RateStep]),
        ]
        | None
    ) = None
    """Shape the port to this rate, or to these over time; the link's own rate if left out."""
    capacity: Literal["told", "measured"] = "told"
    """Whether the controller is told the capacity or has to measure it."""
    queue: Limit | None = None
    """Limit of each leaf queue; the link's own if left out."""
    outages: list[Outage] = []
    """When it is out of order (from, to)."""
    params: dict[str, Data] = {}
    """Its parameters; docs/reference/scenario-reference.md lists those of BRF."""

    @model_validator(mode="after")
    def _consistent(self) -> Controller:
        _ordered(self.outages)
        if (self.link is None) == (self.links is None):
            raise Expected("one of link and links")
        return self

    @property
    def named(self) -> list[tuple[str, str]]:
        """Names and patterns of its links, each with its key in this table."""
        if self.links is None:
            return [(self.link or "", "link")]
        return [(name, f"links.{i}") for i, name in enumerate(self.links)]


class Sdn(Table):
    """The SDN controller of the domain."""

    poll: Period | None = None
    """Time between two polls; the smaller of the switch's control period and 100 ms if left out."""
    delay: Delay = 1_000_000
    """Between the controller and any switch, one way."""
    outages: list[Outage] = []
    """When it is out of order (from, to)."""

    @model_validator(mode="after")
    def _outages_in_order(self) -> Sdn:
        _ordered(self.outages)
        return self


def _all(value: object) -> object:
    if value == "all":
        return ["all"]
    if not isinstance(value, list):
        raise Expected("'all' or a list of links")
    return value


class Probes(Table):
    """What is recorded."""

    interval: PeriodOrZero = 100_000_000
    """Time between two samples; 0: no samples."""
    links: (
        Annotated[list[Name], BeforeValidator(_all, json_schema_input_type=Literal["all"] | list[Name])]
        | None
    ) = None
    """Links to sample; if left out all of up to 16, else bottlenecks and those with controllers."""
    flows: Flag = True
    """Sample flows (the first 1000 of a run; those of `arrivals` never)."""
    traces: Flag = False
    """Record the state of controllers too."""


class Kernel(Table):
    """How the kernel backend makes the network; the simulator does not need it."""

    forwarding: Literal["route", "bridge", "ovs"] = "route"
    """What nodes do that only forward: IP routing, a Linux bridge, or Open vSwitch."""
    datapath: Literal["system", "netdev"] | None = None
    """Open vSwitch's datapath, by its own names: the kernel's module, or the one in user space. On the vm
    backend the module if left out, otherwise that in user space."""
    interval: Period = 10_000_000
    """Time between two looks at sockets and queues."""
    tool: Literal["own", "iperf3"] = "own"
    """What makes the flows: sockets of our own, or iperf3 (single flows without a size or pauses only)."""
    delay: Literal["relay", "netem"] | None = None
    """What delays and loses packets: a program of ours, which is the simulator's link, or where it can the
    kernel's netem. On the vm backend netem if left out, otherwise the relay."""


class Case(Table):
    """A named variation."""

    name: Name
    """Its name in results."""
    set: dict[str, Data]
    """Keys (dotted paths) and their values."""


class Sweep(Table):
    """Which runs a scenario stands for: (cases or one) x (product of `vary`) x seeds."""

    seeds: Annotated[Int, Field(ge=1, le=MAX_SEEDS)] = 1
    """How many seeds per point: `seed`, `seed` + 1, ..."""
    vary: dict[str, Annotated[list[Data], Field(min_length=1)]] = {}
    """Keys (dotted paths) and the values each takes; all combinations run."""
    case: list[Case] = []
    """Variations that change several keys at once."""

    @model_validator(mode="after")
    def _distinct(self) -> Sweep:
        names = [case.name for case in self.case]
        if len(set(names)) != len(names):
            raise Expected("cases with different names")
        return self


class Scenario(Table):
    """A scenario, from a file by `narrows.load`, or in Python with the same keys as arguments.

    Raises:
        ScenarioError: if a key or value is wrong.
    """

    name: FileName = "scenario"
    """Name of the results' folder."""
    duration: PositiveDuration = 30_000_000_000
    """Length of a run."""
    seed: Annotated[Int, Field(ge=0, le=MAX_SEED)] = 1
    """Seed of every random choice."""
    warmup: Duration | None = None
    """Start of the measurement interval; 10 % of the run, at least 10 of the longest RTT, if left out."""
    topology: Topology | None = None
    """A layout by kind, or a published topology by name."""
    nodes: list[Node] = []
    """Nodes; those that links mention need no entry."""
    links: Annotated[list[Link], Field(max_length=MAX_LINKS)] = []
    """Links, besides those of the topology."""
    flows: Annotated[list[Flow], Field(max_length=100_000)] = []
    """Flows."""
    controllers: Annotated[list[Controller], Field(max_length=1024)] = []
    """Rate controllers at ports of switches."""
    sdn: Sdn | None = None
    """The SDN controller; none if left out."""
    receive_buffer: ReceiveBuffer | None = None
    """Receive buffer of every TCP connection (Linux tcp_rmem): half of it is offered, and what waits behind a
    hole takes of it. "auto" is Linux's 6 MiB, or four times what the hungriest flow's path holds. If left
    out, real sockets have as much; simulated receivers open their window to half of it, and limit nobody from
    there on."""
    probes: Probes = Probes()
    """What to record."""
    kernel: Kernel | None = None
    """How the kernel backend makes the network; defaults if left out."""
    sweep: Sweep | None = None
    """Runs with other values."""

    _source: str = PrivateAttr(default="scenario")

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise translate(error, data, Scenario) from None

    @property
    def source(self) -> str:
        """The file it came from, for messages and relative paths."""
        return self._source

    def with_source(self, source: str) -> Scenario:
        """The same scenario, known to come from `source`."""
        self._source = source
        return self

    def beside_real(self) -> Scenario:
        """The same, to be simulated beside real sockets: receivers have those sockets' memory."""
        if self.receive_buffer is not None:
            return self
        return self.model_copy(update={"receive_buffer": AUTO})

    def raw(self) -> dict[str, Any]:
        """What was given, in units as people write them: what a scenario file would hold."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def full(self) -> dict[str, Any]:
        """The same with every default filled in."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
