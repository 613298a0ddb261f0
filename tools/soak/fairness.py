"""Compares the goodput of long flows with their fair share. All results are computed from samples."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

WINDOW_S = 5.0
"""Length of the windows over which a flow is judged. Windows with a fault are not judged."""
SETTLED_S = 5.0
"""Shortest time between the end of a fault and the start of a window that is judged."""
RECENT_S = 1.0
"""Length of the windows that show whether a flow has recovered its share."""
HALF = 0.5
STALL_S = 1.0
"""If two successive samples are further apart than this, the machine is too busy to judge the flows."""


@dataclass(frozen=True)
class Sample:
    """The state of the receiver at the time `at_s`."""

    at_s: float
    open: int
    """Number of open connections, of long and short flows."""
    received: dict[int, int]
    """Bytes of each long flow that have arrived."""
    since_s: dict[int, float]
    """Start of the current connection of each long flow."""


@dataclass(frozen=True)
class Disturbance:
    """A fault that may reduce a flow's share.

    It ends when the fault is repaired and the affected program (if any) answers.
    """

    begin_s: float
    end_s: float
    name: str
    orphans: frozenset[int] = frozenset()
    """Flows whose sender's agent ended. Their connections may use CUBIC until they close."""


@dataclass
class Worst:
    """The worst figures of a group of flows."""

    windows: int = 0
    least: float = 1.0
    """Smallest goodput in a window, as a part of the fair share."""
    least_where: str = ""
    longest_s: float = 0.0
    """Longest time during which a flow had less than half of its fair share.

    The time of a fault does not count.
    """
    longest_where: str = ""


@dataclass
class Figures:
    """Figures of all long flows."""

    rated: Worst = field(default_factory=Worst)
    orphans: Worst = field(default_factory=Worst)
    """Connections that are older than their sender's agent."""
    stalls: int = 0
    """Number of times that the receiver was silent for longer than `STALL_S`."""


def fair_bytes(samples: Sequence[Sample], capacity_bps: float) -> list[float]:
    """For each sample, the bytes that a flow with its fair share would have delivered since the first sample.

    All open connections get equal shares. Short connections often use less than their share, so the true fair
    share of a long flow can be larger.
    """
    sums = [0.0]
    for before, now in pairwise(samples):
        seconds = now.at_s - before.at_s
        sums.append(sums[-1] + capacity_bps / 8 * seconds / max(1, before.open, now.open))
    return sums


def judge(
    samples: Sequence[Sample], faults: Sequence[Disturbance], flows: Sequence[int], capacity_bps: float
) -> Figures:
    """Finds the worst window of any flow, and the longest time of a flow below half of its share."""
    figures = Figures()
    times = [sample.at_s for sample in samples]
    fair = fair_bytes(samples, capacity_bps)
    last_stall_s = float("-inf")
    below_since_s: dict[int, float] = {}

    def part(flow: int, begin: int, end: int) -> float:
        received = samples[end].received.get(flow, 0) - samples[begin].received.get(flow, 0)
        return received / (fair[end] - fair[begin])

    for end in range(1, len(samples)):
        now_s = times[end]
        if now_s - times[end - 1] > STALL_S:
            last_stall_s = now_s
            figures.stalls += 1
        begun = [fault for fault in faults if fault.begin_s <= now_s]
        last = max(begun, key=lambda fault: fault.end_s, default=None)
        quiet_s = max(last_stall_s, last.end_s if last else float("-inf"))
        begin = bisect_right(times, now_s - WINDOW_S) - 1
        recent = bisect_right(times, now_s - RECENT_S) - 1
        for flow in flows:
            is_orphan = any(
                flow in fault.orphans and sample.since_s.get(flow, 0.0) <= fault.end_s
                for fault in begun
                for sample in (samples[max(begin, 0)], samples[end])
            )
            worst = figures.orphans if is_orphan else figures.rated
            if begin >= 0 and times[begin] >= quiet_s + SETTLED_S:
                worst.windows += 1
                if (found := part(flow, begin, end)) < worst.least:
                    worst.least, worst.least_where = found, f"flow {flow} at {now_s - times[0]:.0f} s"
            if recent < 0 or now_s <= quiet_s or part(flow, recent, end) >= HALF:
                below_since_s.pop(flow, None)
                continue
            since_s = max(quiet_s, below_since_s.setdefault(flow, times[recent]))
            if now_s - since_s > worst.longest_s:
                worst.longest_s = now_s - since_s
                after = f", {since_s - last.end_s:.1f} s after {last.name}" if last else ""
                worst.longest_where = f"flow {flow} at {now_s - times[0]:.0f} s{after}"
    return figures
