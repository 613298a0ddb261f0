"""Models of links, their queues and their losses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from narrows import units
from narrows.errors import Expected, hint
from narrows.scenario.beginning import Beginning, check_time
from narrows.scenario.fields import (
    Delay,
    Duration,
    Flag,
    Float,
    Int,
    Limit,
    Name,
    PositiveDuration,
    Probability,
    Rate,
    RateOrZero,
    Size,
    Table,
)

TXQUEUELEN = units.Limit(packets=1000)
"""Linux's default queue length."""


class Limited(Table):
    """A queue with one limit."""

    limit: Limit = TXQUEUELEN
    """Maximum length of the queue; the default is Linux's txqueuelen."""

    @staticmethod
    def one_bdp() -> Fifo:
        """A FIFO of one bandwidth-delay product."""
        return Fifo(kind="fifo", limit=units.Limit(bdp=1.0))

    @staticmethod
    def endless() -> Fifo:
        """A FIFO that never drops."""
        return Fifo(kind="fifo", limit=units.Limit())


class Fifo(Limited):
    """First in, first out; drops at the tail."""

    kind: Literal["fifo"]


def _mark(value: object) -> units.Limit:
    """A whole number of packets, or a finite length."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= units.MAX_PACKETS:
            raise Expected(f"packets from 1 to {units.MAX_PACKETS}")
        return units.Limit(packets=value)
    return units.parse_finite_limit(value)


def _written(limit: units.Limit) -> int | str:
    return str(limit) if limit.packets is None else limit.packets


Mark = Annotated[
    units.Limit,
    BeforeValidator(_mark, json_schema_input_type=Annotated[Int, Field(ge=1, le=units.MAX_PACKETS)] | Limit),
    PlainSerializer(_written, when_used="json"),
]
"""A queue length: a number of packets, or a length with a unit such as '150kB' or '0.5bdp'."""


class Threshold(Limited):
    """A FIFO that marks CE above a queue length (DCTCP's step, RFC 8257)."""

    kind: Literal["threshold"]
    mark: Mark = units.Limit(packets=65)
    """An arriving packet is marked if the queue is longer than this: a number of packets, or a length such as
    '150kB'. DCTCP uses 65 packets at 10 Gbit/s."""


class Red(Limited):
    """RED in its gentle variant (Floyd and Jacobson 1993; Floyd 2000)."""

    kind: Literal["red"]
    min: Annotated[Float, Field(ge=0, le=1e9)] = 5.0
    """Average queue in packets below which no packet is dropped or marked."""
    max: Annotated[Float, Field(gt=0, le=1e9)] = 15.0
    """Average queue in packets at which the probability of a drop or mark is `max_p`."""
    max_p: Probability = 0.1
    """Probability of a drop or mark at `max` (Floyd 1997)."""
    weight: Annotated[Float, Field(gt=0, le=1)] = 0.002
    """Weight of the newest sample in the average (Floyd and Jacobson 1993)."""
    ecn: Flag = False
    """Mark packets of ECN-capable flows instead of dropping them."""

    @model_validator(mode="after")
    def _ordered(self) -> Red:
        if self.min >= self.max:
            raise Expected("a min below max")
        return self


class _Codel(Limited):
    target: PositiveDuration = 5_000_000
    """Acceptable standing sojourn time (RFC 8289, section 4.4)."""
    interval: PositiveDuration = 100_000_000
    """CoDel's interval, about the longest RTT of the flows (RFC 8289, section 4.3)."""
    ecn: Flag = False
    """Mark packets of ECN-capable flows instead of dropping them."""

    @model_validator(mode="after")
    def _ordered(self) -> _Codel:
        if self.target > self.interval:
            raise Expected("a target of at most the interval")
        return self


class Codel(_Codel):
    """CoDel (RFC 8289)."""

    kind: Literal["codel"]


class FqCodel(_Codel):
    """FQ-CoDel (RFC 8290)."""

    kind: Literal["fq-codel"]
    limit: Limit = units.Limit(packets=10240)
    """Maximum length of all queues together (RFC 8290, section 4.1.2)."""
    quantum: Size = 1514
    """Number of bytes that a queue may send per round (RFC 8290, section 4.1.1)."""
    queues: Annotated[Int, Field(ge=1, le=65536)] = 1024
    """Number of queues into which flows are hashed (RFC 8290, section 4.1.2)."""


class Priority(Table):
    """Strict priority: a flow's `class` is an index into `classes`, and class 0 is served first."""

    kind: Literal["priority"]
    classes: Annotated[list[Limit], Field(min_length=1, max_length=16)]
    """Maximum length of the queue of each class."""


class HtbClass(Table):
    """A class of an HTB."""

    rate: Rate
    """Guaranteed rate; the sum over all classes must not exceed the link's rate."""
    ceil: Rate | None = None
    """Maximum rate including borrowed bandwidth (default: the guaranteed rate)."""
    limit: Limit = TXQUEUELEN
    """Maximum length of the class's FIFO."""
    priority: Annotated[Int, Field(ge=0, le=7)] = 0
    """Priority for borrowing; lower values borrow first."""

    @model_validator(mode="after")
    def _ordered(self) -> HtbClass:
        if self.ceil is not None and self.ceil < self.rate:
            raise Expected(
                f"a ceil of at least the rate ({units.format_rate(self.rate)}), "
                f"not {units.format_rate(self.ceil)}"
            )
        return self


class Htb(Table):
    """Hierarchical token bucket with one level. A flow's `class` is an index into `classes`."""

    kind: Literal["htb"]
    classes: Annotated[list[HtbClass], Field(min_length=1, max_length=256)]
    """The classes."""


QUEUES: dict[str, type[Table]] = {
    "fifo": Fifo,
    "threshold": Threshold,
    "red": Red,
    "codel": Codel,
    "fq-codel": FqCodel,
    "priority": Priority,
    "htb": Htb,
}


_WITH_DEFAULTS = ("fifo", "threshold", "red", "codel", "fq-codel")
"""Queues whose only required key is their kind."""


def _queue(value: object) -> object:
    """Convert a string to a table. It is the length of a FIFO, or the kind of a queue with default values."""
    if isinstance(value, str) and value in _WITH_DEFAULTS:
        return {"kind": value}
    if isinstance(value, str) and value in QUEUES:
        needed = next(name for name, field in QUEUES[value].model_fields.items() if name != "kind")
        raise Expected(f"a table with its {needed}: {{ kind = {value!r}, {needed} = [...] }}")
    if isinstance(value, str) and value[:1].isalpha() and value != "infinite":
        raise Expected(f"a queue length such as '1000p', or a kind of queue{hint(value, QUEUES)}")
    if isinstance(value, str | int | float):
        return {"kind": "fifo", "limit": units.parse_limit(value)}
    if isinstance(value, list):
        raise Expected("a queue length such as '1000p', or a kind of queue")
    return value


def _loss(value: object) -> object:
    """A bare probability means independent losses."""
    if isinstance(value, str | int | float | list) and not isinstance(value, bool):
        return {"model": "bernoulli", "p": units.parse_loss(value)}
    return value


def _jitter(value: object) -> object:
    """A bare time is the maximum."""
    if isinstance(value, dict | Jitter):
        return value
    units.parse_duration(value)
    return {"max": value}


class Bernoulli(Table):
    """Each packet is lost independently."""

    model: Literal["bernoulli"]
    p: Probability
    """Probability that a packet is lost."""


class GilbertElliott(Table):
    """Two states, each with a transition probability per packet and a loss probability per packet.

    The model is that of Gilbert (1960) and Elliott (1963).
    """

    model: Literal["gilbert-elliott"]
    p: Probability
    """Transition probability from the good to the bad state."""
    r: Probability
    """Transition probability from the bad to the good state."""
    good: Probability = 0.0
    """Probability of a loss in the good state."""
    bad: Probability = 1.0
    """Probability of a loss in the bad state."""


LOSSES: dict[str, type[Table]] = {"bernoulli": Bernoulli, "gilbert-elliott": GilbertElliott}


_queue_union = Annotated[
    Fifo | Threshold | Red | Codel | FqCodel | Priority | Htb, Field(discriminator="kind")
]
_loss_union = Annotated[Bernoulli | GilbertElliott, Field(discriminator="model")]

Queue = Annotated[_queue_union, BeforeValidator(_queue, json_schema_input_type=Limit | _queue_union)]
"""A length ('1000p', '150kB', '1bdp', 'infinite') for a FIFO, or a table with a kind."""
Loss = Annotated[_loss_union, BeforeValidator(_loss, json_schema_input_type=Probability | _loss_union)]
"""A probability, or a table with a model."""


class Jitter(Table):
    """Random extra delay of each packet."""

    max: Duration
    """Maximum of the uniform distribution, which starts at 0."""
    reorder: Flag = False
    """Whether packets may be reordered."""


class Policer(Table):
    """A token bucket that drops packets for which it has no tokens. At the start of the run, it is full."""

    rate: Rate
    """L3 rate at which the bucket fills."""
    burst: Size
    """Size of the bucket, at least a full packet."""


class Trace(Table):
    """Capacity from a file."""

    file: Annotated[str, Field(min_length=1, max_length=4096)]
    """Path, relative to the scenario's folder."""
    format: Literal["mahimahi", "csv"] = "mahimahi"
    """With `mahimahi`, each line is a time in ms at which 1500 bytes may leave. With `csv`, each line has a
    time and a rate."""
    time: Annotated[str | Int, Field(union_mode="left_to_right")] = 0
    """CSV: column with the time, as a name or as a number that counts from 0."""
    rate: Annotated[str | Int, Field(union_mode="left_to_right")] = 1
    """CSV: column with the rate, as a name or as a number that counts from 0."""
    time_unit: Literal["s", "ms", "us"] = "s"
    """CSV: unit of the time."""
    unit: str = "mbit/s"
    """CSV: unit of the rate."""
    repeat: Flag = True
    """CSV: whether the trace repeats after its end. If false, the trace's last rate applies until the end of
    the run. Mahimahi traces always repeat."""
    max_gap: PositiveDuration | None = None
    """CSV: maximum time between two consecutive lines (default: 10 times the median time, but at least
    10 s)."""


JitterField = Annotated[Jitter, BeforeValidator(_jitter, json_schema_input_type=Duration | Jitter)]
"""A time, or a table."""


class Change(Table):
    """A change of a link during the run."""

    time: Duration | None = None
    """Time of the change. With `when`, the time from the beginning of the phase to the change (default:
    0)."""
    when: Beginning | None = None
    """The beginning of a phase of a flow, at which the change happens. Only simulations support it."""
    rate: RateOrZero | None = None
    """Rate from this time on; '0mbit' is an outage."""
    delay: Delay | None = None
    """Propagation delay from this time on."""
    loss: Loss | None = None
    """Random loss from this time on (forward direction only)."""
    jitter: JitterField | None = None
    """Random extra delay of each packet from this time on (forward direction only)."""

    @model_validator(mode="after")
    def _timed(self) -> Change:
        check_time(self.time, self.when)
        return self


class Traits(Table):
    """Properties of one direction of a link."""

    rate: Rate | None = None
    """L3 rate; either this or a `trace` is required."""
    delay: Delay | None = None
    """One-way propagation delay."""
    queue: Queue | None = None
    """Queue: a length, a kind or a table (default: 1 BDP in a topology, otherwise 1000 packets)."""
    loss: Loss | None = None
    """Random loss after the queue: a probability or a table."""
    jitter: JitterField | None = None
    """Random extra delay of each packet: its maximum or a table."""
    duplicate: Probability = 0.0
    """Probability that a packet is duplicated."""
    policer: Policer | None = None
    """Drops packets above a rate, after the queue."""
    aggregation: PositiveDuration | None = None
    """Length of the intervals of aggregation. Packets that leave the queue during an interval are sent
    together at its end."""
    trace: Trace | None = None
    """File with the rate over time. An alternative to `rate`."""
    at: list[Change] = []
    """Changes during the run, in order of time."""


class Link(Traits):
    """A link between two nodes, with its two directions.

    `rate`, `delay`, `queue` and their changes apply to both directions. `loss`, `jitter`, `duplicate`,
    `policer`, `aggregation` and `trace` apply from the first node to the second. `back` overrides keys of the
    reverse direction.
    """

    name: Name | None = None
    """Name of the forward direction. The reverse direction is called `<name>.back`. If no name is set, the
    directions are called `A->B` and `B->A`."""
    between: Annotated[list[Name], Field(min_length=2, max_length=2)]
    """The two nodes."""
    back: Traits | None = None
    """Keys that have other values in the reverse direction: `rate`, `delay`, `queue`, `loss`, `jitter`,
    `duplicate`, `policer`, `aggregation`, `trace` or `at`."""


class Node(Table):
    """A node; nodes that links mention need no entry."""

    name: Name
    """Name of the node."""
