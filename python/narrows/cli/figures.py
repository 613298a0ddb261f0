"""Formats figures of results for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from narrows.results.figures import HEADINGS, Heading

_MICRO = 1e-6
_SHORT_S, _LONG_S = 0.1e-3, 2e-3
"""A column of times is in microseconds if its shortest time is below `_SHORT_S` and its longest time is
below `_LONG_S`."""


def fitting(name: str, values: Iterable[float]) -> Heading:
    """The heading of a column with these values. Short times are in microseconds."""
    of = HEADINGS[name]
    times = [value for value in values if value > 0]
    if of.unit == "ms" and times and min(times) < _SHORT_S and max(times) < _LONG_S:
        return replace(of, unit="\N{MICRO SIGN}s", size=_MICRO)
    return of


def heading(of: Heading, between: str = " ") -> str:
    """Title and unit of a figure. Counts have no unit."""
    return of.short if of.size == 1 else f"{of.short}{between}{of.unit}"


def digits(value: float, scale: float) -> int:
    """The number of decimals with which a scaled figure is printed."""
    if abs(value) >= 1000 or (scale == 1 and value == int(value)):
        return 0
    return 1 if abs(value) >= 10 else 2


def number(value: float, scale: float) -> str:
    """A figure of the tables, converted to the unit of its heading."""
    if math.isnan(value):
        return "-"
    return f"{value / scale:.{digits(value / scale, scale)}f}"
