"""Intervals as whiskers: how far axes go for them, where they end, and where a value's label stands.

A 95 % interval is symmetrical and knows nothing of the range of its measure, and that of two seeds is
thirteen times as wide as they are apart from their mean. So axes follow the values.
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
from narrows.studies.measures import find_measure

_PARTS = ("share", "jain", "jain_min", "jain_max_min", "utilisation", "drop_rate", "retransmission_rate")
"""Measures that are a part of a whole."""
CUT_WHISKERS = " Whiskers end with the axis, and may go on beyond it."


def possible(measure: str, *, harm: bool = False) -> tuple[float, float]:
    """The range of a measure, or of the harm to it: at most all is lost, and any gain is possible."""
    if harm:
        return -math.inf, 1.0
    if measure not in _PARTS:
        return 0.0, math.inf
    return 0.0, 100.0 if find_measure(measure).unit == "%" else 1.0


def within(interval: metrics.Interval, limits: tuple[float, float]) -> tuple[float, float]:
    """The ends of an interval that are possible; of one seed there is only its value."""
    if interval.n < 2:
        return interval.mean, interval.mean
    least, most = limits
    return max(least, interval.low), min(most, interval.high)


def reach(value: float, high: float, seeds: int) -> float:
    """What an axis must hold of a value: its interval only where there are seeds enough for one."""
    return max(value, high) if seeds >= LEAST_FOR_A_BAND else value


@dataclass(frozen=True)
class Frame:
    """An axis with the ends of whiskers at it."""

    low: float
    high: float
    room: float
    """The part of the axis that a label takes."""
    log: bool = False

    def end(self, rows: Sequence[dict[str, Any]]) -> bool:
        """Give rows with `y`, `lo` and `hi` a whisker and a label's place: `v`, `from`, `upto` and `at`.

        The label stands at the whisker's end where that is near, else at the value, whose label it is.

        Returns:
            Whether a whisker goes on beyond the axis.
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
    """Whether the interval leaves the axis, by more than rounding."""
    slack = 1e-6 * (high - low)
    return bool(row["hi"] > high + slack or row["lo"] < low - slack)


def legible(base: alt.Chart, **mark: Any) -> list[alt.Chart]:
    """Text that can be read over a whisker: a ground of the page's colour behind it."""
    ground = base.mark_text(color=PAPER, stroke=PAPER, strokeWidth=5, strokeJoin="round", **mark)
    return [ground, base.mark_text(color=INK, **mark)]
