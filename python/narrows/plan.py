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
FlowEnd: TypeAlias = Literal["from", "to"]
"""An end of a flow."""
FlowPhase: TypeAlias = Literal["startup", "drain", "probe_bw", "down", "cruise", "refill", "up", "probe_rtt"]
"""A phase of BBR."""
Forwarding: TypeAlias = Literal["route", "bridge", "ovs"]
"""How a node forwards packets."""
HostQueue: TypeAlias = Literal["fifo", "fq"]
"""Queue of a host's port."""
Protocol: TypeAlias = Literal["tcp", "udp"]
"""A transport protocol of the kernel."""
Rate: TypeAlias = int
"""A rate in bytes per second. These are L3 bytes (whole IP datagrams, BRF-4) unless a comment says
otherwise."""
Span: TypeAlias = int
"""A time span in nanoseconds."""
Time: TypeAlias = int
"""A point in time: nanoseconds since an epoch that the caller chooses. In the simulator the epoch is the
start of the run."""
Tool: TypeAlias = Literal["own", "iperf3"]
"""A program that generates flows."""


class BulkAppPlan(TypedDict):
    """The application always has data to send."""

    kind: Literal["bulk"]


class SizeAppPlan(TypedDict):
    """The application sends `bytes` bytes and closes the connection."""

    bytes: Bytes
    """Number of application bytes."""
    kind: Literal["size"]


class LimitedAppPlan(TypedDict):
    """The application produces data at a constant rate in on periods, which alternate with off periods."""

    kind: Literal["limited"]
    off: NotRequired[Span | None]
    """Length of an off period."""
    on: NotRequired[Span | None]
    """Length of an on period; `None`: always on."""
    rate: Rate
    """Rate in an on period, application bytes/s."""


class ScheduledAppPlan(TypedDict):
    """The rate of the application changes during the run."""

    kind: Literal["scheduled"]
    steps: list[tuple[Time, Rate | None]]
    """Steps of (start, rate in application bytes/s). The first step starts at 0. With `None`, the
    application always has data to send. With a rate of 0, the application pauses."""


class PoissonAppPlan(TypedDict):
    """A source of flows that arrive as a Poisson process from `start` to `stop`.

    `count` must be 1.
    """

    kind: Literal["poisson"]
    per_sec: float
    """Mean number of flows per second."""
    size: SizePlan
    """Distribution of the sizes of flows, application bytes."""


class RequestsAppPlan(TypedDict):
    """The receiver requests objects, and the sender sends them, each on a stream of its own.

    Only external stacks, such as QUIC, have streams.
    """

    count: NotRequired[int | None]
    """Number of requests; `None`: until the flow stops."""
    kind: Literal["requests"]
    parallel: int
    """Number of requests that are open at the same time."""
    size: SizePlan
    """Distribution of the sizes of objects, application bytes."""
    think: NotRequired[Span]
    """Time from the last byte of an object to the next request."""


class CapturePlan(TypedDict):
    """The places where packets are recorded.

    A program that runs the plan decides where the recorded packets are written.
    """

    hosts: NotRequired[list[int]]
    """Indices of nodes. The packets that the flows of these nodes send and receive are recorded."""
    links: NotRequired[list[int]]
    """Indices of links. The packets that arrive at the ends of these links are recorded."""
    qlog: NotRequired[bool]
    """Whether the stacks of flows write their own logs (qlog)."""
    snap: int
    """Maximum number of recorded bytes of a packet."""


class LinkChangePlan(TypedDict):
    """A change of a link.

    A value of `None` does not change.
    """

    delay: NotRequired[Span | None]
    """Propagation delay."""
    jitter: NotRequired[JitterPlan | None]
    """Random extra delay."""
    kind: Literal["link"]
    link: int
    """Index of the link."""
    loss: NotRequired[LossPlan | None]
    """Random loss."""
    rate: NotRequired[Rate | None]
    """Rate of the link."""


class AppChangePlan(TypedDict):
    """A change of an application, which must be of the kind `scheduled`."""

    flow: int
    """Index of the flow plan."""
    kind: Literal["app"]
    rate: NotRequired[Rate | None]
    """Rate of the application, application bytes/s; `None`: it always has data to send."""


