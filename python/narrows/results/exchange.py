"""How a folder's results give way to new ones: all at once, when the new ones are complete.

OUT/.narrows-part   output of a run in progress
OUT/.narrows-old    the earlier results while they are replaced; they are restored if the run is killed then
OUT/.narrows-new    the new ones while they move in; the next run finishes that if this one is killed
OUT/interrupted     the finished runs of a sweep that broke off, where earlier results were there to be kept

This happens inside the folder and not next to it, so that the folder may be a mount point or the current
one, and that files which others put there stay. Its metadata.json goes first and comes last: in between,
readers find no results rather than a mixture.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

from narrows.results import tables
from narrows.results.results import INTERRUPTED, LOGS, METADATA, REPORT, SIMULATED, SOUNDNESS, finished
from narrows.signals import undisturbed

PART, _OLD, _NEW = ".narrows-part", ".narrows-old", ".narrows-new"
ASIDE = (PART, _OLD, _NEW)
"""Folders that are there during a run only."""


def settle(folder: Path, *, keep_part: bool = False) -> None:
    """Put in order what a run left that was killed; `keep_part`: but for what it was writing."""
    old = folder / _OLD
    if (folder / _NEW).exists():
        _move_in(folder)
    elif old.exists() and not (folder / METADATA).exists():
        _move(old, folder)
    for name in ASIDE:
        if name != PART or not keep_part:
            shutil.rmtree(folder / name, ignore_errors=True)


def unfinished(folder: Path, metadata: dict[str, Any]) -> Path | None:
    """Where a sweep of these very runs left the most of them, interrupted or killed; None: nowhere."""
    wanted = json.loads(json.dumps(metadata))
    found: dict[Path, int] = {}
    for place in (folder, folder / INTERRUPTED, folder / PART):
        with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
            known = json.loads((place / METADATA).read_text(encoding="utf-8"))
            known.pop(SOUNDNESS, None)
            if known == wanted:
                found[place] = len(finished(place, "runs.parquet"))
    return max((place for place in found if found[place]), key=found.__getitem__, default=None)


def exchange(folder: Path) -> None:
    """Replace the folder's results by the content of PART."""
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
    """Keep the content of PART next to the folder's results, which stay; returns its place."""
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
        # The simulation that belongs to a run in real time; elsewhere a folder of that name is the user's.
        if json.loads((folder / METADATA).read_text(encoding="utf-8")).get("backend") in ("kernel", "vm"):
            names.append(SIMULATED)
    return names
