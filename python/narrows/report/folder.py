"""A folder of figures with an index, so that a command can remove its earlier figures."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from narrows.report import export
from narrows.report.figure import Figure

INDEX = "figures.csv"
"""File with a row for each file of a figure."""


class Entry(NamedTuple):
    """A row of the index."""

    file: str
    title: str
    point: str
    """Point of the sweep, or nothing if the figure shows all points."""
    command: str
    """The command that wrote the file."""


def replace(
    figures: Sequence[tuple[Figure, str]],
    folder: Path,
    command: str,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Write figures and their index, and remove the figures that this command wrote earlier.

    Only files in the index are removed. If there are no figures, the index and the folder are not created.

    Args:
        figures: each figure with its point of the sweep.
        folder: the folder, which is created if it does not exist.
        command: name of the command, e.g. ``report``.
        say: called with a line about each figure.
    """
    new = [
        Entry(f"{figure.id}.{suffix}", figure.title, point, command)
        for figure, point in figures
        for suffix in export.SUFFIXES
    ]
    written = {entry.file for entry in new}
    earlier = read(folder)
    for entry in earlier:
        if entry.command == command:
            (folder / entry.file).unlink(missing_ok=True)
    others = [entry for entry in earlier if entry.command != command and entry.file not in written]
    _write(folder, new + others)
    for figure, _ in figures:
        say(f"figure {figure.id}")
        export.write(figure, folder)


def read(folder: Path) -> list[Entry]:
    """The entries of a folder's index. Rows that name no file of a figure in the folder are left out."""
    try:
        with (folder / INDEX).open(encoding="utf-8", newline="") as file:
            rows = [tuple(row.get(name) or "" for name in Entry._fields) for row in csv.DictReader(file)]
    except (OSError, ValueError, csv.Error):
        return []
    return [entry for entry in map(Entry._make, rows) if _is_name(entry.file)]


def _is_name(file: str) -> bool:
    return Path(file).name == file and file.endswith(tuple(f".{suffix}" for suffix in export.SUFFIXES))


def _write(folder: Path, entries: Sequence[Entry]) -> None:
    if not entries:
        (folder / INDEX).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it does not exist, or has other files
            folder.rmdir()
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / INDEX).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Entry._fields)
        writer.writerows(entries)
