"""The simulator (crates/narrows-py)."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self, final

from narrows.plan import Plan

version: str
"""Version of the crates."""
is_release: bool
"""Whether `tools/release.py` built this module, so that `behaviour` alone identifies its behaviour."""
behaviour: int
"""Version of the simulator's behaviour. Modules with the same version give equal results for equal plans."""

CONNECTION_LOST: str
"""Beginning of the kind of an event: the connection of a flow failed. The reason follows."""
PHASE_NEVER_BEGAN: str
"""Beginning of the kind of an event: a phase for which a change waited never began. The phase follows."""

class PlanError(ValueError):
    """A plan that cannot be run."""

class CaptureError(OSError):
    """A capture that cannot be written."""

class EmulationError(OSError):
    """The kernel refuses an operation that a run on real stacks needs."""

class Cancel:
    """Ends runs from another thread."""

    def __init__(self) -> None: ...
    def set(self) -> None:
        """End all runs that were started with this object soon."""

    def is_set(self) -> bool:
        """Whether `set` was called."""

class Monitor:
    """The progress of a run in another thread."""

    def __init__(self) -> None: ...
    def nanos(self) -> int:
        """Simulated nanoseconds. The run updates them after each 65536 events, and at its end."""

    def events(self) -> int:
        """Number of events so far, updated with the time."""

    def stop(self) -> None:
        """End the run soon. Its output contains the results so far, and the simulated time in `stopped_s`."""

class Window:
    """The decision of a congestion controller. Hooks change it."""

    cwnd: int
    """Congestion window, segments, at least 1."""
    ssthresh: int
    """Slow-start threshold, segments."""
    pacing_rate: float | None
    """Pacing rate, L3 bytes/s. None: the transport decides."""

class Ack:
    """An ACK, after the transport has updated its state."""

    @property
    def now(self) -> float:
        """The simulated time, seconds."""

    @property
    def acked(self) -> int:
        """Segments that this ACK newly reports as delivered."""

    @property
    def lost(self) -> int:
        """Segments newly marked lost."""

    @property
    def delivered(self) -> int:
        """Segments delivered so far."""

    @property
    def total_lost(self) -> int:
        """Segments marked lost so far."""

    @property
    def in_flight(self) -> int:
        """Segments in flight now."""

    @property
    def prior_in_flight(self) -> int:
        """Segments in flight before this ACK."""

    @property
    def rtt(self) -> float | None:
        """RTT sample, seconds; None without a sample."""

    @property
    def srtt(self) -> float | None:
        """Smoothed RTT, seconds; None before the first sample."""

    @property
    def min_rtt(self) -> float | None:
        """Minimum RTT, seconds; None before the first sample."""

    @property
    def rate_delivered(self) -> int:
        """Segments delivered in `rate_interval`; 0 without a delivery-rate sample."""

    @property
    def rate_interval(self) -> float | None:
        """Interval of the delivery-rate sample, seconds; None without a sample."""

    @property
    def rate_prior_delivered(self) -> int:
        """`delivered` when the sampled segment was sent."""

    @property
    def rate_in_flight(self) -> int:
        """Segments in flight just after the sampled segment was sent."""

    @property
    def rate_lost(self) -> int:
        """Segments marked lost between the sampled segment's sending and its ACK."""

    @property
    def app_limited(self) -> bool:
        """Whether the application, not the network, limited the delivery-rate sample."""

    @property
    def state(self) -> Literal["open", "disorder", "cwr", "recovery", "loss"]:
        """State of loss recovery (Linux `tcp_ca_state`)."""

    @property
    def cwnd_limited(self) -> bool:
        """Whether the window, not the application, limits the sender."""

    @property
    def delayed(self) -> bool:
        """Whether the receiver probably delayed this ACK."""

    @property
    def ece(self) -> bool:
        """Whether the receiver echoes congestion experienced."""

    @property
    def feedback(self) -> float | None:
        """Rate that the network wrote into this ACK, L3 bytes/s."""

class Connection:
    """The end of a flow's handshake."""

    @property
    def now(self) -> float:
        """The simulated time, seconds."""

    @property
    def flow(self) -> str:
        """Name of the flow in the results."""

    @property
    def flow_id(self) -> int:
        """Number of the flow in the results, in the order of starts."""

    @property
    def packet_bytes(self) -> int:
        """L3 bytes of a full segment."""

    @property
    def rtt(self) -> float | None:
        """RTT of the handshake, seconds; None without a sample."""

    @property
    def feedback(self) -> float | None:
        """Rate that the network wrote into the SYN-ACK, L3 bytes/s."""

    @property
    def seed(self) -> int:
        """Seed for random choices. It differs by flow, and the run's seed determines it."""

