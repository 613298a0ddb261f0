"""A folder of figures with two indexes.

`figures.csv` lists the files, so that a command can remove its earlier figures. `figures.html` shows the
figures, each with one sentence.
"""

from __future__ import annotations

import contextlib
import csv
import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from narrows.report import export
from narrows.report.figure import Figure

INDEX = "figures.csv"
"""File with a row for each file of a figure."""
PAGE = "figures.html"
"""Page with the figures of the index."""


class Entry(NamedTuple):
    """A row of the index."""

    file: str
    title: str
    point: str
    """Point of the sweep, or experiment of the study. Empty if the figure shows all points."""
    command: str
    """The command that wrote the file."""
    summary: str
    """One sentence about the figure."""


def replace(
    figures: Sequence[tuple[Figure, str]],
    folder: Path,
    command: str,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Write figures and their indexes, and remove the figures that this command wrote earlier.

    Files that the old index does not list are kept. If there are no figures, the indexes and the folder are
    not created.

    Args:
        figures: each figure with its point of the sweep or its experiment.
        folder: the folder, which is created if it does not exist.
        command: name of the command, e.g. ``report``.
        say: called with a line about each figure.
    """
    new = [
        Entry(f"{figure.id}.{suffix}", figure.title, point, command, figure.summary)
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
    """The entries of a folder's index. Rows that do not name a figure's file in the folder are left out."""
    try:
        with (folder / INDEX).open(encoding="utf-8", newline="") as file:
            rows = [tuple(row.get(name) or "" for name in Entry._fields) for row in csv.DictReader(file)]
    except (OSError, ValueError, csv.Error):
        return []
    return [entry for entry in map(Entry._make, rows) if _is_name(entry.file)]


def _stem(file: str) -> str:
    """The figure's id, which may contain dots."""
    return next(file.removesuffix(f".{suffix}") for suffix in export.SUFFIXES if file.endswith(f".{suffix}"))


def _is_name(file: str) -> bool:
    return Path(file).name == file and file.endswith(tuple(f".{suffix}" for suffix in export.SUFFIXES))


def _write(folder: Path, entries: Sequence[Entry]) -> None:
    if not entries:
        for name in (INDEX, PAGE):
            (folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder does not exist, or has other files
            folder.rmdir()
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / INDEX).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Entry._fields)
        writer.writerows(entries)
    (folder / PAGE).write_text(_page(entries), encoding="utf-8")


_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Figures</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
img { background: white; max-width: 100% }
</style>
<h1>Figures</h1>
"""


def _page(entries: Sequence[Entry]) -> str:
    """The page: each figure with title, sentence and links to its files, in the order of the index."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_stem(entry.file), []).append(entry)
    parts = [_HEAD]
    for name, group in groups.items():
        first, title = group[0], html.escape(group[0].title)
        parts.append(f'<h2 id="{html.escape(name)}">{title}</h2>\n')
        about = " ".join(filter(None, [first.point and f"{first.point}.", first.summary]))
        parts.append(f"<p>{html.escape(about)}</p>\n")
        links = {entry.file: html.escape(quote(entry.file)) for entry in group}
        parts += [
            f'<p><img src="{link}" alt="{title}" loading="lazy"></p>\n'
            for file, link in links.items()
            if file.endswith(".svg")
        ]
        files = ", ".join(f'<a href="{link}">{html.escape(file)}</a>' for file, link in links.items())
        parts.append(f"<p>{files}</p>\n")
    return "".join(parts)
