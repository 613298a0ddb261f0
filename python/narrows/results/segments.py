"""Stores the tables of finished runs during a sweep. A segment has the tables of several runs.

FOLDER/runs/<number>/<table>.parquet   a segment, with the number of its lowest run; created atomically
FOLDER/runs/.stage-<token>/            segments that are being written

Several runs share a segment. With a segment for each run, a sweep of short runs would spend most of its time
on files.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from narrows.errors import OutputError
from narrows.results import tables
from narrows.results.arrow import array, unsigned

RUNS = "runs"
"""Name of the folder of segments, and of the table that every segment has."""
WAIT_SECONDS = 2.0
"""Longest time that a finished run waits until it is written. If the sweep is killed, the waiting runs and
the active runs are lost."""
_WAIT_BYTES = 64 << 20


def segments(folder: Path, name: str) -> list[Path]:
    """The files of a table in the segments of a sweep's folder, ordered by the lowest run of each segment."""
    return sorted((folder / RUNS).glob(f"[0-9]*/{name}.parquet"), key=lambda path: int(path.parent.name))


def runs_of(segment: Path) -> NDArray[np.uint32]:
    """The numbers of the runs of a segment, or of merged tables.

    Raises:
        OutputError: if the runs cannot be read.
    """
    return _runs(tables.read(segment / f"{RUNS}.parquet", ["run"]))


def count(folder: Path, name: str = RUNS) -> int:
    """The number of rows of a table in the segments of a sweep's folder.

    For the table `runs`, this is the number of runs.

    Raises:
        OutputError: if a file is damaged.
    """
    return sum(tables.rows(path) for path in segments(folder, name))


def files(folder: Path) -> list[Path]:
    """The Parquet files of a sweep. The tables of the sweep may be merged or not."""
    if (folder / f"{RUNS}.parquet").is_file():
        return sorted(folder.glob("*.parquet"))
    return sorted((folder / RUNS).glob("[0-9]*/*.parquet"))


def runs_in(folder: Path) -> list[int]:
    """The numbers of the finished runs in the segments of a sweep's folder.

    Raises:
        OutputError: if a file is damaged, or if two segments have the same run.
    """
    runs: list[int] = []
    for path in segments(folder, RUNS):
        runs += map(int, runs_of(path.parent))
    if twice := [run for run, times in Counter(runs).items() if times > 1]:
        raise OutputError(f"{folder / RUNS}: found run {min(twice)} in two segments, expected each run once")
    return runs


def joined(name: str, parts: Sequence[pa.Table]) -> pa.Table:
    """Join tables of runs to one table, in the order of runs.

    If a part lacks a column that another part has, the column is null in the rows of that part.

    Raises:
        OutputError: if a column has different types.
    """
    order = _unified(name, [part.schema for part in parts]).names
    whole = pa.concat_tables(parts, promote_options="default").select(order)
    runs = _runs(whole)
    return whole if np.all(runs[:-1] <= runs[1:]) else whole.take(array(np.argsort(runs, kind="stable")))


