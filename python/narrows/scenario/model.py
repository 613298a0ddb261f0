"""The scenario: the content of a TOML file, after a check of each key. `resolve` converts it to a plan."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, model_validator

from narrows import retired
from narrows.errors import Expected
from narrows.scenario.expectations import Expectation
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
    Size,
    Table,
)
from narrows.scenario.limits import MAX_LINKS, MAX_SEED, MAX_SEEDS
from narrows.scenario.network import Link, Node
from narrows.scenario.problems import translate
from narrows.scenario.topologies import Topology
from narrows.scenario.traffic import Flow

Outage = Annotated[list[Duration], Field(min_length=2, max_length=2)]
"""Start and end of an outage."""


def _ordered(outages: list[list[int]]) -> list[list[int]]:
    end = -1
    for start, stop in outages:
        if start >= stop or start < end:
            raise Expected("pairs of times in order, e.g. [['10s', '20s']]")
        end = stop
    return outages


class RateStep(Table):
    """A change of the rate at a time during the run."""

    time: Duration
    """Time of the change."""
    rate: RateOrZero
    """Rate from this time on."""


def _steps(value: object) -> object:
    return [{"time": 0, "rate": value}] if isinstance(value, str) else value


class RateController(Table):
    """A rate controller at the port of a link, or equal rate controllers at several ports."""

    kind: Annotated[str, Field(min_length=1, max_length=64)]
    """Name of the rate controller's kind, e.g. 'brf'."""
    link: Name | None = None
    """The directed link whose port is controlled: a name, 'A->B', a pattern such as 'hop*', or '*' for all
    core links."""
    links: Annotated[list[Name], Field(min_length=1)] | None = None
    """Names and patterns of several links. Each link has a rate controller of its own. An alternative to
    `link`."""
    shape: (
        Annotated[
            list[RateStep],
            Field(min_length=1),
            BeforeValidator(_steps, json_schema_input_type=Rate | list[RateStep]),
        ]
        | None
    ) = None
    """Rate, or list of rates over time, to which the port is shaped (default: the link's rate)."""
    capacity: Literal["told", "measured"] = "told"
    """Whether the rate controller is given the capacity of the port (`told`), or measures it (`measured`)."""
    queue: Limit | None = None
    """Limit of each leaf queue (default: the link's limit)."""
    outages: list[Outage] = []
    """Outages of the rate controller, each as (from, to)."""
    params: dict[str, Data] = {}
    """Parameters of the rate controller, listed in docs/reference/scenario-reference.md."""

    @model_validator(mode="after")
    def _consistent(self) -> RateController:
        _ordered(self.outages)
        if (self.link is None) == (self.links is None):
            raise Expected("one of link and links")
        return self

    @property
    def named(self) -> list[tuple[str, str]]:
        """The names and patterns that `link` or `links` has, each with its key in this table."""
        if self.links is None:
            return [(self.link or "", "link")]
        return [(name, f"links.{i}") for i, name in enumerate(self.links)]


class Sdn(Table):
    """The SDN controller."""

    poll: Period | None = None
    """Time between two polls (default: the switch's control period, but at most 100 ms)."""
    delay: Delay = 1_000_000
    """One-way delay between the SDN controller and any switch."""
    outages: list[Outage] = []
    """Outages of the SDN controller, each as (from, to)."""

    @model_validator(mode="after")
    def _outages_in_order(self) -> Sdn:
        _ordered(self.outages)
        return self


def _all(value: object) -> object:
    if value == "all":
        return ["all"]
    if not isinstance(value, list):
        raise Expected("'all' or a list of names")
    return value


class Probes(Table):
    """The data that a run records."""

    interval: PeriodOrZero = 100_000_000
    """Sampling interval; 0 disables samples."""
    links: (
        Annotated[list[Name], BeforeValidator(_all, json_schema_input_type=Literal["all"] | list[Name])]
        | None
    ) = None
    """Links to sample (default: all links if there are at most 16, otherwise bottlenecks and controlled
    links)."""
    flows: Flag = True
    """Sample the first 1000 flows of a run; flows of `arrivals` are never sampled."""
    traces: Flag = False
    """Whether the internal state of congestion and rate controllers is recorded (table `traces`)."""
    acks: (
        Annotated[list[Name], BeforeValidator(_all, json_schema_input_type=Literal["all"] | list[Name])]
        | None
    ) = None
    """Names of the TCP flows whose state is recorded after each ACK (table `acks`), or 'all'. Simulator
    only."""
    ack_rows: Annotated[Int, Field(ge=2, le=100_000_000)] = 1_000_000
    """Maximum number of rows of the table `acks` in a run. Each time the table is full, every second row is
    dropped, and from then on half as many ACKs are recorded."""


class Capture(Table):
    """Packets that a run records for Wireshark, and logs of QUIC. See [captures](captures.md)."""

    links: list[Name] = []
    """Links to capture: the packets that arrive at the end of each link are recorded."""
    hosts: list[Name] = []
    """Nodes to capture: the packets that the flows of each node send and receive are recorded. On real
    stacks, all IPv4 packets of the node are recorded."""
    snap: Annotated[Size, Field(ge=64, le=65535)] = 128
    """Snap length: maximum number of recorded bytes per packet. Headers have at most 100 bytes. The payload
    of simulated TCP is recorded as zeros."""
    qlog: Flag = False
    """Whether the sender of each QUIC flow writes a [qlog](quic.md#qlog)."""

    @model_validator(mode="after")
    def _somewhere(self) -> Capture:
        if not self.links and not self.hosts and not self.qlog:
            raise Expected("at least one of links, hosts and qlog")
        return self


