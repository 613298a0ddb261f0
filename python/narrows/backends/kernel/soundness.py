"""Judges whether other work on the machine disturbed a run on real stacks.

The functions have no side effects.

A disturbed run is kept, but marked "do not trust" with all reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

LATENESS_NANOS = 1_000_000
"""Upper bound for the 99th percentile of the packets' lateness at the relay: 5 % of an RTT of 20 ms."""
BUSY = 0.9
"""Maximum share of a second in which all processors are busy. If the share is larger, tasks wait for a
processor."""
LIMITED = 0.05
"""Maximum share of time in which a receive window or a send buffer limits a bulk flow."""


def bounds(virtual: bool = False) -> dict[str, float]:
    """The bounds that `_native.emulate` checks.

    Args:
        virtual: whether time is virtual. In virtual time, only the run itself makes the processor busy. A
            second without idle time therefore means that the processor was the run's bottleneck.
    """
    busiest = {"busiest": BUSY} if virtual else {}
    return {"lateness": LATENESS_NANOS, "busy": BUSY, "limited": LIMITED, **busiest}


def judge(
    measured: Mapping[str, Any],
    complaints: Iterable[str],
    drops: Mapping[str, int],
    notes: Iterable[str] = (),
) -> dict[str, Any]:
    """The verdict on a run.

    Args:
        measured: soundness as `_native.emulate` reports it.
        complaints: errors of the programs that took part in the run.
        drops: number of packets that each device dropped. Any drop is a reason not to trust the run, because
            only queues may drop packets.
        notes: differences from the scenario that do not affect the verdict.

    Returns:
        The measurements, with `sound` and `reasons` added.
    """
    reasons = [*measured.get("reasons", []), *complaints]
    reasons += [
        f"{count} packets dropped by device {name}, no queue" for name, count in drops.items() if count
    ]
    told = [*measured.get("notes", []), *notes]
    return {**measured, "sound": not reasons, "reasons": reasons, "notes": told}


def line(by_run: Mapping[str, Mapping[str, Any]]) -> str:
    """The line to print: ``sound``, or ``do not trust: <reasons>`` with the runs concerned."""
    reasons: dict[str, list[str]] = {}
    for run, verdict in by_run.items():
        for reason in verdict["reasons"]:
            reasons.setdefault(reason, []).append(run)
    if not reasons:
        return "sound"
    several = len(by_run) > 1
    named = (f"{reason} (run {', '.join(runs)})" if several else reason for reason, runs in reasons.items())
    return "do not trust: " + "; ".join(named)


def notes(by_run: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The notes to print after the verdict, without duplicates."""
    return list(dict.fromkeys(note for verdict in by_run.values() for note in verdict.get("notes", [])))
