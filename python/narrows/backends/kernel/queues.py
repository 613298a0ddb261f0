"""A plan's rates and queues as Linux has them: HTB with FIFO leaves. Pure.

The HTB counts L3 bytes, as the scenario does: a size table with an overhead of -14 takes the Ethernet header
off (net/sched/sch_api.c, __qdisc_calculate_pkt_len), for the leaves' byte limits and for the counters too.
"""

from __future__ import annotations

from dataclasses import dataclass

from narrows.errors import ScenarioError
from narrows.scenario.parts import Plan
from narrows.units import NANOS_PER_SEC

PACKET = 1514
"""A full frame as devices count it, bytes."""
BURST_PACKETS = 1
"""Least bucket: a slow link sends no two packets at once."""
BURST_NANOS = 200_000
"""... or what the rate carries in this time: with less the kernel's timer (50 us of slack) costs rate."""
FULL_PACKET = 1500
"""L3 bytes of the largest packet, unless a flow sends larger ones."""
_NEVER_SECONDS = 1000
"""A sojourn that no packet has, within what CoDel's clock can say (an hour)."""
ENDLESS_PACKETS = 10_000_000
"""Limit of a queue without one; pfifo has to have some."""


@dataclass(frozen=True)
class Leaf:
    """The FIFO of a class: one of the two limits."""

    packets: int | None
    bytes: int | None
    """L3 bytes."""
    mark: int | None = None
    """ns: a packet that waited longer is marked CE."""

    def words(self) -> str:
        """As tc(8) takes it."""
        if self.mark is not None:
            # CoDel without its law: a target that nothing reaches. What marks is its ce_threshold alone.
            never = f"target {_NEVER_SECONDS}s interval {_NEVER_SECONDS}s"
            return f"codel limit {self.packets} {never} ecn ce_threshold {self.mark / 1000:.3f}us"
        return f"pfifo limit {self.packets}" if self.bytes is None else f"bfifo limit {self.bytes}"


@dataclass(frozen=True)
class Class:
    """A class below the root of an HTB."""

    rate: int
    """Guaranteed, bytes/s."""
    ceil: int
    """Most, bytes/s."""
    leaf: Leaf
    priority: int


@dataclass(frozen=True)
class Qdisc:
    """Rate and queue of a port."""

    steps: tuple[tuple[int, int], ...]
    """(from when in ns, bytes/s); the first at 0."""
    leaf: Leaf | None
    """The only queue; None if there are classes."""
    classes: tuple[Class, ...] = ()

    @property
    def rate(self) -> int:
        """At the start, bytes/s."""
        return self.steps[0][1]


def burst(rate: int) -> int:
    """Bytes of a bucket that serves at `rate` bytes/s."""
    return max(BURST_PACKETS * PACKET, rate * BURST_NANOS // 1_000_000_000)


def relay_shapes(link: Plan) -> bool:
    """Whether a link's rate is none that an HTB has: a trace, or an outage (an HTB's rate is never 0)."""
    rate = link["rate"]
    if rate["kind"] != "steps" or rate.get("period") is not None:
        return True
    return any(value == 0 for _, value in rate["steps"])


def qdisc(link: Plan, key: str) -> Qdisc:
    """The qdisc of a link whose rate an HTB can have.

    Raises:
        ScenarioError: for a queue that Linux, or this backend, does not have.
    """
    steps = tuple((when, value) for when, value in link["rate"]["steps"])
    queue = link["queue"]
    if is_plain(queue):
        return Qdisc(steps, leaf(queue["limit"]))
    if _is_marking(queue) and len(steps) == 1:
        return Qdisc(steps, _marking(queue, steps[0][1]))
    if queue["kind"] == "htb":
        classes = tuple(
            Class(entry["rate"], entry["ceil"], leaf(entry["limit"]), entry["priority"])
            for entry in queue["classes"]
        )
        return Qdisc(steps, None, classes)
    if _is_marking(queue):
        raise ScenarioError(
            "found 'threshold' behind a rate that changes, expected a rate that stays: the kernel "
            "backend marks by the time that a queue of this length takes",
            key,
        )
    raise _missing(queue, "a length, 'htb', or 'threshold'", key)


def check_shaped(link: Plan, key: str) -> None:
    """Check the queue of a link that the relay serves.

    Raises:
        ScenarioError: for a queue that the relay does not have.
    """
    if not is_plain(link["queue"]):
        raise _missing(link["queue"], "a length (the rate is a trace or has an outage)", key)


def is_plain(queue: Plan) -> bool:
    """Whether it is a FIFO that drops at its tail and nothing else."""
    return bool(queue["kind"] == "fifo" and (queue.get("mark") or {"kind": "none"})["kind"] == "none")


def _is_marking(queue: Plan) -> bool:
    """Whether it is a FIFO that marks above a length."""
    return bool(queue["kind"] == "fifo" and queue["mark"]["kind"] == "threshold")


def _marking(queue: Plan, rate: int) -> Leaf:
    """Behind a fixed rate, who finds more than so many full packets waits longer than they take to serve.

    CoDel's limit is in packets. One in bytes becomes as many full packets, the same as long as those that
    wait are full.
    """
    plain = leaf(queue["limit"])
    limit = plain.packets if plain.bytes is None else max(1, plain.bytes // FULL_PACKET)
    return Leaf(limit, None, queue["mark"]["packets"] * FULL_PACKET * NANOS_PER_SEC // rate)


def _missing(queue: Plan, would_do: str, key: str) -> ScenarioError:
    name = queue["mark"]["kind"] if queue["kind"] == "fifo" else queue["kind"]
    return ScenarioError(f"found {name!r}, expected a queue that the kernel backend has: {would_do}", key)


def leaf(limit: Plan) -> Leaf:
    """A FIFO by its limit."""
    if limit.get("bytes") is not None:
        return Leaf(None, limit["bytes"])
    packets = limit.get("packets")
    return Leaf(ENDLESS_PACKETS if packets is None else min(packets, ENDLESS_PACKETS), None)
