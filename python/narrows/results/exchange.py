"""How a folder's results give way to new ones: all at once, when the new ones are complete.

OUT/.narrows-part   what a run under way writes
OUT/.narrows-old    the earlier results while they make room; they come back if the run is killed then
OUT/.narrows-new    the new ones while they move in; the next run finishes that if this one is killed
OUT/interrupted     the finished runs of a sweep that broke off, where earlier results were there to be kept

This happens inside of the folder and not beside it, so that the folder may be a mount point or the current
one, and that files which others put there stay. Its metadata.json goes first and comes last: in between,
readers find no results rather than a mixture.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

from narrows.results import tables
from narrows.results.results import INTERRUPTED, LOGS, METADATA, REPORT, SIMULATED
from narrows.signals import undisturbed

PART, _OLD, _NEW = ".narrows-part", ".narrows-old", ".narrows-new"
ASIDE = (PART, _OLD, _NEW)
"""Folders that are there during a run only."""


def settle(folder: Path) -> None:
    """Put in order what a run left that was killed."""
    old = folder / _OLD
    if (folder / _NEW).exists():
        _move_in(folder)
    elif old.exists() and not (folder / METADATA).exists():
        _move(old, folder)
    for name in ASIDE:
        shutil.rmtree(folder / name, ignore_errors=True)


def exchange(folder: Path) -> None:
    """What is in PART takes the place of the folder's results."""
    with undisturbed():
        old = folder / _OLD
        old.mkdir()
        for name in _ours(folder):
            with contextlib.suppress(FileNotFoundError):
                (folder / name).rename(old / name)
        (folder / PART).rename(folder / _NEW)
        _move_in(folder)
        shutil.rmtree(old, ignore_errors=True)


def put_aside(folder: Path) -> Path:
    """What is in PART is readable beside the folder's results, which stay; where."""
    place = folder / INTERRUPTED
    with undisturbed():
        shutil.rmtree(place, ignore_errors=True)
        (folder / PART).rename(place)
    return place


def _move_in(folder: Path) -> None:
    _move(folder / _NEW, folder)
    (folder / _NEW).rmdir()


def _move(source: Path, target: Path) -> None:
    for entry in sorted(source.iterdir(), key=lambda entry: entry.name == METADATA):
        entry.rename(target / entry.name)


def _ours(folder: Path) -> list[str]:
    """Names of what belongs to a folder's results, metadata first: tables, and what was made of them."""
    names = [METADATA, "runs", LOGS, INTERRUPTED, REPORT, "timing.csv"]
    names += [f"{name}.{suffix}" for name in ("runs", *tables.SCHEMAS) for suffix in tables.FORMATS]
    with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
        # The simulation beside a run in real time; elsewhere a folder of that name is somebody's own.
        if json.loads((folder / METADATA).read_text(encoding="utf-8")).get("backend") in ("kernel", "vm"):
            names.append(SIMULATED)
    return names
