"""Measures of the states of a rate controller over time, from the events of its port."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from narrows.results.measures.registry import measure
from narrows.results.runs import Run

PREFIX = "state-"
"""Prefix of the kinds of events that are changes of state."""


@dataclass(frozen=True)
class Visit:
    """A period during which the port was in one state. The period is empty for a state that takes no time."""

    state: str
    """The event's kind without `state-`."""
    begin_s: float
    end_s: float


def visits(run: Run, link: str) -> list[Visit]:
    """The states of the link's port in order. The last visit ends with the run."""
    events = run.tables.get("events", {})
    if not events:
        return []
    rows = zip(run.column("events", "t_s"), events["kind"], events["entity"], strict=True)
    changes = [(float(t), str(kind)) for t, kind, entity in rows if entity == link]
    changes = [(t, kind.removeprefix(PREFIX)) for t, kind in changes if kind.startswith(PREFIX)]
    if not changes:
        return []
    last = float(run.column("link_samples", "t_s").max(initial=changes[-1][0]))
    ends = [*(t for t, _ in changes[1:]), last]
    return [Visit(state, t, end) for (t, state), end in zip(changes, ends, strict=True)]


def time_in(visits: Iterable[Visit], state: str, begin_s: float, end_s: float) -> float:
    """Total duration of the visits to a state between two times, in seconds."""
    return sum(max(0.0, min(v.end_s, end_s) - max(v.begin_s, begin_s)) for v in visits if v.state == state)


@measure("Time in a state", "%", "BRF-30")
def time_in_state(run: Run, link: str, state: str, after_s: float = 0.0) -> float:
    """Share of the time after `after_s` during which the link's port is in this state."""
    found = visits(run, link)
    if not found or found[-1].end_s <= after_s:
        return math.nan
    end_s = found[-1].end_s
    return 100.0 * time_in(found, state, after_s, end_s) / (end_s - after_s)


@measure("Length of a state", "s", "BRF-30")
def length_of_state(run: Run, link: str, state: str, after_s: float = 0.0) -> float:
    """Mean length of the periods after `after_s` in which the link's port is in this state.

    If a new flow gets its first rate during a period, the period continues, although the port is in another
    state for that instant.
    """
    spans: list[list[float]] = []
    for visit in visits(run, link):
        if visit.state == state and visit.begin_s >= after_s:
            if spans and spans[-1][1] == visit.begin_s:
                spans[-1][1] = visit.end_s
            else:
                spans.append([visit.begin_s, visit.end_s])
    return float(np.mean([end - begin for begin, end in spans])) if spans else math.nan
