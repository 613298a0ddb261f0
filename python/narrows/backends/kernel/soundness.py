"""Whether a run on real stacks measured what it says: bounds, and the verdict. Pure.

A kernel run shares a machine with whatever else runs there. A run that was disturbed is not thrown away but
marked "do not trust", with every reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

LATENESS_NANOS = 1_000_000
"""99 of 100 packets leave the relay within this of their time: 5 % of an RTT of 20 ms."""
BUSY = 0.9
"""Share of a second that all processors together may be busy; beyond it queues form in front of them."""
LIMITED = 0.05
"""Share of its time that a bulk flow may be limited by its receiver's window or its own buffer."""


def bounds(virtual: bool = False) -> dict[str, float]:
    """For `_native.emulate`, which measures.

    Args:
        virtual: time is a guest's own. Nothing but the run takes it then, so that a second without idle time
            is one in which the processor was the bottleneck.
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
        complaints: of what else worked during the run.
        drops: packets dropped by devices, where only queues may drop, by name.
        notes: what differs from the scenario without making the run less sound.

    Returns:
        What was measured, with `sound` and `reasons` for all of it.
    """
    reasons = [*measured.get("reasons", []), *complaints]
    reasons += [
        f"{count} packets dropped by device {name}, no queue" for name, count in drops.items() if count
    ]
    told = [*measured.get("notes", []), *notes]
    return {**measured, "sound": not reasons, "reasons": reasons, "notes": told}


def line(by_run: Mapping[str, Mapping[str, Any]]) -> str:
    """What is printed: ``sound``, or ``do not trust: <reasons>`` with the runs that they come from."""
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
    """What is printed beside the verdict, each note once."""
    return list(dict.fromkeys(note for verdict in by_run.values() for note in verdict.get("notes", [])))