class Lost:
    """A segment that was marked lost."""

    @property
    def now(self) -> float:
        """The simulated time, seconds."""

    @property
    def delivered(self) -> int:
        """Segments delivered so far."""

    @property
    def in_flight_when_sent(self) -> int:
        """Segments in flight just after the lost segment was sent."""

    @property
    def lost_since_sent(self) -> int:
        """Segments marked lost since this segment was sent, including this segment."""

    @property
    def app_limited(self) -> bool:
        """Whether the application limited the sender when this segment was sent."""

class Congestion:
    """A congestion event."""

    @property
    def now(self) -> float:
        """The simulated time, seconds."""

    @property
    def signal(self) -> Literal["loss", "ecn", "timeout"]:
        """The kind of event."""

    @property
    def in_flight(self) -> int:
        """Segments in flight."""

    @property
    def srtt(self) -> float:
        """Smoothed RTT, seconds; 0 before the first sample."""

    @property
    def again(self) -> bool:
        """Whether this is a further timeout in the same episode. The threshold then stays unchanged."""

class Restart:
    """The end of an idle time."""

    @property
    def now(self) -> float:
        """The simulated time, seconds."""

    @property
    def idle(self) -> float:
        """Time since the last transmission, seconds."""

    @property
    def app_limited(self) -> bool:
        """Whether the application limited the last delivery-rate sample."""

class Moment:
    """An event of which only the time matters."""

    @property
    def now(self) -> float:
        """The simulated time, seconds."""

class BuiltIn:
    """A built-in congestion controller: see `narrows.custom.BuiltIn`. Parameters are in base units.

    Raises:
        ValueError: one line, for an unknown name or parameter.
    """

    owns_recovery: bool
    exact_ce_echo: bool
    wants_feedback: bool
    def __init__(self, name: str, params: Mapping[str, bool | float | str]) -> None: ...
    def on_established(self, connection: Connection, window: Window) -> None: ...
    def on_lost(self, lost: Lost, window: Window) -> None: ...
    def on_sample(self, ack: Ack) -> None: ...
    def on_ack(self, ack: Ack, window: Window) -> None: ...
    def on_congestion(self, event: Congestion, window: Window) -> None: ...
    def on_recovered(self, event: Moment, window: Window) -> None: ...
    def on_undo(self, event: Moment, window: Window) -> None: ...
    def on_restart(self, event: Restart, window: Window) -> None: ...
    def trace(self) -> dict[str, float]: ...

def run(
    plan_json: str,
    cancel: Cancel | None = None,
    congestion: Mapping[str, Callable[..., object]] = ...,
    monitor: Monitor | None = None,
    capture: str | None = None,
) -> dict[str, Any]:
    """Run a plan; the interpreter's lock is released meanwhile.

    Args:
        plan_json: the plan.
        cancel: lets another thread end the run.
        congestion: Python classes, or functions that return instances, by the name that `cc` has in the plan.
        monitor: receives the progress, and may stop the run.
        capture: a folder for the packets that the plan captures, with a pcapng file for each place.

    Raises:
        CaptureError: if `capture` cannot be written.
        PlanError: one line, if the plan is refused.
        KeyboardInterrupt: if the run was cancelled.
    """

def check(plan_json: str, congestion: list[str] = ...) -> None:
    """Check a plan without running it; `congestion` has the names of Python classes.

    Raises:
        PlanError: one line, if `run` would refuse it.
    """

def congestion_controllers() -> list[tuple[str, str]]:
    """Name and summary of each congestion controller."""

def congestion_catalogue() -> str:
    """All rows of the catalogue of congestion controllers as JSON; `narrows.congestion` reads it."""

def rate_catalogue() -> str:
    """The catalogue of rate controllers as JSON; `narrows.rate` reads it."""

ACCESS_FACTOR: int
"""Ratio of the rate of access links to the rate of the topology's fastest link."""
DEFAULT_RECEIVE_BUFFER: int
"""Linux's default maximum of the receive buffer (tcp_rmem), bytes."""
FIRST_PORT: int
"""Default port of the server of a plan's flow 0, on real stacks. The default for flow n is this port plus
n."""
HOST: str
"""Suffix of the names of hosts in a published network."""

def check_for_page(text: str, source: str, most: int) -> None:
    """Check that the playground accepts a scenario.

    Args:
        text: TOML.
        source: path of the file, for errors.
        most: number of points of the sweep that are checked.

    Raises:
        ValueError: one line about the scenario.
    """

