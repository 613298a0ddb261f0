"""Options with units, checked before anything else is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from narrows import units
from narrows.errors import Expected, NarrowsError, found
from narrows.scenario.limits import MAX_SEED

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


def checked_seed(seed: int) -> int:
    """A seed from the command line.

    Raises:
        NarrowsError: where a scenario would refuse it.
    """
    if not 0 <= seed <= MAX_SEED:
        raise NarrowsError(f"--seed: found {found(seed)}, expected a whole number from 0 to {MAX_SEED}")
    return seed


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
