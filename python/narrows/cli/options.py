"""Parses options with units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from narrows import units
from narrows.errors import Expected, NarrowsError, found
from narrows.scenario.limits import MAX_SEED
from narrows.scenario.load import parse_override

T = TypeVar("T")


def parsed(option: str, text: str, parse: Callable[[object], T]) -> T:
    """The value of an option.

    Args:
        option: the option, e.g. ``--rate``.
        text: its argument.
        parse: a function of `narrows.units`, or one like it.

    Raises:
        NarrowsError: if the text is not valid.
    """
    try:
        return parse(text)
    except Expected as expected:
        raise NarrowsError(f"{option}: found {found(text)}, expected {expected}") from None


def checked_seed(seed: int) -> int:
    """A seed from the command line.

    Raises:
        NarrowsError: if it is not valid in a scenario.
    """
    if not 0 <= seed <= MAX_SEED:
        raise NarrowsError(f"--seed: found {found(seed)}, expected a whole number from 0 to {MAX_SEED}")
    return seed


def overrides(texts: list[str], seed: int | None = None) -> dict[str, Any]:
    """The values of `--set` and `--seed`, by key of the scenario.

    Raises:
        NarrowsError: if one of them is not valid.
    """
    values = dict(parse_override(text) for text in texts)
    return values if seed is None else values | {"seed": checked_seed(seed)}


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