class ControllerPlan(TypedDict):
    """A rate controller at the port of a link."""

    kind: str
    """Name of the rate controller, e.g. `brf`."""
    limit: NotRequired[LimitPlan]
    """Limit of each leaf queue."""
    link: int
    """Index of the link whose port is controlled."""
    outages: NotRequired[list[tuple[Time, Time]]]
    """Outages of the rate controller, each as (from, to). During an outage, packets pass through plain
    queues and carry no rates."""
    params: NotRequired[dict[str, bool | float | str]]
    """Parameters of the rate controller, in base units."""
    shape: NotRequired[list[tuple[Time, Rate]] | None]
    """Rate to which the port is shaped over time, as steps of (start, rate). A switch in front of a
    bottleneck link shapes its port to the bottleneck's rate. `None`: the port has the link's own rate."""
    told: NotRequired[bool]
    """Whether the rate controller is given the capacity (key `told`). If false, the rate controller
    measures the capacity."""


_FlowPlan = TypedDict(
    "_FlowPlan",
    {
        "class": "NotRequired[int]",
        "from": "int",
    },
)
"""`class`: Class for priority and HTB queues. With `share = "mark"`, BRF uses this value as the packets'
mark. `from`: Sending node."""


class FlowPlan(_FlowPlan):
    """One flow, `count` equal flows, or a source of flows."""

    app: AppPlan
    """The sending application."""
    count: NotRequired[int]
    """Number of equal flows. These flows form a group."""
    name: str
    """Name in results. Flows of a group get the suffixes `.0`, `.1`, ..."""
    return_path: NotRequired[list[int] | None]
    """Nodes of the reverse path, including both ends; `None`: the shortest path."""
    service: NotRequired[int | None]
    """Number of the service to which the flow belongs (BRF-31); `None`: the flow has a service of its own."""
    spacing: NotRequired[Span]
    """Time between the starts of two successive flows of the group."""
    start: Time
    """Time of the first SYN (TCP) or packet (UDP)."""
    start_jitter: NotRequired[Span]
    """Each flow of the group starts later by a random time of up to this length."""
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
    """Limit of the class's FIFO."""
    priority: NotRequired[int]
    """Priority for borrowing. Classes with lower values borrow first."""
    rate: Rate
    """Guaranteed rate."""


class JitterPlan(TypedDict):
    """Random extra delay of a packet."""

    max: Span
    """The delay is uniform between 0 and this value."""
    reorder: NotRequired[bool]
    """Whether packets may overtake each other."""


class KernelPlan(TypedDict):
    """How real stacks are set up.

    The simulator ignores these options. If an option is `None`, the backend chooses its value.
    """

    datapath: NotRequired[Datapath | None]
    """Datapath of Open vSwitch."""
    delay: NotRequired[Delayer | None]
    """Implementation of delay and loss."""
    forwarding: NotRequired[Forwarding | None]
    """How nodes that are not ends of flows forward packets."""
    host_queue: NotRequired[HostQueue | None]
    """Queue of a host's port, if the link's queue has no limit."""
    interval: NotRequired[Span | None]
    """Time between two samples of sockets and queues."""
    tool: NotRequired[Tool | None]
    """The program that generates the flows."""


class LimitPlan(TypedDict):
    """Limit of a queue.

    If both fields are `None`, the queue is unlimited.
    """

    bytes: NotRequired[Bytes | None]
    """Maximum number of waiting L3 bytes; `None`: no limit."""
    packets: NotRequired[int | None]
    """Maximum number of waiting packets; `None`: no limit."""


_LinkPlan = TypedDict(
    "_LinkPlan",
    {
        "from": "int",
    },
)
"""`from`: Sending node."""


class LinkPlan(_LinkPlan):
    """A directed link, which consists of a port with its queue and the wire after the port."""

    aggregation: NotRequired[Span | None]
    """Length of an aggregation interval. Packets that leave the queue during an interval are sent together
    at its end. The first interval begins at the start of the run."""
    delay: list[tuple[Time, Span]]
    """Propagation delay over time, as steps of (start, delay). The first step starts at 0."""
    duplicate: NotRequired[float]
    """Probability that a packet arrives twice."""
    jitter: NotRequired[JitterPlan | None]
    """Random extra delay."""
    jitter_changes: NotRequired[list[tuple[Time, JitterPlan]]]
    """Changes of the random extra delay, as steps of (start, jitter). Before the first step, `jitter`
    applies."""
    loss: NotRequired[list[tuple[Time, LossPlan]]]
    """Random loss after the queue over time, as steps of (start, model). If the list is empty, there is no
    loss."""
    name: str
    """Name in results, e.g. `R0->R1`."""
    policer: NotRequired[PolicerPlan | None]
    """A policer after the queue. It drops packets that exceed its rate."""
    queue: QueuePlan
    """Queue of the link's port."""
    rate: RatePlan
    """Rate of the link."""
    to: int
    """Receiving node."""


