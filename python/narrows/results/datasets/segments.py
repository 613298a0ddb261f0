"""Reads and writes the segments of a dataset. Segments without a table of runs are ignored."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from narrows.errors import OutputError
from narrows.results import segments as local
from narrows.results.arrow import unsigned
from narrows.results.datasets import layout
from narrows.results.datasets.layout import Layout
from narrows.results.datasets.objects import Objects, parquet

_SWEEP, _TABLES = b"narrows.sweep", b"narrows.tables"
"""Metadata keys of a segment's table of runs, which is the marker of a complete segment. Their values are the
identifier of the sweep and the names of the segment's other tables."""


@dataclass(frozen=True)
class Segment:
    """A segment of finished runs."""

    folder: str
    """The partition of the segment."""
    name: str
    tables: tuple[str, ...]
    """The tables that have rows, without the table of runs."""

    def file(self, table: str) -> str:
        """The name of the object with a table of this segment."""
        return layout.file(table, self.folder, self.name)

    def files(self) -> list[str]:
        """The names of all objects of this segment. The marker is last."""
        return [self.file(table) for table in (*self.tables, local.RUNS)]


@dataclass(frozen=True)
class Marked:
    """A segment with its stored table of runs."""

    segment: Segment
    runs: pa.Table

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers of the segment's runs."""
        return [int(run) for run in unsigned(self.runs["run"])]


@dataclass(frozen=True)
class Writer:
    """Writes finished runs into a dataset. Workers in other processes get a copy of this object."""

    url: str
    layout: Layout

    def is_reachable(self) -> bool:
        """Always true, because all workers can write into the dataset."""
        return True

    def is_written(self, runs: Sequence[int]) -> bool:
        """Whether the dataset has segments with exactly these runs.

        Raises:
            OutputError: if the store fails.
        """
        objects = Objects(self.url)
        return all(
            objects.exists(layout.file(local.RUNS, folder, self.layout.name(numbers)))
            for folder, numbers in self.layout.divide(runs).items()
        )

    def put(self, runs: Mapping[int, Mapping[str, pa.Table]]) -> None:
        """Write runs as one segment per partition.

        Raises:
            OutputError: if they cannot be written.
        """
        objects = Objects(self.url)
        for folder, numbers in self.layout.divide(runs).items():
            self._put(objects, folder, numbers, [runs[run] for run in numbers])

    def _put(
        self, objects: Objects, folder: str, numbers: Sequence[int], each: Sequence[Mapping[str, pa.Table]]
    ) -> None:
        joined = {
            name: local.joined(name, [run[name] for run in each if name in run])
            for name in dict.fromkeys(name for run in each for name in run)
        }
        marker = joined.pop(local.RUNS)
        filled = tuple(sorted(name for name, table in joined.items() if len(table)))
        segment = Segment(folder, self.layout.name(numbers), filled)
        for name in filled:
            objects.write(segment.file(name), parquet(joined[name]))
        facts = {_SWEEP: self.layout.sweep.encode(), _TABLES: ",".join(filled).encode()}
        stored = marker.drop_columns(list(self.layout.keys)).replace_schema_metadata(facts)
        objects.write(segment.file(local.RUNS), parquet(stored))


def committed(objects: Objects, sweep: str, known: dict[str, Marked] | None = None) -> list[Marked]:
    """The segments of a sweep that readers must use. No run is in more than one of them.

    Several segments can contain the same run, if workers divided the runs in different ways. The run's
    results are equal in all these segments, so only one of the segments is used.

    Args:
        objects: the store.
        sweep: identifies the sweep.
        known: markers of this sweep that were read before. New markers are added.

    Raises:
        OutputError: if the store fails.
    """
    markers = [name for name in objects.names(local.RUNS) if name.endswith(".parquet")]
    known = {} if known is None else known
    new = [name for name in markers if name not in known]
    for name, content in zip(new, objects.read_all(new), strict=True):
        if (one := _marked(name, content, sweep)) is not None:
            known[name] = one
    return disjoint(known[name] for name in markers if name in known)


def disjoint(found: Iterable[Marked]) -> list[Marked]:
    """Segments in the order of their lowest runs.

    If two segments contain the same run, only one of them is returned.
    """
    taken: set[int] = set()
    chosen: list[Marked] = []
    for one in sorted(found, key=lambda one: (one.numbers[0], -len(one.numbers), one.segment.name)):
        if taken.isdisjoint(one.numbers):
            taken.update(one.numbers)
            chosen.append(one)
    return chosen


def _marked(name: str, content: bytes, sweep: str) -> Marked | None:
    """The segment that a marker completes (None: the marker is damaged, or it belongs to another sweep)."""
    try:
        runs = pq.read_table(io.BytesIO(content))
    except (OSError, pa.ArrowException):
        return None
    facts = runs.schema.metadata or {}
    if facts.get(_SWEEP, b"").decode() != sweep or not len(runs) or "run" not in runs.column_names:
        return None
    _, _, path = name.partition("/")
    folder, _, last = path.rpartition("/")
    known = tuple(table for table in facts.get(_TABLES, b"").decode().split(",") if table)
    return Marked(Segment(folder, last.removesuffix(".parquet"), known), runs)


def read_table(name: str, content: bytes, place: str) -> pa.Table:
    """The table in an object.

    Raises:
        OutputError: if the object is damaged.
    """
    try:
        return pq.read_table(io.BytesIO(content))
    except (OSError, pa.ArrowException):
        raise OutputError(f"{place}: found a damaged file of table {name}, expected Parquet") from None
