"""Plans the runs of a matrix: each controller alone, and all pairs over one bottleneck."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from typing import Any

from narrows import _native, congestion, units
from narrows.errors import NarrowsError, one_of
from narrows.matrix.ask import Ask
from narrows.packets import FULL_PACKET
from narrows.report.style import order
from narrows.scenario.model import Scenario

TIGHT = "tight"
"""Name of the bottleneck link."""
BUFFER = f"links.{TIGHT}.queue.limit"
"""The scenario key that the matrix varies: the length of the bottleneck's queue."""
INTERVAL = "500ms"
"""Width of the bins for starvation (MET-36)."""
SDN_DELAY = "1ms"
"""One-way delay between ports and the SDN controller."""


@functools.cache
def helped() -> dict[str, dict[str, Any]]:
    """Controllers that follow rates from the network, with the scenario keys of their rate controllers."""
    return {
        name: _served(row.service, preset.mode if preset else None)
        for name, row, preset in congestion.names()
        if row.service is not None
    }


def _served(service: congestion.Service, mode: str | None) -> dict[str, Any]:
    """The scenario's keys that put this rate controller at the bottleneck, with their values."""
    mode = mode or service.mode
    params = {"params": {"mode": mode}} if mode else {}
    sdn = {"sdn": {"delay": SDN_DELAY}} if service.domain else {}
    return {"rate_controllers": [{"kind": service.kind, "link": TIGHT, **params}], **sdn}


def presets() -> set[str]:
    """Names of presets, which are controllers with certain parameters.

    A matrix contains a preset only if the user names it or asks for all controllers.
    """
    return {name for name, _, preset in congestion.names() if preset is not None}


def choose(
    known: Sequence[str], wanted: Iterable[str] = (), *, everyone: bool = False, marks: bool = False
) -> tuple[str, ...]:
    """The controllers of a matrix, sorted by family.

    Args:
        known: all controllers.
        wanted: requested controllers. The default leaves out presets and controllers that need the network's
            help. If `marks` is false, the default also leaves out controllers that react to marks.
        everyone: whether to include presets and controllers that need the network's help.
        marks: whether the network marks packets.

    Raises:
        NarrowsError: for an unknown name, or for names together with `everyone`.
    """
    named = list(dict.fromkeys(wanted))
    for name in named:
        if name not in known and congestion.class_file(name) is None:
            raise NarrowsError(f"NAME: {one_of(name, known, 'a congestion controller', 'congestion')}")
    if named and everyone:
        raise NarrowsError(f"--all: found also {', '.join(named)}, expected --all alone")
    left_out = {*helped(), *presets(), *(() if marks else congestion.marked())}
    alone = [name for name in known if name not in left_out]
    return tuple(order(named or (list(known) if everyone else alone)))


def pairs(ask: Ask) -> list[tuple[str, str]]:
    """All pairs of controllers that one bottleneck can serve. Each controller also forms a pair with itself.

    A port can have only one rate controller. Two congestion controllers that need different rate controllers
    are therefore not a pair.
    """
    every = combinations_with_replacement(order(list(ask.controllers)), 2)
    help_of = helped()
    return [(a, b) for a, b in every if not (a in help_of and b in help_of) or help_of[a] == help_of[b]]


def case(first: str, second: str | None = None) -> str:
    """The name of the runs of two controllers, or of the runs of one controller without a rival."""
    return first if second is None else f"{first}+{second}"


def scenario(ask: Ask) -> Scenario:
    """The matrix as a scenario with a sweep. Senders s1 and s2 each send one flow to d, over r1 and r2."""
    # Hosts delay each packet by a random time of at most the transmission time of a full packet at the
    # bottleneck. Without this delay, two flows would stay synchronised.
    jitter = units.format_duration(8 * FULL_PACKET * units.NANOS_PER_SEC // units.parse_rate(ask.rate))
    access: dict[str, Any] = {
        "rate": units.format_rate(_native.ACCESS_FACTOR * units.parse_rate(ask.rate)),
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
        {"name": case(name), "set": {"flows": [_flow(name, 1)], **helped().get(name, {})}}
        for name in order(list(ask.controllers))
    ]
    together = [
        {
            "name": case(a, b),
            "set": {"flows": [_flow(a, 1), _flow(b, 2)], **helped().get(a, {}), **helped().get(b, {})},
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
    """The bottleneck's queue: a FIFO, or a queue that marks packets when it exceeds a length."""
    if ask.mark is None:
        return {"kind": "fifo", "limit": ask.buffers[0]}
    return {"kind": "threshold", "limit": ask.buffers[0], "mark": ask.mark}
