"""The runs of a matrix: each controller alone, and every two of them over one bottleneck."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from narrows import units
from narrows.errors import NarrowsError, one_of
from narrows.report.style import order
from narrows.scenario.model import Scenario
from narrows.scenario.served import MARKED

TIGHT = "tight"
"""Name of the bottleneck."""
BUFFER = f"links.{TIGHT}.queue.limit"
"""The key that varies."""
BUFFERS = ("0.5bdp", "1bdp", "4bdp")
"""Lengths of its queue, if nothing else is asked for."""
ACCESS_FACTOR = 10
"""Access links over the bottleneck; they never drop."""
FULL_PACKET = 1500
"""L3 bytes. Hosts add up to its time at the bottleneck at random: without it two flows stay in lock-step."""
INTERVAL = "500ms"
"""Bins in which starvation is looked for (MET-36)."""
SDN_DELAY = "1ms"
"""Between ports and the domain's controller, one way."""

_BRF = {"sdn": {"delay": SDN_DELAY}}
HELP: dict[str, dict[str, Any]] = {
    "brf": {"controllers": [{"kind": "brf", "link": TIGHT, "params": {"mode": "resolved"}}], **_BRF},
    "brf-literal": {"controllers": [{"kind": "brf", "link": TIGHT, "params": {"mode": "literal"}}], **_BRF},
    "pacec": {"controllers": [{"kind": "pacec", "link": TIGHT}], **_BRF},
    "rcp": {"controllers": [{"kind": "rcp", "link": TIGHT}]},
    "xcp": {"controllers": [{"kind": "xcp", "link": TIGHT}]},
    "bdr": {"controllers": [{"kind": "bdr", "link": TIGHT}]},
    "bdr-literal": {"controllers": [{"kind": "bdr", "link": TIGHT, "params": {"mode": "literal"}}]},
    "obp": {"controllers": [{"kind": "obp", "link": TIGHT}]},
}
"""Controllers that take their rate from the network, and the rate controller that they require."""
VARIANTS = ("-literal", "-recent", "-hystartpp")
"""Endings of names that are another controller but for one thing; they are in a matrix if asked for."""


@dataclass(frozen=True)
class Ask:
    """The controllers and the network of a matrix."""

    controllers: tuple[str, ...]
    rate: str = "100mbit"
    """L3 rate of the bottleneck."""
    rtt: str = "40ms"
    """Two-way propagation delay of all flows."""
    buffers: tuple[str, ...] = BUFFERS
    """Lengths of the bottleneck's queue."""
    duration: str = "60s"
    seeds: int = 5
    seed: int = 1
    loss: str | float = 0.0
    """Random loss behind the bottleneck's queue."""
    mark: str | None = None
    """Queue length above which packets are marked, for controllers that heed ECN; no marks if left out."""


def choose(
    known: Sequence[str], wanted: Iterable[str] = (), *, everyone: bool = False, marks: bool = False
) -> tuple[str, ...]:
    """The controllers of a matrix, family by family.

    Args:
        known: all there are.
        wanted: those asked for; if none, all that need nothing of the network (where it does not mark, no
            DCTCP), but no variants.
        everyone: variants, and those that need the network's help, too.
        marks: the network marks.

    Raises:
        NarrowsError: for a name that is not known, or names together with `everyone`.
    """
    named = list(dict.fromkeys(wanted))
    for name in named:
        if name not in known:
            raise NarrowsError(f"controller: {one_of(name, known, 'a congestion controller', 'controllers')}")
    if named and everyone:
        raise NarrowsError(f"--all: found with {', '.join(named)}, expected no controllers with it")
    alone = [
        name
        for name in known
        if name not in HELP and not name.endswith(VARIANTS) and (marks or name not in MARKED)
    ]
    return tuple(order(named or (list(known) if everyone else alone)))


def pairs(ask: Ask) -> list[tuple[str, str]]:
    """Every two controllers that one bottleneck can serve, and each with itself.

    A port has one rate controller: two kinds that need different ones do not meet.
    """
    every = combinations_with_replacement(order(list(ask.controllers)), 2)
    return [(a, b) for a, b in every if not (a in HELP and b in HELP) or HELP[a] == HELP[b]]


def case(first: str, second: str | None = None) -> str:
    """The name of the runs of a pair, or of one alone."""
    return first if second is None else f"{first}+{second}"


def scenario(ask: Ask) -> Scenario:
    """The matrix as a scenario with a sweep: s1 and s2 - r1 - r2 - d, a flow from each sender."""
    jitter = units.format_duration(8 * FULL_PACKET * units.NANOS_PER_SEC // units.parse_rate(ask.rate))
    access: dict[str, Any] = {
        "rate": units.format_rate(ACCESS_FACTOR * units.parse_rate(ask.rate)),
        "delay": "0ms",
        "queue": "infinite",
    }
    tight: dict[str, Any] = {
        "name": TIGHT,
        "between": ["r1", "r2"],
        "rate": ask.rate,
        "delay": units.format_duration(units.parse_duration(ask.rtt) // 2),
        "queue": _queue(ask),
        "back": {"rate": access["rate"], "queue": "infinite"},
    }
    if ask.loss:
        tight["loss"] = ask.loss
    alone = [
        {"name": case(name), "set": {"flows": [_flow(name, 1)], **HELP.get(name, {})}}
        for name in order(list(ask.controllers))
    ]
    together = [
        {
            "name": case(a, b),
            "set": {"flows": [_flow(a, 1), _flow(b, 2)], **HELP.get(a, {}), **HELP.get(b, {})},
        }
        for a, b in pairs(ask)
    ]
    return Scenario(
        name="matrix",
        duration=ask.duration,
        seed=ask.seed,
        links=[
            *({"between": [f"s{i}", "r1"], **access, "jitter": {"max": jitter}} for i in (1, 2)),
            tight,
            {"between": ["r2", "d"], **access},
        ],
        flows=[_flow("cubic", 1)],
        probes={"interval": INTERVAL, "links": [TIGHT]},
        sweep={
            "seeds": ask.seeds,
            "vary": {BUFFER: list(ask.buffers)},
            "case": alone + together,
        },
    ).with_source("matrix")


def _flow(cc: str, host: int) -> dict[str, Any]:
    return {"from": f"s{host}", "to": "d", "cc": cc}


def _queue(ask: Ask) -> dict[str, Any]:
    """The bottleneck's queue: FIFO, or one that marks above a length."""
    if ask.mark is None:
        return {"kind": "fifo", "limit": ask.buffers[0]}
    return {"kind": "threshold", "limit": ask.buffers[0], "mark": ask.mark}
