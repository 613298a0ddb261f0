"""Reads a dataset, either as whole tables or lazily."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from narrows.errors import OutputError
from narrows.results import segments as local
from narrows.results import tables
from narrows.results.arrow import array
from narrows.results.datasets.layout import Layout
from narrows.results.datasets.objects import Objects
from narrows.results.datasets.segments import Segment, committed, read_table
from narrows.results.results import DATASET, METADATA

if TYPE_CHECKING:
    import pyarrow.dataset


class Source:
    """The committed segments of a dataset.

    Args:
        objects: the store.
        metadata: version, scenario and runs, as in `Results`.
        segments: the segments to read. No run may be in more than one of them.
    """

    def __init__(self, objects: Objects, metadata: dict[str, Any], segments: Sequence[Segment]) -> None:
        self.url = objects.url
        self.metadata = metadata
        self._objects = objects
        self._segments = segments
        self._datasets: dict[str, pyarrow.dataset.Dataset] = {}
        self._layout = Layout.of(metadata)

    @classmethod
    def open(cls, url: str) -> Source:
        """Open a dataset. A dataset of an interrupted sweep has only the finished runs.

        Raises:
            OutputError: if there are no results of a finished run, or if the store fails.
        """
        objects = Objects(url)
        metadata, facts = read_metadata(objects)
        if facts is None:
            raise OutputError(f"{url}: found no {METADATA}, expected a dataset of narrows run --out")
        listed = facts.get("segments")
        if facts.get("complete") is True and isinstance(listed, list):
            segments = [_segment(url, entry) for entry in listed]
        else:
            segments = [one.segment for one in committed(objects, Layout.of(metadata).sweep)]
        if not segments:
            raise OutputError(f"{url}: found no finished run, expected at least one")
        return cls(objects, metadata, segments)

    def table(self, name: str) -> pa.Table:
        """A table with the same columns as in a folder of results, without the columns of partitions.

        Raises:
            OutputError: if it cannot be read.
        """
        chosen = self._having(name)
        contents = self._objects.read_all([one.file(name) for one in chosen])
        parts = [read_table(name, content, self.url) for content in contents]
        if name == local.RUNS:
            parts = [self._with_factors(part, one) for part, one in zip(parts, chosen, strict=True)]
        for part in parts:
            tables.complete(f"{self.url}/{name}", name, part.column_names)
        whole = local.joined(name, parts) if parts else tables.empty(name)
        return whole.replace_schema_metadata(None)

    def dataset(self, name: str) -> pyarrow.dataset.Dataset:
        """A table as an Arrow dataset, with the columns of partitions.

        The dataset reads only what a query needs.

        Raises:
            OutputError: if the store fails.
        """
        if name not in self._datasets:
            # Keep the dataset, because a summary reads many columns, and each new dataset reads the schema
            # from the store again.
            self._datasets[name] = self._open(name)
        return self._datasets[name]

    def _open(self, name: str) -> pyarrow.dataset.Dataset:
        import pyarrow.dataset as ds  # noqa: PLC0415 (slow to import)

        chosen = self._having(name)
        fields = [pa.field(key, self._kind(key)) for key in self._layout.keys]
        if not chosen:
            return ds.dataset(pa.Table.from_batches([], pa.schema([*tables.empty(name).schema, *fields])))
        with self._objects.one_line("read"):
            files = self._objects.arrow
            first = chosen[0].file(name)
            stored = pq.read_schema(self._objects.path(first), filesystem=files).remove_metadata()
            schema = pa.schema([*stored, *fields])
            if name == local.RUNS:
                order = self._in_order(schema.names)
                schema = pa.schema([schema.field(column) for column in order])
            return ds.dataset(
                [self._objects.path(one.file(name)) for one in chosen],
                schema=schema,
                format="parquet",
                filesystem=files,
                partitioning=ds.partitioning(pa.schema(fields), flavor="hive"),
                partition_base_dir=self._objects.path(name),
            )

    def columns(self, name: str) -> list[str]:
        """The names of a table's columns, without the columns of partitions."""
        keys = () if name == local.RUNS else self._layout.keys
        return [column for column in self.dataset(name).schema.names if column not in keys]

    def column(self, name: str, column: str) -> pa.ChunkedArray[Any]:
        """One column of a table, with its rows in the order of the table. Other columns are not read.

        Raises:
            OutputError: if the table cannot be read, or has no such column.
        """
        if column not in self.columns(name):
            raise tables.no_column(f"{self.url}/{name}", column)
        with self._objects.one_line("read"):
            read = self.dataset(name).to_table(list(dict.fromkeys(["run", column])))
        return local.joined(name, [read])[column]

    def _having(self, name: str) -> list[Segment]:
        return [one for one in self._segments if name == local.RUNS or name in one.tables]

    def _kind(self, factor: str) -> pa.DataType:
        """The type of a factor. The values of a factor are either all numbers or all texts."""
        first = next((run[factor] for run in self.metadata.get("runs", []) if factor in run), "")
        return pa.string() if isinstance(first, str) else pa.float64()

    def _in_order(self, columns: Sequence[str]) -> list[str]:
        """These columns, in the order that they have in the table of runs."""
        factors = [factor for factor in self.metadata.get("factors", []) if factor in columns]
        return ["run", *factors, *(column for column in columns if column not in ("run", *factors))]

    def _with_factors(self, runs: pa.Table, segment: Segment) -> pa.Table:
        """The table of runs of a segment, with the columns whose values are in the segment's path."""
        values = dict(part.split("=", 1) for part in segment.folder.split("/") if part)
        for key, text in values.items():
            factor, value = unquote(key), unquote(text)
            typed = value if self._kind(factor) == pa.string() else float(value)
            runs = runs.append_column(factor, array([typed] * len(runs)))
        return runs.select(self._in_order(runs.column_names))


def read_metadata(objects: Objects) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Read the metadata that a folder of results also has, and the metadata that only datasets have.

    The second part is None if there is no dataset.

    Raises:
        OutputError: if the metadata is damaged, or if the store fails.
    """
    content = objects.read(METADATA)
    if content is None:
        return {}, None
    try:
        metadata = json.loads(content)
        facts = metadata.pop(DATASET)
        if isinstance(facts, dict):
            return metadata, facts
    except (ValueError, RecursionError, KeyError, AttributeError, TypeError):
        pass
    raise OutputError(f"{objects.url}: found no readable {METADATA}, expected a dataset of narrows run --out")


def _segment(url: str, entry: Mapping[str, Any]) -> Segment:
    try:
        return Segment(str(entry["folder"]), str(entry["name"]), tuple(map(str, entry["tables"])))
    except (KeyError, TypeError):
        raise OutputError(f"{url}/{METADATA}: {DATASET}.segments: found no segment, expected one") from None