class BernoulliLossPlan(TypedDict):
    """Each packet is lost independently."""

    kind: Literal["bernoulli"]
    p: float
    """Probability that a packet is lost."""


class GilbertElliottLossPlan(TypedDict):
    """A model with a good and a bad state.

    Each state has a transition probability per packet and a loss probability.
    """

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
    """A packet that arrives while more than `packets` packets wait is marked with CE (as for DCTCP)."""

    kind: Literal["threshold"]
    packets: int
    """Threshold in waiting packets."""


class RedMarkPlan(TypedDict):
    """RED (Floyd and Jacobson 1993), which uses the averaged queue length."""

    ecn: NotRequired[bool]
    """Whether ECN-capable packets are marked instead of dropped."""
    kind: Literal["red"]
    max: float
    """Upper threshold in packets. The gentle variant is used, in which the probability reaches 1 at twice
    this value."""
    max_p: float
    """Probability of marking or dropping a packet at `max`."""
    min: float
    """Lower threshold in packets. Below this threshold, no packet is marked or dropped early."""
    weight: float
    """Weight of the newest value in the moving average of the queue length."""


class PolicerPlan(TypedDict):
    """A token bucket that drops packets for which it has no tokens.

    The bucket is full at the start of the run.
    """

    burst: Bytes
    """Size of the bucket."""
    rate: Rate
    """L3 rate at which the bucket fills."""


class ProbePlan(TypedDict):
    """The samples that the run records."""

    ack_rows: NotRequired[int]
    """Maximum number of rows of the table `acks`. When the table has reached this number, every second row
    is dropped. From then on, half as many ACKs are recorded."""
    acks: NotRequired[list[int]]
    """Indices of the TCP flows whose state is recorded after each ACK (table `acks`)."""
    flows: NotRequired[bool]
    """Whether flows are sampled. Flows of Poisson sources are never sampled."""
    interval: Span
    """Time between two samples; zero: no samples."""
    links: NotRequired[list[int]]
    """Indices of the links to sample. The sojourn times in the queues of these links are also measured."""
    traces: NotRequired[bool]
    """Whether the internal state of congestion controllers and rate controllers is recorded (table
    `traces`)."""


class FifoQueuePlan(TypedDict):
    """First in, first out.

    A packet that arrives at the limit is dropped (tail drop).
    """

    kind: Literal["fifo"]
    limit: NotRequired[LimitPlan]
    """Limit of the queue."""
    mark: NotRequired[MarkPlan]
    """How packets are marked or dropped before the queue is full."""


class CodelQueuePlan(TypedDict):
    """CoDel (RFC 8289)."""

    ecn: NotRequired[bool]
    """Whether packets of ECN-capable flows are marked instead of dropped."""
    interval: Span
    """Time for which the sojourn time must exceed `target` before the first drop."""
    kind: Literal["codel"]
    limit: NotRequired[LimitPlan]
    """Limit of the queue."""
    target: Span
    """Target sojourn time of packets in the queue."""


class FqCodelQueuePlan(TypedDict):
    """FQ-CoDel (RFC 8290)."""

    ecn: NotRequired[bool]
    """Whether packets of ECN-capable flows are marked instead of dropped."""
    interval: Span
    """Time for which the sojourn time must exceed `target` before the first drop."""
    kind: Literal["fq-codel"]
    limit: NotRequired[LimitPlan]
    """Limit of all queues together."""
    quantum: Bytes
    """Quantum of the deficit round robin."""
    queues: int
    """Number of queues that flows are hashed into."""
    target: Span
    """Target sojourn time of packets in the queue."""


class PriorityQueuePlan(TypedDict):
    """Strict priority.

    The `class` of a flow is an index into `classes`. Class 0 is served first.
    """

    classes: list[LimitPlan]
    """Limit of each class. Plans of version 0.2 use the key `bands`."""
    kind: Literal["priority"]