@final
class Scenario:
    """A scenario that the crate narrows-scenario has checked. `narrows.Scenario` shows it to Python.

    All functions raise `narrows.ScenarioError` if a key or value is wrong.
    """

    def __new__(cls, data: Mapping[str, Any], source: str) -> Self:
        """Check the tables of a scenario."""

    @staticmethod
    def load(path: str, changes: list[tuple[str, Any]]) -> Scenario:
        """Read a file, and change values by dotted key."""

    @staticmethod
    def parse(text: str, source: str, changes: list[tuple[str, Any]]) -> Scenario:
        """Read TOML, and change values by dotted key."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def duration(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def seeds(self) -> int: ...
    @property
    def has_capture(self) -> bool: ...
    @property
    def has_published_network(self) -> bool: ...
    @property
    def renamed(self) -> list[tuple[str, str]]:
        """The old names in the scenario, each with its current name."""

    def with_source(self, source: str) -> Scenario: ...
    def with_seed(self, seed: int) -> Scenario: ...
    def beside_real(self) -> Scenario: ...
    def raw(self) -> dict[str, Any]: ...
    def full(self) -> dict[str, Any]: ...
    def facts(self) -> dict[str, Any]: ...
    def flows(self) -> list[tuple[str, str, str, dict[str, Any], int, bool]]:
        """The entries of flows.

        For each entry: name in results, transport, name and parameters of the congestion controller, number
        of flows, and whether the flow has programs.
        """

    def expectations(self) -> list[dict[str, Any]]:
        """The keys of each expectation, including those with default values."""

    def expand(self, seeds: int | None) -> tuple[list[tuple[Scenario, dict[str, str | float]]], int]:
        """The points of the sweep with the values of their factors, and the number of seeds per point."""

    def survey(
        self,
        congestion_controllers: list[str],
        rate_controllers: list[str],
        kernel: str,
        networks: str | None,
    ) -> Survey:
        """Make the plan; `networks` is the folder with the networks of topohub."""

    def inputs(self) -> set[str]:
        """The paths of files that the scenario names, as the scenario writes them."""

@final
class Survey:
    """A plan, and the places in the scenario from which it was made."""

    def plan(self) -> Plan: ...
    def paths(self) -> list[tuple[list[int], list[int]]]:
        """For each flow, the links on the paths of its data and of its ACKs."""

    def ways(self) -> list[tuple[int, int]]:
        """The rates in bit/s and the delays in ns of the directed links."""

    def positions(self) -> dict[str, tuple[float, float]]: ...
    @property
    def is_geographic(self) -> bool: ...
    def hosts(self) -> set[str]: ...
    def key_in_scenario(self, key: str) -> str:
        """A key of the plan, with the number of the scenario's entry instead of the plan's."""

def flow_paths(plan_json: str) -> list[tuple[list[int], list[int]] | None]:
    """For each flow, the links on the paths of its data and of its ACKs (None: there is no path)."""

def scenario_choices(table: str, key: str) -> list[tuple[str, str]]:
    """The kinds of tables that a key of a table can have, each with its meaning."""

def scenario_current_key(key: str) -> str:
    """A scenario's dotted key with current names."""

