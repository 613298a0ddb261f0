"""Parses and prints values with units, by the rules of scenarios (``crates/narrows-scenario/src/units.rs``).

Times become integer nanoseconds, rates integer bit/s, sizes integer bytes, probabilities floats. A parser
takes a text, or a number where no unit is needed, and raises `narrows.errors.Expected` for any other value.
"""

from __future__ import annotations

from narrows._native import (
    format_duration,
    format_rate,
    format_size,
    parse_duration,
    parse_finite_limit,
    parse_limit,
    parse_loss,
    parse_probability,
    parse_rate,
    parse_share,
    parse_size,
)

__all__ = [
    "NANOS_PER_SEC",
    "format_duration",
    "format_rate",
    "format_size",
    "parse_duration",
    "parse_finite_limit",
    "parse_limit",
    "parse_loss",
    "parse_probability",
    "parse_rate",
    "parse_share",
    "parse_size",
    "spelled_rate",
]

NANOS_PER_SEC = 1_000_000_000


def spelled_rate(rate: int) -> str:
    """A rate in bit/s for people to read, e.g. `100 Mbit/s`."""
    for factor, unit in ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s")):
        if rate >= factor:
            return f"{rate / factor:.4g} {unit}"
    return f"{rate} bit/s"
