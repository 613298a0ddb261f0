"""The work of `narrows cache`."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from pathlib import Path

from narrows import units
from narrows.cache.entries import Cache, Entry, is_cache
from narrows.cli.options import cache_folder, parsed
from narrows.errors import Expected, NarrowsError

_DAY_SECONDS = 86_400.0


def show(folder: Path | None) -> None:
    """Print what is in a cache."""
    cache = _existing(folder)
    entries = list(cache.entries())
    print(f"{cache.folder}: {_amount(entries)}")
    if entries:
        first, last = (_day(pick(entry.used_s for entry in entries)) for pick in (min, max))
        print(f"last uses from {first} to {last}")


def prune(folder: Path | None, most: str | None, unused: str | None, *, everything: bool) -> None:
    """Remove runs from a cache, and print how many."""
    if everything and (most is not None or unused is not None):
        raise NarrowsError("--all: found also --most or --unused, expected --all alone")
    if not everything and most is None and unused is None:
        raise NarrowsError("found no option, expected --most, --unused or --all")
    most_bytes = None if most is None else parsed("--most", most, units.parse_size)
    days = None if unused is None else parsed("--unused", unused, _days)
    unused_s = -math.inf if everything else None if days is None else days * _DAY_SECONDS
    cache = _existing(folder)
    removed = cache.prune(most_bytes, unused_s)
    print(f"{cache.folder}: removed {_amount(removed)}, kept {_amount(list(cache.entries()))}")


def _existing(folder: Path | None) -> Cache:
    folder = folder if folder is not None else cache_folder()
    if folder is None:
        raise NarrowsError("--cache: found no folder, and NARROWS_CACHE is not set")
    if not is_cache(folder):
        raise NarrowsError(f"--cache: found {str(folder)!r}, expected a folder that --cache made")
    return Cache(folder)


def _days(value: object) -> float:
    try:
        days = float(str(value))
    except ValueError:
        days = -1.0
    if not 0 <= days < float("inf"):
        raise Expected("a number of days, at least 0")
    return days


def _amount(entries: Sequence[Entry]) -> str:
    size = sum(entry.size_bytes for entry in entries)
    return f"{len(entries)} run{'s' * (len(entries) != 1)}, {_size(size)}"


def _size(size_bytes: int) -> str:
    """A size with four digits, e.g. 39.12 kB."""
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.4g} {unit}"
    return f"{size_bytes} B"


def _day(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