def scenario_current_names(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """A scenario's tables with current names, and the old names that they had, each with its current name."""

def scenario_networks(networks: str | None) -> tuple[list[tuple[str, str]], list[str]]:
    """The networks that need no other package, each with its meaning, and the names of those of topohub."""

def format_duration(nanos: int) -> str:
    """A time in nanoseconds as text, in the largest unit that is exact."""

def format_rate(bits_per_sec: int) -> str:
    """A rate in bit/s as text, in the largest unit that is exact."""

def format_size(size: int) -> str:
    """A size in bytes as text, in the largest unit that is exact."""

def parse_duration(given: object) -> int:
    """Convert a time such as ``20ms`` to nanoseconds. A bare 0 needs no unit."""

def parse_finite_limit(given: object) -> str:
    """Convert a queue length as `parse_limit` does, but refuse ``infinite``."""

def parse_limit(given: object) -> str:
    """Check the length of a queue such as ``1000p``, ``150kB``, ``1bdp`` or ``infinite``.

    Equal lengths give equal texts, for example ``1.0bdp`` and ``1bdp``.
    """

def parse_loss(given: object) -> float:
    """Convert a loss such as ``0.1%`` or 0.001 to a number. A bare 1 (1 % or 100 %?) is an error."""

def parse_probability(given: object) -> float:
    """Convert a probability such as ``0.1%`` or 0.001 to a number."""

def parse_rate(given: object) -> int:
    """Convert a rate such as ``100mbit``, ``10kbit/s``, ``100Mbps`` or ``2MB/s`` to bit/s.

    Prefixes are decimal, except for Ki, Mi and Gi. Unlike in ``tc``, ``Mbps`` is megabit per second.
    """

def parse_share(given: object) -> float:
    """Convert a share such as ``50%`` or 0.5 to a number."""

def parse_size(given: object) -> int:
    """Convert a size such as ``64kB`` or ``1MiB`` to bytes. A bare 0 needs no unit."""

def scenario_notes(points: list[Scenario], networks: str | None) -> list[str]:
    """Notes for readers of the results of all runs of these points."""

def scenario_override(data: Mapping[str, Any], key: str, new: Any) -> dict[str, Any]:
    """A scenario's tables with a changed key."""

def scenario_parse_override(text: str) -> tuple[str, Any]:
    """Key and value of a command line's ``key=value``."""

def scenario_reference() -> str:
    """The reference of all keys of scenario files in Markdown."""

def scenario_schema() -> str:
    """The JSON schema of scenario files, with the parameters of all controllers."""

def capture_file_names(places: list[str], extension: str) -> list[str]:
    """The names of the files of a capture, one for each link or host."""

def stacks() -> dict[str, list[str]]:
    """The external transport stacks, each with the names of its own congestion controllers."""

def rate_controllers() -> list[tuple[str, str]]:
    """Name and summary of each rate controller."""

def route(plan_json: str, source: int, to: int) -> list[int] | None:
    """Nodes on the path, both ends included; None if there is no path."""

CHANNEL_VERSION: int
"""Version of the agents' channel."""
LINE_MAX: int
"""Longest line of the channel in bytes, including its end."""
GREETING_MAX: int
"""Longest first line in bytes. Without TLS, any program on this host can send this line."""
ALIVE: str
"""A body without content. A controller sends it so that agents with two controllers notice when one hangs."""

# tools/channel_types.py writes the types from here

class FlowKey:
    """Identifies a flow by addresses and ports, in the direction of its data."""
    @property
    def saddr(self) -> str:
        """Source address of the data."""
    @property
    def daddr(self) -> str:
        """Destination address of the data."""
    @property
    def sport(self) -> int:
        """Source port."""
    @property
    def dport(self) -> int:
        """Destination port."""
    @property
    def proto(self) -> Literal["tcp", "udp"]:
        """Transport protocol."""

class FlowInfo:
    """A flow at a port, as displayed to people."""
    @property
    def key(self) -> FlowKey:
        """The flow."""
    @property
    def class_(self) -> Literal["rated", "other-tcp", "udp"]:
        """The class of the flow in the port's queue. It depends on the flow's sender."""
    @property
    def leaf(self) -> Literal["mouse", "elephant", "other-tcp", "udp"]:
        """The leaf of the port's queue in which the flow's packets wait."""
    @property
    def allocation(self) -> int | None:
        """Allowed rate of the flow, L3 bytes/s."""
    @property
    def rate(self) -> int:
        """Current rate of the flow, L3 bytes/s."""
    @property
    def rtt(self) -> int | None:
        """Round-trip time, nanoseconds."""

class PortInfo:
    """A port that an agent controls."""
    @property
    def port(self) -> int:
        """The number that the agent gave the port."""
    @property
    def interface(self) -> str:
        """Name of the interface."""
    @property
    def mac(self) -> str:
        """Hardware address of the interface. The controller finds the OpenFlow port by this address."""
    @property
    def capacity(self) -> int:
        """Capacity of the port, L3 bytes/s."""
    @property
    def rate_controller(self) -> str:
        """The rate controller, e.g. `brf`. Older agents send this key as `controller`."""

class Ports:
    """All controlled ports of an agent."""
    @property
    def ports(self) -> list[PortInfo]:
        """At most `PORTS_MAX` ports. No two ports have the same number or interface."""

class Flows:
    """The largest flows of a port."""
    @property
    def port(self) -> int:
        """The port."""
    @property
    def flows(self) -> list[FlowInfo]:
        """At most `FLOWS_MAX` flows."""

class FlowChanges:
    """Flows that started, ended or changed at a port."""
    @property
    def port(self) -> int:
        """The port."""

# to here.

class Message:
    """A message between a port and the SDN controller (`rate::Message`)."""

    @property
    def type(
        self,
    ) -> Literal["poll", "report", "congestion", "flow-advertisement", "flow", "grants"]:
        """Its type on the wire."""

    @property
    def port(self) -> int | None:
        """The port; None for a poll, which is for all ports."""

    @property
    def kind(self) -> Literal["queue", "burst"] | None:
        """The kind of congestion; None if it is over, and for other types."""

    @property
    def rated_queued(self) -> int | None:
        """L3 bytes of the rated class in the queue, in a report; None for other types."""

    def to_agent(self, port: int) -> list[str]:
        """The bodies (JSON) for an agent that gave the port this number. Grants for many flows are split."""

def parse_body(text: str) -> Ports | Flows | FlowChanges | Message:
    """Parse and check a body of an agent.

    Raises:
        ValueError: it is invalid. The text can quote the body.
    """

class Sdn:
    """The SDN controller of rate control: polls ports and judges their reports (`rate::brf::Sdn`).

    Times are nanoseconds of one clock. Methods return the messages to send, each with its port.
    """

    def __init__(self) -> None: ...
    def attach(self, now_ns: int, port: int, poll_ns: int, info: PortInfo) -> None:
        """A port joins, or begins anew. `poll_ns`: longest interval between its polls.

        Raises:
            ValueError: one line, if `info` has no thresholds.
        """

    def detach(self, port: int) -> None:
        """A port leaves."""

    def on_message(self, now_ns: int, port: int, message: Message) -> list[tuple[int, Message]]:
        """A message from a port."""

    def on_timer(self, now_ns: int) -> list[tuple[int, Message]]:
        """Polls the ports that are due."""

    def next_timer(self) -> int | None:
        """Time of the next call of `on_timer`; None without ports."""

    def verdict(self, port: int) -> tuple[float, float, float] | None:
        """The last values of a port: eq 5, eq 6, and arrivals as a fraction of the rated class's share."""

class PacecParams:
    """The parameters of a port of PACEC (`rate::pacec::Params`).

    Raises:
        ValueError: one line, if they are invalid.
    """

    def __init__(self, info: PortInfo) -> None: ...
    @property
    def period_ns(self) -> int:
        """The control period Tc."""

    def of_counted(self) -> PacecParams:
        """The parameters for ports that have no agent and are in the same domain as this port."""

class Pacec:
    """PACEC's controller for a set of ports (`rate::pacec::Pacec`). Methods return the messages to send.

    Args:
        now_ns: the time.
        mtu: largest IP datagram, bytes.
        ports: the ports with their parameters.
    """

    def __init__(self, now_ns: int, mtu: int, ports: list[tuple[int, PacecParams]]) -> None: ...
    def on_report(self, now_ns: int, port: int, message: Message) -> list[tuple[int, Message]]:
        """A report of a port."""

    def on_counters(
        self,
        now_ns: int,
        port: int,
        at_ns: int,
        capacity: int,
        departed: int,
        departed_packets: int,
        period_ns: int,
    ) -> list[tuple[int, Message]]:
        """The counters of a port without an agent.

        Args:
            now_ns: the time.
            port: the port.
            at_ns: time of the reading, by the clock of the switch.
            capacity: L3 bytes/s.
            departed: L3 bytes that left the port.
            departed_packets: packets that left the port.
            period_ns: interval between two readings.
        """

    def on_flows(
        self, now_ns: int, port: int, changes: FlowChanges, find: Callable[[str, str], list[int]]
    ) -> list[tuple[int, Message]]:
        """Flows that began, ended or changed at a port.

        Args:
            now_ns: the time.
            port: the port.
            changes: the flows.
            find: returns the ports on the path of data from one address to another, in order.
        """

    def on_timer(self, now_ns: int) -> list[tuple[int, Message]]:
        """Compute new rates at the end of a control period."""

    def next_timer(self) -> int | None:
        """Time of the next call of `on_timer`; None without ports."""

    def flows(self) -> int:
        """Number of known flows."""

    def verdict(self, port: int) -> tuple[float, int] | None:
        """Utilisation of the port's link at the last update, and the L3 bytes/s that its flows may use."""

def netcard_rate(packets: int, packet_bytes: int, dt_ns: int, capacity_bytes_per_s: int) -> float:
    """Eq 5 of the paper: packets that left, as a fraction of the link's capacity in `dt_ns`; 0 if unknown."""

def emulate(spec_json: str, cancel: Cancel | None = None) -> dict[str, Any]:
    """Run a plan on real Linux stacks, in real time with the interpreter's lock released.

    Args:
        spec_json: the plan, and the namespaces, interfaces and addresses that implement it
            (crates/narrows-emulator/src/spec.rs).
        cancel: lets another thread end the run.

    Returns:
        What `run` returns, and `soundness`: whether to trust the run, with the reasons.

    Raises:
        PlanError: one line, if the spec is refused.
        EmulationError: one line, if the kernel refuses something.
        KeyboardInterrupt: if the run was cancelled.
    """
