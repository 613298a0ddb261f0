"""Formats figures of results for the terminal."""

from __future__ import annotations

import math

from narrows.results.figures import HEADINGS


def heading(name: str, between: str = " ") -> str:
    """Title and unit of a figure. Counts have no unit."""
    of = HEADINGS[name]
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
