"""Models of flows and of their applications' traffic."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from narrows import stacks, units
from narrows.congestion import class_file
from narrows.errors import Expected
from narrows.packets import FULL_PACKET, INITIAL_WINDOW, MSS
from narrows.scenario.beginning import Beginning, check_time
from narrows.scenario.fields import (
    Duration,
    Flag,
    Float,
    Int,
    Name,
    Period,
    PositiveDuration,
    Rate,
    RateOrZero,
    Size,
    Table,
)
from narrows.scenario.program import Program
from narrows.scenario.sizes import MEASURED

SNDLIB = "sndlib"
"""The traffic matrix that comes with a topology from SNDlib."""
MAX_FLOWS = 1_000_000
"""Maximum number of flows in a run."""
MAX_ENTRIES = 100_000
"""Maximum number of flows after all entries are expanded. A flow with a `count` counts as one flow."""
MAX_INITIAL_WINDOW = 10_000
"""Largest initial window of TCP, packets."""
TCP_ONLY = {"cc", "ecn", "pacing", "receive_window", "mss", "initial_window", "return_path"}
"""Keys that UDP flows cannot have."""

NOT_OF_PROGRAMS = {
    "transport",
    "rate",
    "packet",
    "count",
    "spacing",
    "start_jitter",
    "size",
    "app",
    "arrivals",
} | {*("demands", "groups", "pattern", "pacing", "receive_window", "mss", "service")}
"""Keys that flows of programs cannot have. Either the program decides them, or they turn one entry into
several flows."""

NOT_QUIC = {"ecn", "pacing", "mss", "initial_window"}
"""Keys that TCP flows can have and QUIC flows cannot, because the QUIC stack decides these properties."""


class AppChange(Table):
    """A change of an application during the run."""

    time: Duration | None = None
    """Time of the change. With `when`, the time from the beginning of the phase to the change (default:
    0)."""
    when: Beginning | None = None
    """The beginning of a phase of a flow, at which the change happens. Only simulations support it."""
    rate: RateOrZero | None = None
    """Rate of the application from this time on; '0mbit' is a pause (default: no limit)."""

    @model_validator(mode="after")
    def _timed(self) -> AppChange:
        check_time(self.time, self.when)
        return self


class App(Table):
    """An application that sends at a constant rate, only in its on periods, or at a rate that changes."""

    rate: Rate | None = None
    """Rate of the application while it is on. It is required, except with `at` (default: no limit)."""
    on: Period | None = None
    """Duration of an on period (default: always on)."""
    off: PositiveDuration | None = None
    """Duration of an off period."""
    at: list[AppChange] = []
    """Changes of the rate during the run, in order of time."""

    @model_validator(mode="after")
    def _periods(self) -> App:
        if (self.on is None) != (self.off is None):
            raise Expected("both on and off, or neither")
        if self.rate is None and not self.at:
            raise Expected("a rate, or changes of the rate (at = [...])")
        if self.on is not None and self.at:
            raise Expected("either on and off, or changes of the rate (at = [...])")
        return self


class SizeDistribution(Table):
    """Sizes of arriving flows or requested objects, application bytes."""

    distribution: Literal["fixed", "exponential", "pareto", "web-search", "data-mining", "hadoop"]
    """Kind of the distribution. The last three were measured in data centres: a web search cluster
    (DCTCP, SIGCOMM 2010), a data mining cluster (VL2, SIGCOMM 2009), and Facebook's Hadoop cluster (Roy et
    al., SIGCOMM 2015). The points of these distributions are those that pFabric and HPCC use."""
    mean: Size | None = None
    """Mean size. For `fixed`, it is the only size. Measured distributions are scaled to this mean
    (default: they are not scaled)."""
    shape: Annotated[Float, Field(gt=1, le=100)] = 1.8
    """Shape of the Pareto distribution, above 1."""

    @model_validator(mode="after")
    def _with_mean(self) -> SizeDistribution:
        if self.mean is None and self.distribution not in MEASURED:
            raise Expected(f"a mean with distribution = '{self.distribution}'")
        return self


def _size(value: object) -> object:
    return {"distribution": "fixed", "mean": value} if isinstance(value, str) else value


class Arrivals(Table):
    """Flows that arrive as a Poisson process."""

    rate: Annotated[Float, Field(gt=0, le=1e6)]
    """Arrival rate, flows per second."""
    size: Annotated[SizeDistribution, BeforeValidator(_size, json_schema_input_type=Size | SizeDistribution)]
    """Sizes of the flows: one size, or a table with a distribution."""


class Requests(Table):
    """Objects that the receiver requests on one connection, as a browser does with HTTP/3.

    Each object has a stream of its own. The table `requests` has the time of each object.
    """

    size: Annotated[SizeDistribution, BeforeValidator(_size, json_schema_input_type=Size | SizeDistribution)]
    """Sizes of the objects: one size, or a table with a distribution."""
    parallel: Annotated[Int, Field(ge=1, le=1000)] = 1
    """Number of requests that are open at the same time."""
    count: Annotated[Int, Field(ge=1, le=10_000_000)] | None = None
    """Number of requests (default: until the flow stops)."""
    think: Duration = 0
    """Time from the last byte of an object to the next request."""


def _ends(value: object) -> object:
    if isinstance(value, list) and (not value or not all(isinstance(name, str) for name in value)):
        raise Expected("at least one name")
    return value


class Congestion(Table):
    """A congestion controller and [its parameters](congestion-controllers.md#parameters)."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, Field(min_length=1, max_length=1024)]
    """Name of the congestion controller, or `FILE.py:CLASS` for
    [a class of your own](../tutorials/write-a-controller.md)."""

    @property
    def params(self) -> dict[str, Any]:
        """The given parameters, as the scenario spells them."""
        return dict(self.__pydantic_extra__ or {})


def _congestion(value: object) -> object:
    """Converts a name into a table."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, dict | Congestion):
        return value
    raise Expected("a name, or a table such as { name = 'cubic', beta = 0.5 }")


def _shortest(congestion: Congestion) -> str | dict[str, Any]:
    """The name of a congestion controller if it has no parameters, otherwise a table."""
    return {"name": congestion.name, **congestion.params} if congestion.params else congestion.name


Cc = Annotated[
    Congestion,
    BeforeValidator(_congestion, json_schema_input_type=Annotated[str, Field(max_length=1024)] | Congestion),
    PlainSerializer(_shortest, when_used="json"),
]
"""A congestion controller: its name, or a table with its parameters."""


Ends = Annotated[
    Name | list[Name],
    BeforeValidator(_ends, json_schema_input_type=Name | Annotated[list[Name], Field(min_length=1)]),
]
"""A node, or several nodes."""


class Flow(Table):
    """A flow, a group of `count` equal flows, or (with `arrivals`) a source of flows."""

    name: Name | None = None
    """Name of the flow in results (default: derived from the congestion controller's name)."""
    source: Annotated[Ends | None, Field(alias="from")] = None
    """Sending node. Most topologies have a default. If `from` or `to` is a list, the entry stands for several
    flows: one for each pair of a sender and a receiver. In a list, `*` and `?` in a name match hosts."""
    to: Ends | None = None
    """Receiving node, or a list of nodes (see `from`)."""
    pattern: Literal["permutation", "all-to-all", "random", "incast"] | None = None
    """Makes this entry several flows between hosts. `permutation`: each host sends one flow to another host
    and receives one flow. `all-to-all`: each host sends a flow to every other host. `random`: each host sends
    one flow to a random other host. `incast`: all hosts send a flow to the host `to`. With `from` and `to`,
    only the named hosts take part. Random pairs follow from the scenario's seed. All seeds of a sweep have
    the same pairs."""
    transport: Literal["tcp", "udp", "quinn"] = "tcp"
    """Transport protocol. `quinn`: [QUIC of the Rust crate quinn](quic.md), only in the simulator."""
    cc: Cc = Congestion.model_construct(name="cubic")
    """TCP and QUIC: name of the congestion controller, or a table with its parameters. With `transport =
    "quinn"`, the names `bbr`, `cubic` and `newreno` mean the controllers of quinn, and `narrows:NAME` means a
    controller of Narrows."""
    rate: Rate | None = None
    """UDP: L3 rate at which the flow sends."""
    packet: Annotated[Int, Field(ge=29, le=60000)] = FULL_PACKET
    """UDP: L3 bytes of a packet."""
    start: Duration = 0
    """Time at which the flow starts."""
    stop: PositiveDuration | None = None
    """Time at which the application stops (default: the end of the run)."""
    count: Annotated[Int, Field(ge=1, le=MAX_FLOWS)] = 1
    """Number of equal flows."""
    spacing: Duration = 0
    """Time between the starts of consecutive flows."""
    start_jitter: Duration = 0
    """Maximum random delay of each flow's start. Simulated flows that start at the same time can stay in
    step, unlike real flows."""
    size: Size | None = None
    """Application bytes to send (default: unlimited)."""
    app: App | None = None
    """An application that limits the flow."""
    arrivals: Arrivals | None = None
    """Makes this entry a source of flows."""
    requests: Requests | None = None
    """QUIC: [objects that the receiver requests](quic.md#requests), instead of one stream of data."""
    program: Program | None = None
    """[Programs](../how-to/programs.md) that exchange the data of the flow on real stacks."""
    demands: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Traffic matrix: a CSV file, or 'sndlib' for the topology's own matrix. The entry stands for one flow
    per demand. The application of each flow sends at the rate of the demand."""
    scale: Annotated[Float, Field(gt=0, le=1e9)] | None = None
    """Factor by which all demands are multiplied (default: 1)."""
    groups: Literal["gfc"] | None = None
    """Makes this entry stand for the flow groups of the topology gfc-1 or gfc-2."""
    ecn: Flag = False
    """TCP: whether the flow negotiates ECN."""
    pacing: Flag = False
    """TCP: whether flows with window-based congestion controllers also pace, as in Linux with sch_fq."""
    receive_window: Annotated[Int, Field(ge=1, le=units.MAX_PACKETS)] | None = None
    """TCP: maximum receive window in segments (default: no limit). The window is 64 KiB at first and grows as
    in Linux. QUIC: window of the stream and of the connection, in packets of 1200 bytes (default: that of
    quinn)."""
    mss: Annotated[Int, Field(ge=64, le=60000)] = MSS
    """TCP: payload bytes of a full segment."""
    initial_window: Annotated[Int, Field(ge=1, le=MAX_INITIAL_WINDOW)] = INITIAL_WINDOW
    """TCP: window of a new connection in packets. The default is that of RFC 6928. Congestion controllers
    that get a rate or a window from the network during the handshake start with that rate or window
    instead."""
    class_: Annotated[Int, Field(alias="class", ge=0, le=255)] = 0
    """Class of the flow in priority and HTB queues. With BRF's `share = "mark"`, it is also the mark of the
    flow's packets."""
    service: Annotated[Int, Field(ge=1, le=32767)] | None = None
    """Number of the flow's service for BRF's predictor. On real stacks, the port of the server identifies the
    service (default: the flow is a service of its own). Simulator only."""
    return_path: Annotated[list[Name], Field(min_length=2, max_length=1024)] | None = None
    """Path of the ACKs: a list of nodes, including both ends (default: the shortest path)."""

    @model_validator(mode="after")
    def _consistent(self) -> Flow:
        given = [key for key in ("size", "app", "arrivals", "requests") if getattr(self, key) is not None]
        if len(given) > 1:
            raise Expected(f"one of size, app, arrivals and requests, not {' and '.join(given)}")
        if self.requests is not None and not self.is_stack:
            raise Expected("transport = 'quinn' with requests, because other transports have no streams")
        self._check_many()
        if self.program is not None:
            self._check_program(self.program)
        if self.arrivals is not None and self.count != 1:
            raise Expected("a count of 1 with arrivals")
        if self.arrivals is not None and self.start_jitter:
            raise Expected("no start_jitter with arrivals, whose times are random already")
        if self.stop is not None and self.stop <= self.start:
            raise Expected("a stop after its start")
        if self.transport == "udp":
            self._check_udp()
        elif self.is_stack and (tcp_keys := self._changed(NOT_QUIC)):
            raise Expected(f"no {sorted(tcp_keys)[0]} with transport = {self.transport!r}")
        elif self.rate is not None:
            raise Expected("a rate only with transport = 'udp' (an application's rate is app = {rate = ...})")
        return self

    def _changed(self, keys: set[str]) -> set[str]:
        """The keys among `keys` whose values are not the defaults.

        A printed scenario sets all keys, so a key that is set may have its default value.
        """
        fields = type(self).model_fields
        return {key for key in self.model_fields_set & keys if getattr(self, key) != fields[key].default}

    def _check_many(self) -> None:
        """Raise an error if other keys contradict `demands` or `groups`, which define the ends of flows."""
        many = [key for key in ("demands", "groups") if getattr(self, key) is not None]
        if len(many) > 1:
            raise Expected("one of demands and groups")
        if many and self.pattern is not None:
            raise Expected(f"no pattern with {many[0]}")
        if self.return_path is not None and self.has_pairs:
            raise Expected("no return_path with several senders or receivers")
        if self.pattern == "incast" and not isinstance(self.to, str):
            raise Expected("one receiver, to = 'HOST', with pattern = 'incast'")
        if self.pattern == "permutation" and self.to is not None:
            raise Expected("no key 'to' with pattern = 'permutation', because each host sends and receives")
        if self.scale is not None and self.demands is None:
            raise Expected("a scale only with demands")
        for key in many:
            if self.source is not None or self.to is not None or self.return_path is not None:
                raise Expected(f"no from, to or return_path with {key}")
            if self.count != 1:
                raise Expected(f"a count of 1 with {key}")
            if self.transport == "udp" or self.arrivals is not None:
                raise Expected(
                    f"no {'transport = udp' if self.transport == 'udp' else 'arrivals'} with {key}"
                )
        for key in ("size", "app", "requests"):
            if self.demands is not None and getattr(self, key) is not None:
                raise Expected(f"no {key} with demands")

    def _check_program(self, program: Program) -> None:
        if refused := self._changed(NOT_OF_PROGRAMS):
            raise Expected(f"no {sorted(refused)[0]} with a program")
        if isinstance(self.source, list) or isinstance(self.to, list):
            raise Expected("one sender and one receiver with a program")
        if program.protocol == "udp" and (refused := self._changed({"cc", "ecn", "initial_window"})):
            raise Expected(f"no {sorted(refused)[0]} with a program whose protocol is udp")

    def _check_udp(self) -> None:
        if self.rate is None:
            raise Expected("a rate with transport = 'udp'")
        tcp_only = self._changed(TCP_ONLY)
        if tcp_only:
            raise Expected(f"no {sorted(tcp_only)[0]} with transport = 'udp'")
        for key in ("size", "app", "arrivals"):
            if getattr(self, key) is not None:
                raise Expected(f"no {key} with transport = 'udp'")

    @property
    def has_pairs(self) -> bool:
        """Whether the entry describes flows between several pairs of nodes."""
        return self.pattern is not None or isinstance(self.source, list) or isinstance(self.to, list)

    @property
    def kind(self) -> str:
        """The default name of the flow: its congestion controller or Python class, ``udp``, or its program.

        If an external stack carries the flow, the stack's name comes before the controller's name.
        """
        if self.program is not None:
            return self.program.name
        if self.transport == "udp":
            return "udp"
        named = class_file(self.cc.name)
        name = self.cc.name if named is None else named[1]
        return stacks.default_name(self.transport, name) if self.is_stack else name

    @property
    def is_stack(self) -> bool:
        """Whether an external transport stack carries the flow."""
        return self.transport not in ("tcp", "udp")
