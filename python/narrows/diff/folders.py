"""Reads a side of a comparison: a folder of results, or a folder that contains several folders of results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from narrows.results.results import METADATA, Results


@dataclass(frozen=True)
class Side:
    """The results of one or more scenarios."""

    label: str
    results: Mapping[str, Results]
    """The results by name of the scenario, or by name of their folder inside the given folder. The name is
    empty if the given folder itself has the results."""


def read_side(folder: Path, label: str = "") -> Side:
    """Read a folder of results, or each folder of results in it.

    Raises:
        OutputError: if there are no results.
    """
    label = label or str(folder)
    inside = [] if (folder / METADATA).exists() or not folder.is_dir() else _inside(folder)
    if inside:
        return Side(label, {path.name: Results.read(path) for path in inside})
    return Side(label, {"": Results.read(folder)})


def _inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if (path / METADATA).is_file())
