"""The work of `narrows merge`."""

from __future__ import annotations

from pathlib import Path

from narrows.cli import options
from narrows.results import merge as merging
from narrows.results.datasets.urls import require_folder


def merge(parts: list[Path], out: Path, formats: str | None) -> None:
    """Merge parts of a sweep, and print where the results are."""
    for part in parts:
        require_folder(part, "PART", "a dataset is never a part of a sweep")
    require_folder(out, "--out")
    results = merging.merge(parts, out, options.formats(formats))
    count = results.runs.num_rows
    print(f"{count} run{'s' * (count != 1)} in {out}")