class HtbQueuePlan(TypedDict):
    """Hierarchical token bucket with one level.

    The `class` of a flow is an index into `classes`.
    """

    classes: list[HtbClassPlan]
    """The classes."""
    kind: Literal["htb"]


class StepsRatePlan(TypedDict):
    """A piecewise constant rate, as steps of (start, rate).

    The first step starts at 0. If `period` is set, the steps repeat.
    """

    kind: Literal["steps"]
    period: NotRequired[Span | None]
    """Time after which the steps repeat; `None`: the steps do not repeat."""
    steps: list[tuple[Time, Rate]]
    """The steps, in order of time."""


class OpportunitiesRatePlan(TypedDict):
    """A trace in the format of mahimahi.

    At each of the times in `millis`, the link can send `bytes` bytes. Unused opportunities are lost.
    """

    bytes: int
    """Bytes that the link can send at one opportunity (1500 in mahimahi)."""
    kind: Literal["opportunities"]
    millis: list[int]
    """Times of the opportunities in milliseconds, not decreasing."""
    period_millis: int
    """Length of the trace in milliseconds, after which it repeats."""


class SdnPlan(TypedDict):
    """The SDN controller."""

    delay: Span
    """One-way delay between the SDN controller and any switch."""
    outages: NotRequired[list[tuple[Time, Time]]]
    """Outages of the SDN controller, each as (from, to)."""
    poll: NotRequired[Span | None]
    """Time between two polls; `None`: the time is the switch's control period, but at most 100 ms."""


class FixedSizePlan(TypedDict):
    """All flows have the same size."""

    bytes: float
    """Size of each flow in bytes."""
    kind: Literal["fixed"]


class ExponentialSizePlan(TypedDict):
    """Flow sizes have an exponential distribution."""

    kind: Literal["exponential"]
    mean: float
    """Mean size in bytes."""


class ParetoSizePlan(TypedDict):
    """Flow sizes have a Pareto distribution (type I)."""

    kind: Literal["pareto"]
    mean: float
    """Mean size in bytes."""
    shape: float
    """Shape parameter of the distribution, above 1."""


class EmpiricalSizePlan(TypedDict):
    """Flow sizes have a measured distribution."""

    kind: Literal["empirical"]
    points: list[tuple[float, float]]
    """Points of the distribution. A point is a size in bytes, with the share of flows that are not larger
    than this size. Sizes and shares increase from point to point. The shares start at 0 and end at 1.
    Between two points, all sizes are equally likely."""


class TcpTransportPlan(TypedDict):
    """TCP."""

    cc: str | dict[str, bool | float | str]
    """The congestion controller: a name, or a table with `name` and parameters in base units."""
    ecn: NotRequired[bool]
    """Whether the ends negotiate ECN."""
    initial_window: NotRequired[int]
    """Window of a new connection, in packets. As in Linux, a long idle time reduces a larger window to
    this size."""
    kind: Literal["tcp"]
    mss: NotRequired[int]
    """Payload bytes of a full segment (1448 in a 1500-byte packet)."""
    pacing: NotRequired[bool]
    """Whether window-based congestion controllers are also paced. As in Linux with sch_fq, the rate is 2
    cwnd per srtt in slow start and 1.2 cwnd per srtt otherwise."""
    receive_window: NotRequired[int | None]
    """Limit of the receive window in segments; `None`: the receive buffer determines the window."""


class UdpTransportPlan(TypedDict):
    """UDP: packets of constant size at a constant rate."""

    kind: Literal["udp"]
    packet: int
    """Size of a packet, L3 bytes."""
    rate: Rate
    """Rate of the flow, L3 bytes/s."""


class StackTransportPlan(TypedDict):
    """A transport protocol of another library, such as QUIC of quinn.

    Such a protocol has its own datagrams, loss detection and pacing. The program that runs the plan
    provides the library.
    """

    cc: str | dict[str, bool | float | str]
    """The congestion controller, by a name of the stack or of the catalogue. If a name exists in both, it
    selects the stack's controller. `narrows:NAME` selects the controller of the catalogue."""
    kind: Literal["stack"]
    name: str
    """Name of the stack, e.g. `quinn`."""
    receive_window: NotRequired[Bytes | None]
    """Flow-control window of the receiver in application bytes; `None`: the stack's default."""


