"""Computes how whiskers are drawn: the range of the axis, the ends of whiskers, and the positions of labels.

A 95 % interval is symmetrical and may exceed the range of its measure. With two seeds, its half width is 12.7
times the distance of the two values from their mean. Axes therefore fit the values, not the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from narrows import metrics
from narrows.report.encode import LEAST_FOR_A_BAND
from narrows.report.style import INK, PAPER
from narrows.results.measures import find_measure

_PARTS = ("share", "jain", "jain_min", "jain_max_min", "utilisation", "drop_rate", "retransmission_rate")
"""Measures from 0 to 1."""
CUT_WHISKERS = " Whiskers that reach the end of the axis may be longer."


def possible(measure: str, *, harm: bool = False) -> tuple[float, float]:
    """The smallest and the largest possible value of a measure.

    If `harm` is set, the result is the range of the harm, which is at most 1 and has no lower bound.
    """
    if harm:
        return -math.inf, 1.0
    if measure not in _PARTS:
        return 0.0, math.inf
    return 0.0, 100.0 if find_measure(measure).unit == "%" else 1.0


def within(interval: metrics.Interval, limits: tuple[float, float]) -> tuple[float, float]:
    """The interval, clipped to the range of its measure. With one seed, both ends are the value."""
    if interval.n < 2:
        return interval.mean, interval.mean
    least, most = limits
    return max(least, interval.low), min(most, interval.high)


def reach(value: float, high: float, seeds: int) -> float:
    """The largest number that an axis must show.

    If there are enough seeds, this is the upper end of the interval, otherwise the value.
    """
    return max(value, high) if seeds >= LEAST_FOR_A_BAND else value


@dataclass(frozen=True)
class Frame:
    """An axis that clips whiskers."""

    low: float
    high: float
    room: float
    """Width of a label, as a part of the axis."""
    log: bool = False

    def end(self, rows: Sequence[dict[str, Any]]) -> bool:
        """Add whisker and label position (`v`, `from`, `upto`, `at`) to rows with `y`, `lo` and `hi`.

        The label is at the whisker's end if the end is near the value, otherwise at the value.

        Returns:
            Whether a whisker is clipped by the axis.
        """
        for row in rows:
            row["v"] = min(max(row["y"], self.low), self.high)
            row["from"], row["upto"] = max(row["lo"], self.low), min(row["hi"], self.high)
            near = self._part(row["v"], row["upto"]) <= self.room
            row["at"] = max(row["upto"], row["v"]) if near else row["v"]
        return any(beyond(row, self.low, self.high) for row in rows)

    def _part(self, start: float, end: float) -> float:
        if self.log:
            return math.log(max(end, self.low) / start) / math.log(self.high / self.low)
        return (end - start) / (self.high - self.low)


def beyond(row: Mapping[str, Any], low: float, high: float) -> bool:
    """Whether the interval exceeds the axis by more than a rounding error."""
    slack = 1e-6 * (high - low)
    return bool(row["hi"] > high + slack or row["lo"] < low - slack)


def legible(base: alt.Chart, **mark: Any) -> list[alt.Chart]:
    """Text with a background in the page's colour, legible over a whisker."""
    ground = base.mark_text(color=PAPER, stroke=PAPER, strokeWidth=5, strokeJoin="round", **mark)
    return [ground, base.mark_text(color=INK, **mark)]
