"""Reduces series to a size for a page, without losing peaks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrows import metrics

POINTS = 400
"""Largest number of buckets of a series. Each bucket keeps its smallest and its largest value."""


def thin(
    t: ArrayLike, y: ArrayLike, buckets: int = POINTS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A series of at most two points per bucket: its minimum and its maximum, in order of time.

    Averages, or every n-th point, would lose peaks. Short series are returned unchanged.
    """
    times, values = np.asarray(t, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = ~np.isnan(values)
    times, values = times[known], values[known]
    if times.size <= 2 * buckets:
        return times, values
    keep: list[int] = []
    for part in np.array_split(np.arange(times.size), buckets):
        low, high = part[np.argmin(values[part])], part[np.argmax(values[part])]
        keep.extend(sorted({int(low), int(high)}))
    return times[keep], values[keep]


def binned(t: ArrayLike, y: ArrayLike, width: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means over wider bins, each at the middle of its bin."""
    starts, means = metrics.rebin(t, y, width)
    return starts + width / 2, means


def short(value: float, digits: int = 4) -> float | None:
    """The value with `digits` significant digits; None (JSON null) if it is not finite."""
    if not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def rows(**columns: Any) -> list[dict[str, Any]]:
    """Rows for a chart. Scalars are repeated and numbers are rounded."""
    length = max(
        len(column) for column in columns.values() if not isinstance(column, str | int | float | bool)
    )
    full = {
        name: [column] * length if isinstance(column, str | int | float | bool) else list(column)
        for name, column in columns.items()
    }
    return [{name: _plain(column[i]) for name, column in full.items()} for i in range(length)]


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool) or value is None:
        return value
    return short(float(value), 5)