class ProgramTransportPlan(TypedDict):
    """Unmodified programs exchange the data.

    Only real stacks can run a flow of programs.
    """

    cc: NotRequired[str | dict[str, bool | float | str] | None]
    """Congestion controller of the sending host's TCP connections; `None`: the kernel's default."""
    client: list[str]
    """Words of the client's command. The client starts at the flow's start."""
    client_at: NotRequired[FlowEnd]
    """The end of the flow at which the client runs. The server runs at the other end."""
    files: NotRequired[list[str]]
    """Paths of files and folders that the programs find in their working folder."""
    kind: Literal["program"]
    port: int
    """Port at which the server listens."""
    protocol: Protocol
    """Protocol of the packets that are counted."""
    server: list[str]
    """Words of the server's command. The server starts before the run."""


class TriggerPlan(TypedDict):
    """A change of a link or an application.

    It happens a fixed time after a flow has entered a phase.
    """

    after: NotRequired[Span]
    """Time from the beginning of the visit to the change."""
    change: ChangePlan
    """The change."""
    flow: int
    """Index of the flow plan whose congestion controller is observed. It must be a single TCP flow."""
    phase: FlowPhase
    """The phase."""
    visit: int
    """Number of the visit to the phase, from 1."""


class Plan(TypedDict):
    """The plan of one run."""

    capture: NotRequired[CapturePlan | None]
    """The packets that the run records."""
    duration: Span
    """Duration of the run."""
    ecmp: NotRequired[bool]
    """Whether each flow takes a random shortest path in each direction. If false, all flows between two
    nodes take the same path."""
    flows: list[FlowPlan]
    """Flows and sources of flows."""
    kernel: NotRequired[KernelPlan | None]
    """Options of runs on real stacks."""
    links: list[LinkPlan]
    """Directed links."""
    nodes: list[str]
    """Node names. Links and flows refer to nodes by index."""
    probes: NotRequired[ProbePlan]
    """The samples that the run records."""
    rate_controllers: NotRequired[list[ControllerPlan]]
    """Rate controllers at ports. Plans of version 0.2 use the key `controllers`."""
    receive_buffer: NotRequired[Bytes | None]
    """Receive buffer of each TCP connection (the maximum in Linux's `tcp_rmem`). The receiver offers half
    of the buffer as its window. `None`: Linux's default."""
    receive_memory: NotRequired[bool]
    """Whether the receive buffer limits senders after the window has reached its maximum. If true,
    segments that wait for a missing segment take memory from the buffer."""
    sdn: NotRequired[SdnPlan | None]
    """The SDN controller of the domain."""
    seed: int
    """Seed of every random choice."""
    triggers: NotRequired[list[TriggerPlan]]
    """Changes that happen when the congestion controller of a flow enters a phase. Only the simulator
    supports them."""
    warmup: NotRequired[Span]
    """Start of the measurement interval. The Python layer's default is 10 % of the run, but at least 10
    RTTs."""


AppPlan: TypeAlias = (
    BulkAppPlan | SizeAppPlan | LimitedAppPlan | ScheduledAppPlan | PoissonAppPlan | RequestsAppPlan
)
"""The sending application."""
ChangePlan: TypeAlias = LinkChangePlan | AppChangePlan
"""The values that change."""
LossPlan: TypeAlias = BernoulliLossPlan | GilbertElliottLossPlan
"""Random loss."""
MarkPlan: TypeAlias = NoneMarkPlan | ThresholdMarkPlan | RedMarkPlan
"""How a FIFO marks or drops packets before it is full."""
QueuePlan: TypeAlias = FifoQueuePlan | CodelQueuePlan | FqCodelQueuePlan | PriorityQueuePlan | HtbQueuePlan
"""The queue of a port. The packet in transmission does not count as waiting."""
RatePlan: TypeAlias = StepsRatePlan | OpportunitiesRatePlan
"""How a link serves packets over time."""
SizePlan: TypeAlias = FixedSizePlan | ExponentialSizePlan | ParetoSizePlan | EmpiricalSizePlan
"""Distribution of flow sizes in bytes."""
TransportPlan: TypeAlias = TcpTransportPlan | UdpTransportPlan | StackTransportPlan | ProgramTransportPlan
"""Transport of a flow."""
