"""Parses options with units."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from narrows import executors, extras, units
from narrows.errors import Expected, NarrowsError, OutputError, found
from narrows.executors import Executor
from narrows.executors.local import Threads
from narrows.results.datasets.urls import require_folder
from narrows.results.tables import FORMATS, Format
from narrows.scenario.limits import MAX_SEED
from narrows.scenario.load import parse_override

if TYPE_CHECKING:
    from narrows.cache import Cached

T = TypeVar("T")


def parsed(option: str, text: str, parse: Callable[[object], T]) -> T:
    """The value of an option.

    Args:
        option: the option, e.g. ``--rate``.
        text: the option's argument.
        parse: a function of `narrows.units`, or another function that parses a text.

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
        NarrowsError: if the seed would not be valid in a scenario.
    """
    if not 0 <= seed <= MAX_SEED:
        raise NarrowsError(f"--seed: found {found(seed)}, expected a whole number from 0 to {MAX_SEED}")
    return seed


def overrides(texts: list[str], seed: int | None = None) -> dict[str, Any]:
    """The values of `--set` and `--seed`, by the scenario's key.

    Raises:
        NarrowsError: if an override or the seed is not valid.
    """
    values = dict(parse_override(text) for text in texts)
    return values if seed is None else values | {"seed": checked_seed(seed)}


def executor(name: str, jobs: int | None, on: str = "sim") -> Executor | None:
    """The value of `--executor`; None for threads.

    Raises:
        NarrowsError: if there is no such executor, or if the runs are not simulated.
    """
    if name == Threads.name:
        return None
    if on != "sim":
        raise NarrowsError(
            f"--executor: found {name} with --on {on}, expected local, because real stacks share one machine"
        )
    return executors.named(name, jobs)


def simulator(cache: Path | None, *, no_cache: bool, on: str = "sim") -> Cached | None:
    """The simulator with the cache of `--cache` or `NARROWS_CACHE`; None without a cache.

    Raises:
        NarrowsError: if the folder cannot be used, or if `--cache` is given for runs that are not simulated.
    """
    if cache is not None and no_cache:
        raise NarrowsError("--cache: found also --no-cache, expected one of them")
    if cache is not None and on != "sim":
        raise NarrowsError(
            f"--cache: found --on {on}, expected --on sim, because runs on real stacks differ each time"
        )
    folder = cache if cache is not None else cache_folder()
    if folder is not None and not no_cache:
        require_folder(folder, "NARROWS_CACHE" if cache is None else "--cache")
    if folder is None or no_cache or on != "sim":
        return None
    try:
        from narrows.cache import cached  # noqa: PLC0415 (needs the native module)
    except ImportError as error:
        raise extras.no_native_module(error) from None
    try:
        return cached(folder)
    except OutputError as error:
        raise NarrowsError(f"{'NARROWS_CACHE' if cache is None else '--cache'}: {error}") from None


def say_cached(simulator: Cached | None) -> None:
    """Print how many runs came from the cache, and why new runs could not be added to it."""
    if simulator is not None and simulator.found:
        print(f"{simulator.found} run{'s' * (simulator.found != 1)} from the cache")
    if simulator is not None and simulator.problem is not None:
        print(f"note: runs were not added to the cache: {simulator.problem}")


def cache_folder() -> Path | None:
    """The value of `NARROWS_CACHE`; None if it is not set."""
    named = os.environ.get("NARROWS_CACHE", "")
    return Path(named) if named else None


def formats(text: str | None) -> tuple[Format, ...] | None:
    """The value of `--formats`.

    Raises:
        NarrowsError: if it is not valid. The formats must include Parquet, because Narrows reads only
        Parquet.
    """
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not set(names) <= set(FORMATS) or "parquet" not in names:
        raise NarrowsError(f"--formats: found {found(text)}, expected parquet, or parquet,csv")
    return tuple(name for name in FORMATS if name in names)


def shard(text: str | None) -> tuple[int, int] | None:
    """The value of `--shard`.

    Raises:
        NarrowsError: if it is not valid.
    """
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise NarrowsError(f"--shard: found {found(text)}, expected a part of all parts, such as 2/8")
    return int(match[1]), int(match[2])


def positive(text: object) -> int:
    """A parser for `parsed`: a time above zero, in ns."""
    nanos = units.parse_duration(text)
    if nanos == 0:
        raise Expected("more than zero")
    return nanos


def some_rate(text: object) -> int:
    """A parser for `parsed`: a rate above zero, in bit/s."""
    rate = units.parse_rate(text)
    if rate == 0:
        raise Expected("more than zero")
    return rate
