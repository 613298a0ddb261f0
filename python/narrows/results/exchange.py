"""Replaces the results in a folder in one step, after the new results are complete.

- OUT/.narrows-part: results of the current run.
- OUT/.narrows-old: earlier results during the replacement. If the run is killed before `.narrows-new`
exists, the next run moves them back.
- OUT/.narrows-new: new results during the replacement. If the run is killed after this folder exists, the
next run completes the replacement.
- OUT/interrupted: finished runs of an interrupted sweep. They are stored here only if OUT has earlier
results, which then stay.

The folder OUT itself is never renamed. It may therefore be a mount point or the current folder, and other
files in it stay. metadata.json is removed first and written last. Readers therefore never find a mixture of
old and new results.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

from narrows.results import segments, tables
from narrows.results.results import INTERRUPTED, LOGS, METADATA, REPORT, SIMULATED, SOUNDNESS
from narrows.signals import undisturbed

PART, _OLD, _NEW = ".narrows-part", ".narrows-old", ".narrows-new"
ASIDE = (PART, _OLD, _NEW)
"""Folders that exist only during a run."""


def settle(folder: Path, *, keep_part: bool = False) -> None:
    """Clean up after a killed run. With `keep_part`, keep the results that the killed run had written."""
    old = folder / _OLD
    if (folder / _NEW).exists():
        _move_in(folder)
    elif old.exists() and not (folder / METADATA).exists():
        _move(old, folder)
    for name in ASIDE:
        if name != PART or not keep_part:
            shutil.rmtree(folder / name, ignore_errors=True)


def unfinished(folder: Path, metadata: dict[str, Any]) -> Path | None:
    """The folder of an interrupted or killed sweep of the same runs (None: there is none).

    If there are several such folders, the folder with the most finished runs is returned.
    """
    wanted = json.loads(json.dumps(metadata))
    found: dict[Path, int] = {}
    for place in (folder, folder / INTERRUPTED, folder / PART):
        with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
            known = json.loads((place / METADATA).read_text(encoding="utf-8"))
            known.pop(SOUNDNESS, None)
            if known == wanted:
                found[place] = segments.count(place)
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
    """Move the content of PART to INTERRUPTED, and return that folder. The earlier results stay."""
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
    """Names of the files and folders that belong to results, the metadata first."""
    names = [METADATA, segments.RUNS, LOGS, INTERRUPTED, REPORT, "timing.csv"]
    names += [f"{name}.{suffix}" for name in ("runs", *tables.SCHEMAS) for suffix in tables.FORMATS]
    with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
        # Only results from real stacks have a folder with their simulation. In other results, a folder with
        # this name belongs to the user.
        if json.loads((folder / METADATA).read_text(encoding="utf-8")).get("backend") in ("kernel", "vm"):
            names.append(SIMULATED)
    return names
