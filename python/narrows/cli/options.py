"""Options with units, checked before anything else is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from narrows import units
from narrows.errors import Expected, NarrowsError, found

T = TypeVar("T")


def parsed(option: str, text: str, parse: Callable[[object], T]) -> T:
    """What an option's text stands for.

    Args:
        option: as it is written, e.g. ``--rate``.
        text: what was given.
        parse: of `narrows.units`.

    Raises:
        NarrowsError: for a text of another form.
    """
    try:
        return parse(text)
    except Expected as expected:
        raise NarrowsError(f"{option}: found {found(text)}, expected {expected}") from None


def positive(text: object) -> int:
    """A time above zero, in ns; for `parsed`."""
    nanos = units.parse_duration(text)
    if nanos == 0:
        raise Expected("more than zero")
    return nanos


def some_rate(text: object) -> int:
    """A rate above zero, in bit/s; for `parsed`."""
    rate = units.parse_rate(text)
    if rate == 0:
        raise Expected("more than zero")
    return rate
