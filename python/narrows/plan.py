"""The input of a run, fully resolved: names are indices, times ns, rates L3 bytes/s, sizes bytes.

`tools/plan_types.py` generates this file from the types of `crates/narrows-plan`. Do not edit it.
The crate has a default for each key that is not required.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

Bytes: TypeAlias = int
"""An amount of data in bytes."""
Datapath: TypeAlias = Literal["system", "netdev"]
"""Datapath of Open vSwitch."""
Delayer: TypeAlias = Literal["relay", "netem"]
"""Implementation of delay and loss."""
Forwarding: TypeAlias = Literal["route", "bridge", "ovs"]
"""Forwarding of a node."""
Rate: TypeAlias = int
"""A rate in bytes per second. These are L3 bytes (whole IP datagrams, BRF-4) unless a comment says
otherwise."""
Span: TypeAlias = int
"""A time span in nanoseconds."""
Time: TypeAlias = int
"""A point in time: nanoseconds since an epoch that the caller chooses. In the simulator the epoch is the
start of the run."""
Tool: TypeAlias = Literal["own", "iperf3"]
"""Generator of flows."""


class BulkAppPlan(TypedDict):
    """Always has data to send."""

    kind: Literal["bulk"]


class SizeAppPlan(TypedDict):
    """Sends this many bytes, then closes."""

    bytes: Bytes
    """Application bytes."""
    kind: Literal["size"]


class LimitedAppPlan(TypedDict):
    """Produces data at a constant rate while it is on.

    Its on periods alternate with off periods.
    """

    kind: Literal["limited"]
    off: NotRequired[Span | None]
    """Length of an off period."""
    on: NotRequired[Span | None]
    """Length of an on period; `None`: always on."""
    rate: Rate
    """Application bytes/s while on."""


class PoissonAppPlan(TypedDict):
    """Poisson arrivals of sized flows from `start` to `stop`; `count` must be 1."""

    kind: Literal["poisson"]
    per_sec: float
    """Flows per second."""
    size: SizePlan
    """Sizes in application bytes."""


class ControllerPlan(TypedDict):
    """A rate controller at the port of a link."""

    kind: str
    """Name of the controller, e.g. `brf`."""
    limit: NotRequired[LimitPlan]
    """Limit of each leaf queue."""
    link: int
    """The link whose port it controls."""
    outages: NotRequired[list[tuple[Time, Time]]]
    """Outages of the controller (from, to). During an outage packets pass through plain queues and carry
    no rates."""
    params: NotRequired[dict[str, bool | float | str]]
    """Parameters of this kind of controller, in base units."""
    shape: NotRequired[list[tuple[Time, Rate]] | None]
    """Rate to which the port is shaped. A switch in front of a bottleneck link shapes its port to the
    bottleneck's rate. `None`: the link's own rate."""
    told: NotRequired[bool]
    """Whether the controller is given the capacity (key `told`). If not, the controller measures the
    capacity."""


_FlowPlan = TypedDict(
    "_FlowPlan",
    {
        "class": "NotRequired[int]",
        "from": "int",
    },
)
"""`class`: Class for priority and HTB queues, and the packets' mark for BRF's `share = "mark"`. `from`:
Sending node."""


class FlowPlan(_FlowPlan):
    """One flow, `count` equal flows, or a source of flows."""

    app: AppPlan
    """The sending application."""
    count: NotRequired[int]
    """Number of flows in the group."""
    name: str
    """Name in results. Flows of a group get the suffixes `.0`, `.1`, ..."""
    return_path: NotRequired[list[int] | None]
    """Nodes of the reverse path, including both ends; `None`: the shortest path."""
    spacing: NotRequired[Span]
    """Time between the starts of two flows of the group."""
    start: Time
    """Time of the first SYN (TCP) or packet (UDP)."""
    stop: NotRequired[Time | None]
    """Time at which the application stops sending; `None`: the end of the run."""
    to: int
    """Receiving node."""
    transport: TransportPlan
    """Transport."""


class HtbClassPlan(TypedDict):
    """A class of an HTB."""

    ceil: Rate
    """Highest rate, including borrowed capacity."""
    limit: NotRequired[LimitPlan]
    """Limit of its FIFO."""
    priority: NotRequired[int]
    """The priority for borrowing: classes with lower values borrow first."""
    rate: Rate
    """Guaranteed rate."""


class JitterPlan(TypedDict):
    """Random extra delay of a packet."""

    max: Span
    """The delay is uniform between 0 and this value."""
    reorder: NotRequired[bool]
    """Packets may overtake each other."""


class KernelPlan(TypedDict):
    """How real stacks are set up.

    The simulator ignores these options. The backend chooses each value that is `None`.
    """

    datapath: NotRequired[Datapath | None]
    """Datapath of Open vSwitch."""
    delay: NotRequired[Delayer | None]
    """Implementation of delay and loss."""
    forwarding: NotRequired[Forwarding | None]
    """How nodes that are not ends of flows forward."""
    interval: NotRequired[Span | None]
    """Time between two samples of sockets and queues."""
    tool: NotRequired[Tool | None]
    """Generator of the flows."""


class LimitPlan(TypedDict):
    """Limit of a queue.

    Both `None`: unlimited.
    """

    bytes: NotRequired[Bytes | None]
    """L3 bytes waiting."""
    packets: NotRequired[int | None]
    """Packets waiting."""


_LinkPlan = TypedDict(
    "_LinkPlan",
    {
        "from": "int",
    },
)
"""`from`: Sending node."""


class LinkPlan(_LinkPlan):
    """A directed link: a port with its queue, and the wire after it."""

    delay: list[tuple[Time, Span]]
    """Propagation delay over time: steps of (start, delay), the first at 0."""
    duplicate: NotRequired[float]
    """Probability that a packet arrives twice."""
    jitter: NotRequired[JitterPlan | None]
    """Random extra delay."""
    loss: NotRequired[list[tuple[Time, LossPlan]]]
    """Random loss after the queue, over time: steps of (start, model). Empty: no loss."""
    name: str
    """Name in results, e.g. `R0->R1`."""
    queue: QueuePlan
    """The queue."""
    rate: RatePlan
    """Rate of the link."""
    to: int
    """Receiving node."""


class BernoulliLossPlan(TypedDict):
    """Each packet is lost independently."""

    kind: Literal["bernoulli"]
    p: float
    """Probability."""


class GilbertElliottLossPlan(TypedDict):
    """Two states with transition probabilities per packet and a loss probability in each."""

    bad: float
    """Loss probability in the bad state."""
    good: NotRequired[float]
    """Loss probability in the good state."""
    kind: Literal["gilbert-elliott"]
    p: float
    """Probability of a transition from the good to the bad state."""
    r: float
    """Probability of a transition from the bad to the good state."""


class NoneMarkPlan(TypedDict):
    """Tail drop only."""

    kind: Literal["none"]


class ThresholdMarkPlan(TypedDict):
    """Mark a packet with CE if the queue is longer than this when the packet arrives (DCTCP's step)."""

    kind: Literal["threshold"]
    packets: int
    """Packets waiting."""


class RedMarkPlan(TypedDict):
    """RED (Floyd and Jacobson 1993) on the averaged queue length."""

    ecn: NotRequired[bool]
    """Mark ECN-capable packets instead of dropping them."""
    kind: Literal["red"]
    max: float
    """Upper threshold in packets. In the gentle variant, which is used, the probability reaches 1 at twice
    this value."""
    max_p: float
    """Probability at `max`."""
    min: float
    """Lower threshold in packets: no action below it."""
    weight: float
    """Weight of the moving average."""


class ProbePlan(TypedDict):
    """Recorded samples."""

    flows: NotRequired[bool]
    """Sample flows, except flows of Poisson sources."""
    interval: Span
    """Time between two samples; zero: no samples."""
    links: NotRequired[list[int]]
    """Indices of the links to sample. The sojourn times in the queues of these links are measured too."""
    traces: NotRequired[bool]
    """Record the internal state of controllers (table `traces`)."""


class FifoQueuePlan(TypedDict):
    """First in, first out; tail drop at the limit."""

    kind: Literal["fifo"]
    limit: NotRequired[LimitPlan]
    """Limit."""
    mark: NotRequired[MarkPlan]
    """Early marking or dropping."""


class CodelQueuePlan(TypedDict):
    """CoDel (RFC 8289)."""

    ecn: NotRequired[bool]
    """Mark packets of ECN-capable flows instead of dropping them."""
    interval: Span
    """Interval."""
    kind: Literal["codel"]
    limit: NotRequired[LimitPlan]
    """Limit."""
    target: Span
    """Target sojourn."""


class FqCodelQueuePlan(TypedDict):
    """FQ-CoDel (RFC 8290)."""

    ecn: NotRequired[bool]
    """Mark packets of ECN-capable flows instead of dropping them."""
    interval: Span
    """Interval."""
    kind: Literal["fq-codel"]
    limit: NotRequired[LimitPlan]
    """Limit of all queues together."""
    quantum: Bytes
    """Deficit round robin quantum."""
    queues: int
    """Number of queues that flows are hashed into."""
    target: Span
    """Target sojourn."""


class PriorityQueuePlan(TypedDict):
    """Strict priority: the flow's `class` is the index of its class.

    Class 0 is served first.
    """

    classes: list[LimitPlan]
    """Limit of each class. Plans of 0.2 say `bands`."""
    kind: Literal["priority"]


class HtbQueuePlan(TypedDict):
    """Hierarchical token bucket with one level: the flow's `class` is the index of its class."""

    classes: list[HtbClassPlan]
    """The classes."""
    kind: Literal["htb"]


class StepsRatePlan(TypedDict):
    """Piecewise constant: (start, rate), the first at 0.

    With `period` the steps repeat.
    """

    kind: Literal["steps"]
    period: NotRequired[Span | None]
    """Length of a repetition; `None`: the steps do not repeat."""
    steps: list[tuple[Time, Rate]]
    """The steps, in order of time."""


class OpportunitiesRatePlan(TypedDict):
    """Mahimahi: at each of these times `bytes` bytes may leave.

    Unused opportunities are lost.
    """

    bytes: int
    """Bytes of one opportunity (mahimahi: 1500)."""
    kind: Literal["opportunities"]
    millis: list[int]
    """Times in milliseconds, not decreasing."""
    period_millis: int
    """Length of the trace in milliseconds, after which it repeats."""


class SdnPlan(TypedDict):
    """The SDN controller."""

    delay: Span
    """One-way delay between the controller and any switch."""
    outages: NotRequired[list[tuple[Time, Time]]]
    """Outages of the controller (from, to)."""
    poll: NotRequired[Span | None]
    """Time between two polls; `None`: the smaller of the switch's control period and 100 ms."""


class FixedSizePlan(TypedDict):
    """All flows have the same size."""

    bytes: float
    """Bytes."""
    kind: Literal["fixed"]


class ExponentialSizePlan(TypedDict):
    """Exponential."""

    kind: Literal["exponential"]
    mean: float
    """Mean, bytes."""


class ParetoSizePlan(TypedDict):
    """Pareto (type I)."""

    kind: Literal["pareto"]
    mean: float
    """Mean, bytes."""
    shape: float
    """Shape, above 1."""


class TcpTransportPlan(TypedDict):
    """TCP."""

    cc: str | dict[str, bool | float | str]
    """The congestion controller: a name, or a table with `name` and parameters in base units."""
    ecn: NotRequired[bool]
    """Negotiate ECN."""
    kind: Literal["tcp"]
    mss: NotRequired[int]
    """Payload bytes of a full segment (1448 in a 1500-byte packet)."""
    pacing: NotRequired[bool]
    """Pace window-based controllers too (2 x or 1.2 x cwnd per srtt, as Linux with sch_fq)."""
    receive_window: NotRequired[int | None]
    """Limit of the receive window in segments; `None`: the receive buffer sets the window."""


class UdpTransportPlan(TypedDict):
    """UDP: packets of constant size at a constant rate."""

    kind: Literal["udp"]
    packet: int
    """L3 bytes per packet."""
    rate: Rate
    """L3 bytes/s."""


class Plan(TypedDict):
    """One run."""

    duration: Span
    """Length of the run."""
    flows: list[FlowPlan]
    """Flows and sources of flows."""
    kernel: NotRequired[KernelPlan | None]
    """Options of runs on real stacks."""
    links: list[LinkPlan]
    """Directed links."""
    nodes: list[str]
    """Node names. Links and flows refer to nodes by index."""
    probes: NotRequired[ProbePlan]
    """Recorded samples."""
    rate_controllers: NotRequired[list[ControllerPlan]]
    """Rate controllers at ports. Plans of 0.2 say `controllers`."""
    receive_buffer: NotRequired[Bytes | None]
    """Receive buffer of each TCP connection (the maximum in Linux's `tcp_rmem`). The receiver offers half
    of the buffer as its window. `None`: Linux's default."""
    receive_memory: NotRequired[bool]
    """Whether the receive buffer limits senders after the window has opened. If it does, segments that
    wait for a missing one take memory from the buffer."""
    sdn: NotRequired[SdnPlan | None]
    """The SDN controller of the domain."""
    seed: int
    """Seed of every random choice."""
    warmup: NotRequired[Span]
    """Start of the measurement interval. The Python layer sets it to 10 % of the run, at least 10 RTTs, by
    default."""


AppPlan: TypeAlias = BulkAppPlan | SizeAppPlan | LimitedAppPlan | PoissonAppPlan
"""The sending application."""
LossPlan: TypeAlias = BernoulliLossPlan | GilbertElliottLossPlan
"""Random loss."""
MarkPlan: TypeAlias = NoneMarkPlan | ThresholdMarkPlan | RedMarkPlan
"""Early marking of a FIFO."""
QueuePlan: TypeAlias = FifoQueuePlan | CodelQueuePlan | FqCodelQueuePlan | PriorityQueuePlan | HtbQueuePlan
"""The queue of a port. The packet in transmission does not count as waiting."""
RatePlan: TypeAlias = StepsRatePlan | OpportunitiesRatePlan
"""Service of a link."""
SizePlan: TypeAlias = FixedSizePlan | ExponentialSizePlan | ParetoSizePlan
"""Distribution of flow sizes, bytes."""
TransportPlan: TypeAlias = TcpTransportPlan | UdpTransportPlan
"""Transport of a flow."""
