"""Digests of the files that scenarios name. The metadata of results has them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from narrows.scenario.model import Scenario


def digests(scenarios: Iterable[Scenario], folder: Path) -> dict[str, str]:
    """SHA-256 of each file that the scenarios name: traces, matrices, and files of parameters and programs.

    The keys of the result are the paths as written in the scenarios.
    """
    files: set[str] = set().union(*(scenario.checked.inputs() for scenario in scenarios))
    return {file: _digest(folder / file) for file in sorted(files)}


def _digest(path: Path) -> str:
    """SHA-256 of a file, or of the names and contents of all files in a folder."""
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if file.is_file():
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(path)}\0{content}\0".encode())
    return digest.hexdigest()