def in_order(parts: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield the rows of a table's files in the order of runs.

    Only neighbouring files are in memory at the same time.

    Raises:
        OutputError: if a file is damaged.
    """
    firsts = [int(path.parent.name) for path in parts]
    # For each file, the lowest run of all files after it.
    lowest = list(itertools.accumulate(reversed([*firsts[1:], np.inf]), min))[::-1]
    waiting: list[pa.Table] = []
    for path, limit in zip(parts, lowest, strict=True):
        read = tables.read(path)
        if "run" not in read.column_names:
            raise tables.no_column(path, "run")
        table = joined(path.stem, [*waiting, read])
        ready = int(np.searchsorted(_runs(table), limit))
        yield table.slice(0, ready)
        waiting = [table.slice(ready)]


def schema(parts: Sequence[Path]) -> pa.Schema:
    """The columns of all files of a table, in the table's order.

    Raises:
        OutputError: if a file is damaged, or if a column has different types.
    """
    return _unified(parts[0].stem, [tables.schema(path) for path in parts])


def _unified(name: str, known: Sequence[pa.Schema]) -> pa.Schema:
    # Nearly always, all schemas are equal, and to compare them is faster than to unify them.
    different = [schema for schema in known[1:] if schema != known[0]]
    try:
        merged = pa.unify_schemas([known[0], *different], promote_options="default")
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise OutputError(f"table {name}: found different types ({reason}), expected equal types") from None
    return pa.schema([merged.field(column) for column in tables.ordered(name, merged.names)])


def _runs(table: pa.Table) -> NDArray[np.uint32]:
    return unsigned(table["run"])


class Collected:
    """The tables of finished runs that are not written yet. Callers must hold a lock.

    Args:
        seconds: longest time that a run should wait until it is written (None: `WAIT_SECONDS`).
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = WAIT_SECONDS if seconds is None else seconds
        self._runs: dict[int, dict[str, pa.Table]] = {}
        self._bytes = 0
        self._taken = time.monotonic()

    def add(self, run: int, data: dict[str, pa.Table]) -> bool:
        """Add a run's tables. Returns whether the collected runs should be written now."""
        self._runs[run] = data
        self._bytes += sum(table.nbytes for table in data.values())
        return self._bytes >= _WAIT_BYTES or time.monotonic() - self._taken >= self._seconds

    def take(self) -> dict[int, dict[str, pa.Table]]:
        """Remove and return all runs."""
        taken = self._runs
        self._runs, self._bytes, self._taken = {}, 0, time.monotonic()
        return taken


def new_stage(folder: Path) -> Path:
    """Create a folder for unfinished segments (a stage) in a sweep's folder.

    Each sweep has its own stage, and the next sweep removes old stages (`discard_stages`). Therefore, a
    worker that still runs after the end of its sweep cannot add segments to the next sweep.
    """
    stage = folder / RUNS / f".stage-{secrets.token_hex(4)}"
    stage.mkdir()
    return stage


def discard_stages(folder: Path) -> None:
    """Remove the stages in a sweep's folder, including the unfinished segments in them."""
    for stage in (folder / RUNS).glob(".*"):
        # A worker that is still running after the end of its sweep may still write to the stage. The stage is
        # renamed first, so that the worker cannot complete a segment while this function removes the stage.
        gone = stage.with_name(f".gone-{secrets.token_hex(4)}")
        with contextlib.suppress(OSError):
            stage.rename(gone)
        for place in (gone, stage):
            shutil.rmtree(place, ignore_errors=True)


def is_written(stage: Path, runs: Sequence[int]) -> bool:
    """Whether the sweep of a stage has a segment with exactly these runs. `runs` must be sorted.

    If one of the runs failed, the segment contains only the runs before the failed run, and the function
    returns false.

    Raises:
        OutputError: if the segment cannot be read.
    """
    segment = stage.parent / str(runs[0])
    return segment.is_dir() and list(map(int, runs_of(segment))) == list(runs)


def put(stage: Path, runs: Mapping[int, Mapping[str, pa.Table]]) -> None:
    """Write runs as a segment.

    Raises:
        OSError: if it cannot be written.
    """
    with _appearing(stage, min(runs)) as partial:
        each = [runs[run] for run in sorted(runs)]
        for name in dict.fromkeys(name for run in each for name in run):
            table = joined(name, [run[name] for run in each if name in run])
            tables.write_rows([partial / f"{name}.parquet"], [table], table.schema, is_segment=True)


def put_files(stage: Path, number: int, files: Mapping[str, bytes]) -> None:
    """Write a segment from the contents of its files.

    Raises:
        OSError: if it cannot be written.
    """
    with _appearing(stage, number) as partial:
        for name, content in files.items():
            (partial / name).write_bytes(content)


def copy(source: Path, stage: Path) -> list[int]:
    """Copy the finished runs of a sweep, whether or not its tables are merged, and return their numbers.

    Raises:
        OSError: if they cannot be copied.
        OutputError: if a file is damaged.
    """
    merged = [source] if (source / f"{RUNS}.parquet").is_file() else []
    copied: list[int] = []
    for folder in merged or [path.parent for path in segments(source, RUNS)]:
        runs = list(map(int, runs_of(folder)))
        with _appearing(stage, min(runs)) as partial:
            for path in folder.glob("*.parquet"):
                shutil.copyfile(path, partial / path.name)
        copied += runs
    return copied


@dataclass(frozen=True)
class Writer:
    """Writes finished runs into a sweep's folder. Workers in other processes get a copy of this object."""

    stage: Path

    def is_reachable(self) -> bool:
        """Whether this process can access the folder."""
        return self.stage.is_dir()

    def is_written(self, runs: Sequence[int]) -> bool:
        """Whether the sweep has a segment with exactly these runs (see the function `is_written`)."""
        return is_written(self.stage, runs)

    def put(self, runs: Mapping[int, Mapping[str, pa.Table]]) -> None:
        """Write runs as a segment.

        Raises:
            OutputError: if it cannot be written.
        """
        try:
            put(self.stage, runs)
        except OSError as error:
            raise tables.cannot_write(self.stage.parent, error) from None


@contextlib.contextmanager
def _appearing(stage: Path, number: int) -> Iterator[Path]:
    """A folder that becomes the segment `number` at the end of the block.

    If the segment already exists, it is kept, because another attempt at the same runs wrote it.
    """
    partial = stage / f"{number}-{secrets.token_hex(4)}"
    partial.mkdir()
    try:
        yield partial
        try:
            partial.rename(stage.parent / str(number))
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
