"""Merges the results of shards. A shard is a part of a sweep that ran separately, e.g. on another machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from narrows.errors import OutputError, found
from narrows.results import segments, tables
from narrows.results.results import SOUNDNESS, Results
from narrows.results.store import Folder
from narrows.results.tables import Format

SHARD = "shard"
"""Metadata key of results that are a part of a sweep. The value is the number of the part and the number of
parts, e.g. `2/8`."""


def merge(folders: Sequence[Path], out: Path, formats: tuple[Format, ...] | None = None) -> Results:
    """Merge folders with runs of the same sweep.

    The merged tables are bit-for-bit equal to the tables of an undivided sweep.

    Args:
        folders: folders of results, which may also be interrupted sweeps.
        out: folder for the merged results.
        formats: formats of the tables (None: the default of `narrows.results.store.Folder`).

    Raises:
        OutputError: if the folders belong to different sweeps, share a run or lack a run, or cannot be
        merged.
    """
    parts = [Results.read(folder) for folder in folders]
    metadata = _sweep(parts[0])
    owners: dict[int, Path | None] = {}
    for part in parts:
        if _sweep(part) != metadata:
            key = next(
                key for key in {**metadata, **_sweep(part)} if _sweep(part).get(key) != metadata.get(key)
            )
            raise OutputError(
                f"{part.folder}: {key}: found the value of another sweep, expected the value in "
                f"{parts[0].folder}"
            )
        assert part.folder is not None
        for path in segments.files(part.folder):
            tables.names(path)  # raises an error for a damaged file, before anything is written
        for run in map(int, part.runs["run"].to_numpy()):
            if run in owners:
                raise OutputError(f"{part.folder}: found run {run}, which {owners[run]} has, too")
            owners[run] = part.folder
    wanted = [int(entry["run"]) for entry in metadata.get("runs", [])]
    missing = [run for run in wanted if run not in owners]
    if missing:
        count = f"{len(missing)} of {len(wanted)} runs"
        raise OutputError(f"{out}: found no results of {count}, e.g. of run {missing[0]}; expected all")
    if any(part.folder is not None and part.folder.resolve() == out.resolve() for part in parts):
        raise OutputError(f"{out}: found {found(str(out))} among the parts, expected another folder")
    store = Folder(out, metadata, formats)
    try:
        for part in parts:
            store.take(part)
    except BaseException:
        store.abandon()
        raise
    return store.finish(complete=True)


def _sweep(part: Results) -> dict[str, Any]:
    """The metadata that all parts of a sweep share."""
    return {key: value for key, value in part.metadata.items() if key not in (SHARD, SOUNDNESS)}
