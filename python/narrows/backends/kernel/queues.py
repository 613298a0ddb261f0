"""Translates a plan's rates and queues to Linux: HTB with FIFO leaves. The functions have no side effects.

HTB counts L3 bytes, as scenarios do. A size table with an overhead of -14 subtracts the Ethernet header
(net/sched/sch_api.c, __qdisc_calculate_pkt_len). The leaves' byte limits and the counters also use the size
without the Ethernet header.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from narrows.errors import ScenarioError
from narrows.packets import ETHERNET, FULL_PACKET
from narrows.plan import FifoQueuePlan, LimitPlan, LinkPlan, MarkPlan, QueuePlan
from narrows.units import NANOS_PER_SEC

FRAME = FULL_PACKET + ETHERNET
"""Size of a full frame in bytes, as devices count it."""
BURST_PACKETS = 1
"""Minimum size of a bucket in packets. With a larger minimum, a slow link could send two packets back to
back."""
BURST_NANOS = 200_000
"""Minimum bucket size, as transmission time at the rate. With a smaller bucket, the timer slack of 50 us
would lower the rate."""
_NEVER_SECONDS = 1000
"""A sojourn time that no packet reaches. It is within the range of CoDel's clock."""
ENDLESS_PACKETS = 10_000_000
"""Packet limit of an unlimited queue. The queueing discipline pfifo needs some limit."""


@dataclass(frozen=True)
class Leaf:
    """The FIFO of a class, limited in packets or in bytes."""

    packets: int | None
    bytes: int | None
    """Maximum length in L3 bytes (None: `packets` limits the queue)."""
    mark: int | None = None
    """A packet is marked CE if it was in the queue for longer than this time in ns (None: no marks)."""
    fq: bool = False
    """Whether the queue is the qdisc fq, which holds packets until their departure times."""

    def words(self) -> str:
        """The arguments of the qdisc for tc(8)."""
        if self.mark is not None:
            # The target of CoDel is so large that no packet reaches it. Only ce_threshold marks packets.
            never = f"target {_NEVER_SECONDS}s interval {_NEVER_SECONDS}s"
            return f"codel limit {self.packets} {never} ecn ce_threshold {self.mark / 1000:.3f}us"
        if self.fq:
            return f"fq limit {self.packets} flow_limit {self.packets}"
        return f"pfifo limit {self.packets}" if self.bytes is None else f"bfifo limit {self.bytes}"


@dataclass(frozen=True)
class Class:
    """A class below the root of an HTB."""

    rate: int
    """Guaranteed rate, bytes/s."""
    ceil: int
    """Maximum rate, bytes/s."""
    leaf: Leaf
    priority: int


@dataclass(frozen=True)
class Qdisc:
    """Rate and queue of a port."""

    steps: tuple[tuple[int, int], ...]
    """Steps of the rate as (start in ns, bytes/s). The first step starts at 0."""
    leaf: Leaf | None
    """The only queue (None: the qdisc has classes)."""
    classes: tuple[Class, ...] = ()

    @property
    def rate(self) -> int:
        """Rate at the start, bytes/s."""
        return self.steps[0][1]


def burst(rate: int) -> int:
    """Size in bytes of the bucket for a rate in bytes/s."""
    return max(BURST_PACKETS * FRAME, rate * BURST_NANOS // NANOS_PER_SEC)


def with_fq(queue: Qdisc) -> Qdisc | None:
    """The queue with fq instead of its FIFO (None: the queue is not a single FIFO without limit)."""
    if queue.leaf != Leaf(ENDLESS_PACKETS, None):
        return None
    return replace(queue, leaf=replace(queue.leaf, fq=True))


def relay_shapes(link: LinkPlan) -> bool:
    """Whether the relay must shape a link, because HTB supports neither traces nor outages (a rate of 0)."""
    rate = link["rate"]
    if rate["kind"] != "steps" or rate.get("period") is not None:
        return True
    return any(value == 0 for _, value in rate["steps"])


def qdisc(link: LinkPlan, key: str) -> Qdisc:
    """The qdisc of a link whose rate HTB supports.

    Raises:
        ScenarioError: for a queue that Linux or this backend does not support.
    """
    rate = link["rate"]
    if rate["kind"] != "steps":
        raise ValueError(f"{key}: a trace, which HTB does not support")
    steps = tuple((when, value) for when, value in rate["steps"])
    queue = link["queue"]
    threshold = _threshold(queue)
    if queue["kind"] == "fifo" and is_plain(queue):
        return Qdisc(steps, leaf(queue["limit"]))
    if queue["kind"] == "fifo" and threshold is not None and len(steps) == 1:
        return Qdisc(steps, _marking(queue["limit"], threshold, steps[0][1]))
    if queue["kind"] == "htb":
        classes = tuple(
            Class(entry["rate"], entry["ceil"], leaf(entry["limit"]), entry["priority"])
            for entry in queue["classes"]
        )
        return Qdisc(steps, None, classes)
    if threshold is not None:
        raise ScenarioError(
            "found 'threshold' at a link whose rate changes, expected a constant rate: the kernel backend "
            "converts the queue length to a queueing time",
            key,
        )
    raise _missing(queue, "a length, 'htb', or 'threshold'", key)


def check_shaped(link: LinkPlan, key: str) -> None:
    """Check the queue of a link that the relay serves.

    Raises:
        ScenarioError: for a queue that the relay does not support.
    """
    if not is_plain(link["queue"]):
        raise _missing(link["queue"], "a length (the rate is a trace or has an outage)", key)


def is_plain(queue: QueuePlan) -> bool:
    """Whether a queue is a plain drop-tail FIFO."""
    return queue["kind"] == "fifo" and _mark(queue)["kind"] == "none"


def _mark(queue: FifoQueuePlan) -> MarkPlan:
    none: MarkPlan = {"kind": "none"}
    return queue.get("mark", none)


def _threshold(queue: QueuePlan) -> int | None:
    """The queue length in packets above which a FIFO marks (None: there is no such length)."""
    mark = _mark(queue) if queue["kind"] == "fifo" else None
    return mark["packets"] if mark is not None and mark["kind"] == "threshold" else None


def _marking(length: LimitPlan, threshold: int, rate: int) -> Leaf:
    """A FIFO that marks packets above a queue length. It uses CoDel's ce_threshold.

    At a fixed rate, a packet that finds more than n full packets in the queue waits longer than n
    transmission times. CoDel's limit is in packets. A limit in bytes is converted to full packets. The
    conversion is exact if all packets are full.
    """
    plain = leaf(length)
    limit = plain.packets if plain.bytes is None else max(1, plain.bytes // FULL_PACKET)
    return Leaf(limit, None, threshold * FULL_PACKET * NANOS_PER_SEC // rate)


def _missing(queue: QueuePlan, would_do: str, key: str) -> ScenarioError:
    name = _mark(queue)["kind"] if queue["kind"] == "fifo" else queue["kind"]
    return ScenarioError(
        f"found {name!r}, expected a queue that the kernel backend supports: {would_do}", key
    )


def leaf(limit: LimitPlan) -> Leaf:
    """A FIFO with this limit."""
    length = limit.get("bytes")
    if length is not None:
        return Leaf(None, length)
    packets = limit.get("packets")
    return Leaf(ENDLESS_PACKETS if packets is None else min(packets, ENDLESS_PACKETS), None)
