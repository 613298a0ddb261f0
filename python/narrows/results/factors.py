"""Converts the values of a sweep's factors to the form that claims, figures and tables compare."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from narrows import units
from narrows.errors import Expected

Factor = str | float | int | bool
"""A value of a factor: a name, or a number in SI base units."""
Where = dict[str, Factor | list[Factor]]
"""A selection of runs: for some factors, a value or a list of values. Other factors may have any value."""


def factor(value: Any) -> Factor:
    """The value of a factor in the form that claims and figures use.

    Numbers are in SI base units (packets for queues). The value of a file is the stem of its name.
    """
    if isinstance(value, dict):
        return Path(str(value["file"])).stem if "file" in value else json.dumps(value, sort_keys=True)
    if not isinstance(value, str):
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    if value.startswith("{"):
        try:
            return factor(json.loads(value))
        except ValueError:
            return value
    if re.fullmatch(r"\d+p", value):
        return float(value[:-1])
    for parse, scale in (
        (units.parse_probability, 1.0),
        (units.parse_duration, 1e-9),
        (units.parse_rate, 1.0),
    ):
        try:
            return float(parse(value)) * scale
        except Expected:
            continue
    return value


def in_words(value: Any) -> str:
    """A value of a factor in words. Only floats are limited to six significant digits."""
    return f"{value:,g}" if isinstance(value, float) else str(value)


def point_in_words(factors: Mapping[str, Any]) -> str:
    """A point of a sweep in words, e.g. ``buffer 100, loss 0.01``."""
    return ", ".join(f"{name} {in_words(value)}" for name, value in factors.items())


def same(a: Factor, b: Factor) -> bool:
    """Whether two values of a factor are equal. Numbers are compared up to rounding."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9)
    return a == b
