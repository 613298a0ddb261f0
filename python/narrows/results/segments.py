"""The tables of finished runs during a sweep: a segment has the tables of several runs.

FOLDER/<number>/<table>.parquet   a segment; it appears complete or not at all

A sweep of short runs would spend most of its time on files if each run had its own.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from narrows.results import tables
from narrows.results.arrow import unsigned

RUNS = "runs"
"""Name of the folder of segments, and of the table that every segment has."""
WAIT_SECONDS = 2.0
"""Longest time that a finished run waits until it is written. A killed sweep loses no more work."""
_WAIT_BYTES = 64 << 20


def segments(folder: Path, name: str) -> list[Path]:
    """The files of a table in the segments of a sweep's folder, in the order in which they were written."""
    return sorted((folder / RUNS).glob(f"[0-9]*/{name}.parquet"), key=lambda path: int(path.parent.name))


def runs_of(segment: Path) -> NDArray[np.uint32]:
    """The numbers of a segment's runs."""
    return unsigned(tables.read(segment / f"{RUNS}.parquet", ["run"])["run"])


def count(folder: Path, name: str = RUNS) -> int:
    """The number of rows of a table in the segments of a sweep's folder: for `runs`, of finished runs."""
    return sum(int(pq.read_metadata(path).num_rows) for path in segments(folder, name))


def runs_in(folder: Path) -> list[int]:
    """The numbers of the finished runs in the segments of a sweep's folder."""
    return [int(run) for path in segments(folder, RUNS) for run in runs_of(path.parent)]


def by_run(table: pa.Table) -> pa.Table:
    """The rows in the order of runs. Rows of a run keep their order."""
    runs = unsigned(table["run"])
    return table if np.all(runs[:-1] <= runs[1:]) else table.take(np.argsort(runs, kind="stable"))


def joined(parts: Sequence[pa.Table]) -> pa.Table:
    """Tables of runs as one table, in the order of runs. A column that a part lacks is null there."""
    return by_run(pa.concat_tables(parts, promote_options="default"))


def in_order(parts: Sequence[Path]) -> Iterator[pa.Table]:
    """The rows of a table's files in the order of runs. Only neighbouring files are in memory at a time."""
    firsts = [int(runs_of(path.parent).min()) for path in parts]
    # The lowest run of all later files.
    lowest = list(itertools.accumulate(reversed([*firsts[1:], np.inf]), min))[::-1]
    waiting: list[pa.Table] = []
    for path, limit in zip(parts, lowest, strict=True):
        table = joined([*waiting, tables.read(path)])
        ready = int(np.searchsorted(unsigned(table["run"]), limit))
        yield table.slice(0, ready)
        waiting = [table.slice(ready)]


def schema(parts: Sequence[Path]) -> pa.Schema:
    """The columns of all files: those of the first one, then all others by name.

    The order must not depend on which runs share a segment.
    """
    known = [pq.read_schema(path) for path in parts]
    merged = pa.unify_schemas(known, promote_options="default")
    first = known[0].names
    return pa.schema([merged.field(name) for name in (*first, *sorted(set(merged.names) - set(first)))])


class Writer:
    """Collects the tables of finished runs and writes segments. Callers hold a lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: dict[int, dict[str, pa.Table]] = {}
        self._bytes = 0
        self._written = time.monotonic()

    def add(self, run: int, data: dict[str, pa.Table]) -> bool:
        """Add a run's tables. Returns whether it is time to write."""
        self._waiting[run] = data
        self._bytes += sum(table.nbytes for table in data.values())
        return self._bytes >= _WAIT_BYTES or time.monotonic() - self._written >= WAIT_SECONDS

    def drop(self) -> list[int]:
        """Forget the runs that are not written, and return their numbers."""
        dropped = list(self._waiting)
        self._waiting, self._bytes = {}, 0
        return dropped

    def write(self) -> None:
        """Write the collected runs as a segment.

        Raises:
            OSError: if it cannot be written. The runs stay collected.
        """
        if not self._waiting:
            return
        number = _next(self._folder)
        partial = self._folder / f".{number}"
        runs = [self._waiting[run] for run in sorted(self._waiting)]
        try:
            partial.mkdir()
            for name in dict.fromkeys(name for run in runs for name in run):
                table = joined([run[name] for run in runs if name in run])
                tables.write_parts(partial / f"{name}.parquet", [table])
            partial.rename(self._folder / str(number))
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        self.drop()
        self._written = time.monotonic()


def discard_partial(folder: Path) -> None:
    """Remove segments that a killed sweep did not complete."""
    for half_done in (folder / RUNS).glob(".[0-9]*"):
        shutil.rmtree(half_done)


def copy(source: Path, target: Path) -> list[int]:
    """Copy the finished runs of a sweep, which is merged or not, and return their numbers."""
    merged = [source] if (source / f"{RUNS}.parquet").is_file() else []
    copied = []
    for folder in merged or [path.parent for path in segments(source, RUNS)]:
        place = target / RUNS / str(_next(target / RUNS))
        place.mkdir()
        for path in folder.glob("*.parquet"):
            shutil.copyfile(path, place / path.name)
        copied += [int(run) for run in runs_of(place)]
    return copied


def _next(folder: Path) -> int:
    """The number of the next segment."""
    return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=-1) + 1