class Kernel(Table):
    """How the kernel backend builds the network; the simulator ignores it."""

    forwarding: Literal["route", "bridge", "ovs"] = "route"
    """How forwarding nodes forward: IP routing, a Linux bridge, or Open vSwitch."""
    datapath: Literal["system", "netdev"] | None = None
    """Datapath of Open vSwitch: `system` is the kernel module, `netdev` runs in user space
    (default: `system` for the vm backend, `netdev` for the kernel backend)."""
    interval: Period = 10_000_000
    """Sampling interval of sockets and queues."""
    tool: Literal["own", "iperf3"] = "own"
    """Program that generates the flows: `own` is Narrows' own program. With `iperf3`, flows cannot have a
    `count` above 1, a size or pauses."""
    delay: Literal["relay", "netem"] | None = None
    """Implementation of delay and loss: `relay` is a program with the simulator's link model, `netem` the
    kernel's own emulation (default: `netem` for the vm backend, `relay` for the kernel backend)."""
    host_queue: Literal["fifo", "fq"] = "fifo"
    """Queueing discipline of a host's port, if the queue of its link is `infinite`. `fq` holds packets until
    their departure times, so senders of `brf` also pace the first ten segments of a connection."""


class Case(Table):
    """A named variation of the scenario."""

    name: Name
    """Name of the case in results."""
    set: dict[str, Data]
    """Dotted keys that the case sets, and their values."""


class Sweep(Table):
    """The runs of a scenario: each case, with each combination of the values in `vary`, with each seed."""

    seeds: Annotated[Int, Field(ge=1, le=MAX_SEEDS)] = 1
    """Number of seeds per point: `seed`, `seed` + 1, ..."""
    vary: dict[str, Annotated[list[Data], Field(min_length=1)]] = {}
    """Dotted keys of the scenario, each with a list of values. All combinations of the values run."""
    case: list[Case] = []
    """Variations that change several keys at once."""

    @model_validator(mode="after")
    def _distinct(self) -> Sweep:
        names = [case.name for case in self.case]
        if len(set(names)) != len(names):
            raise Expected("cases with different names")
        return self


class Scenario(Table):
    """A scenario. `narrows.load` reads it from a file. In Python, the keys of the file are arguments.

    Raises:
        ScenarioError: if a key or value is wrong.
    """

    name: FileName = "scenario"
    """Name of the results folder."""
    duration: PositiveDuration = 30_000_000_000
    """Length of a run."""
    seed: Annotated[Int, Field(ge=0, le=MAX_SEED)] = 1
    """Seed of all random choices."""
    warmup: Duration | None = None
    """Start of the measurement interval (default: 10 % of the run, but at least 10 times the longest RTT and
    at most half of the run)."""
    topology: Topology | None = None
    """Topology: a layout (`kind`), or a published network (`name`)."""
    nodes: list[Node] = []
    """Nodes. Nodes that are ends of links need no entry."""
    links: Annotated[list[Link], Field(max_length=MAX_LINKS)] = []
    """Links in addition to the topology's links."""
    ecmp: Flag = False
    """Whether flows are spread over equal paths, as in a network whose switches hash addresses and ports.
    Each flow takes one of the shortest paths, chosen at random. The path of its ACKs is chosen independently.
    If false, all flows between two nodes take the same path. Simulator only."""
    flows: Annotated[list[Flow], Field(max_length=100_000)] = []
    """Flows of the scenario."""
    rate_controllers: Annotated[list[RateController], Field(max_length=1024)] = []
    """Rate controllers at ports of switches."""
    sdn: Sdn | None = None
    """The SDN controller (default: none)."""
    receive_buffer: ReceiveBuffer | None = None
    """Receive buffer of every TCP connection (Linux tcp_rmem). Half of the buffer is advertised as the
    window. Data after a missing segment occupies part of the buffer. "auto" is the larger of two sizes:
    Linux's 6 MiB, and four times what the largest path holds (its BDP and its queue). If this key is not set,
    real sockets have the "auto" size. Simulated receivers then open their window to half of the "auto" size.
    After that, they no longer limit the sender."""
    probes: Probes = Probes.model_construct()
    """Data that each run records."""
    capture: Capture | None = None
    """Packets that each run records for Wireshark. Not with `--on vm`."""
    kernel: Kernel | None = None
    """How the kernel backend builds the network (default: the defaults of its keys)."""
    sweep: Sweep | None = None
    """The runs of the scenario: cases, varied values and seeds (default: one run)."""
    expect: Annotated[list[Expectation], Field(max_length=1000)] = []
    """Conditions that the results must meet. The conditions do not change the runs."""

    _source: str = PrivateAttr(default="scenario")

    def __init__(self, **data: Any) -> None:
        data = retired.scenario(data)
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise translate(error, data, Scenario) from None

    @property
    def source(self) -> str:
        """The scenario's file, for messages and relative paths."""
        return self._source

    def with_source(self, source: str) -> Scenario:
        """The same scenario with `source` as its file."""
        self._source = source
        return self

    def beside_real(self) -> Scenario:
        """The same scenario with the receive buffers of real sockets, for a comparison with real stacks."""
        if self.receive_buffer is not None:
            return self
        return self.model_copy(update={"receive_buffer": AUTO})

    def raw(self) -> dict[str, Any]:
        """Only the keys that were set, with units, as in a scenario file."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def facts(self) -> dict[str, Any]:
        """All keys that determine the results, with units. These are all keys except the expectations."""
        return {key: value for key, value in self.full().items() if key != "expect"}

    def full(self) -> dict[str, Any]:
        """All keys with units, including those with default values."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
