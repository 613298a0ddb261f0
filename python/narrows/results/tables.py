"""Makes the tables of results and writes them to disk. `columns` lists their columns.

Times are in s, rates in bit/s, sizes in bytes. An undefined figure is NaN. docs/reference/results.md has the
definitions. Tables contain no clock time, path or host. They are therefore bit-for-bit reproducible.
"""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from narrows import retired
from narrows.errors import OutputError
from narrows.results.arrow import array
from narrows.results.columns import COLUMNS, RUN

Format = Literal["parquet", "csv"]
FORMATS: tuple[Format, ...] = ("parquet", "csv")


SCHEMAS: dict[str, pa.Schema] = {
    name: pa.schema([column.field for column in columns]) for name, columns in COLUMNS.items()
}
"""Columns of each table. A table may also have columns that only one backend writes."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk and of an exhausted quota."""

OPTIONAL = ("traces", "acks", "requests")
"""Tables that are written only if they have rows."""

RUN_COUNTS = ("events", "packet_hops", "delivered_packets", "peak_flows")
"""Counters of a run that every backend writes into the table of runs."""


def table(name: str, run: int, columns: Mapping[str, Any]) -> pa.Table:
    """A table from the output of a backend.

    Args:
        name: name of the table, a key of `SCHEMAS`.
        run: number of the run, for the first column.
        columns: numpy arrays or lists by column. A missing column becomes null.
    """
    schema = SCHEMAS[name]
    length = max((len(values) for values in columns.values()), default=0)
    if length == 0 and all(column in schema.names for column in columns):
        return empty(name)
    arrays: dict[str, Any] = {"run": array(np.full(length, run, np.uint32))}
    for field in schema:
        if field.name == "run":
            continue
        values = columns.get(field.name)
        arrays[field.name] = pa.nulls(length, field.type) if values is None else array(values, field.type)
    for extra in columns:
        if extra not in arrays:
            arrays[extra] = array(columns[extra])
    return pa.table(arrays)


@cache
def empty(name: str) -> pa.Table:
    """A table without rows. `Schema.empty_table` would import pandas."""
    schema = SCHEMAS.get(name, pa.schema([RUN.field]))
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def tables(
    run: int, seed: int, factors: Mapping[str, str | float], output: Mapping[str, Any]
) -> dict[str, pa.Table]:
    """All tables of a run from the output of a backend."""
    made = {
        name: table(name, run, output.get(name, {}))
        for name in SCHEMAS
        if name not in OPTIONAL or any(len(values) for values in output.get(name, {}).values())
    }
    return made | {"runs": _row(run, seed, factors, output.get("run", {}))}


def _row(run: int, seed: int, factors: Mapping[str, str | float], counts: Mapping[str, Any]) -> pa.Table:
    """The run's row in the table of runs: number, factors, seed, counters."""
    columns: dict[str, Any] = {"run": array([run], pa.uint32())}
    columns |= {name: array([value]) for name, value in factors.items()}
    columns["seed"] = array([seed], pa.uint64())
    names = [*RUN_COUNTS, *(name for name in counts if name not in RUN_COUNTS)]
    columns |= {name: array([counts[name]]) if name in counts else pa.nulls(1) for name in names}
    return pa.table(columns)


def ordered(name: str, columns: Sequence[str]) -> list[str]:
    """The columns of a table in order. Documented columns come first, then all other columns by name.

    In the table of runs, the factors come before the seed and keep their order in `columns`. Apart from that,
    the order of `columns` does not matter.
    """
    if name in SCHEMAS:
        documented = [column for column in SCHEMAS[name].names if column in columns]
    else:
        factors = columns[: columns.index("seed") + 1] if "seed" in columns else ()
        documented = [*factors, *(column for column in RUN_COUNTS if column in columns)]
    return [*documented, *sorted(set(columns).difference(documented))]


def write(path: Path, data: pa.Table) -> None:
    """Write a table in the format of `path`'s suffix. The write is atomic.

    Raises:
        OutputError: if it cannot be written, e.g. on a full disk.
    """
    try:
        write_rows([path], [data], data.schema)
    except OSError as error:
        raise cannot_write(path, error) from None


def write_rows(
    paths: Sequence[Path], parts: Iterable[pa.Table], schema: pa.Schema, *, is_segment: bool = False
) -> None:
    """Write the rows of several tables into files in one pass. A file's suffix determines its format.

    Equal rows give equal files, even if they are divided into tables differently, because row groups do not
    depend on the tables. The writes are atomic.

    Args:
        paths: the files.
        parts: the tables. If a table lacks a column, the column is null in its rows.
        schema: the columns.
        is_segment: whether the files belong to a segment of a running sweep. Such files are written faster,
            but are larger. The merge at the end of the sweep writes their rows again.

    Raises:
        OSError: if a file cannot be written.
    """
    options: dict[str, Any] = {"compression": "zstd"}
    if is_segment:
        words = [field.name for field in schema if pa.types.is_string(field.type)]
        options = {"compression": "lz4", "use_dictionary": words, "write_statistics": False}
    partial = {path: path.with_name(f".{path.name}.part") for path in paths}
    writers: list[Any] = []
    try:
        try:
            for path in paths:
                if path.suffix == ".csv":
                    writers.append(pacsv.CSVWriter(str(partial[path]), schema))
                else:
                    writers.append(pq.ParquetWriter(str(partial[path].absolute()), schema, **options))
            for group in _groups(parts, schema):
                for writer in writers:
                    writer.write_table(group)
        finally:
            for writer in writers:
                writer.close()
        for path in paths:
            partial[path].replace(path)
    finally:
        for path in partial.values():
            path.unlink(missing_ok=True)


_GROUP_ROWS = 1 << 17
"""Number of rows of a row group in a Parquet file."""


def _groups(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows as tables of `_GROUP_ROWS` rows. Each table has one chunk.

    Only the last table can have fewer rows.
    """
    waiting: list[pa.Table] = [pa.Table.from_batches([], schema)]
    rows = 0
    for part in parts:
        waiting.append(part if part.schema == schema else _like(part, schema))
        rows += len(part)
        while rows > _GROUP_ROWS:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, _GROUP_ROWS).combine_chunks()
            waiting = [whole.slice(_GROUP_ROWS)]
            rows -= _GROUP_ROWS
    yield pa.concat_tables(waiting).combine_chunks()


def _like(part: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        part[field.name].cast(field.type)
        if field.name in part.column_names
        else pa.nulls(len(part), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def read(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a Parquet table, or some of its columns.

    Columns that an earlier version wrote get their current names. Columns that the earlier version did not
    write are NaN.

    Raises:
        OutputError: if the file is not a Parquet table, or lacks one of these columns.
    """
    data = _read(path, columns)
    for column in columns or ():
        if column not in data.column_names:
            raise no_column(path, column)
    return data


def _read(path: Path, columns: list[str] | None) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:  # read_table would import pyarrow.dataset
            present = file.schema_arrow.names
            renamed = retired.columns(path.stem, present)
            missing = [name for name in _missing(path, renamed) if columns is None or name in columns]
            if renamed == present and not missing:
                return file.read(columns)
            stored = dict(zip(renamed, present, strict=True))
            wanted = None if columns is None else [stored.get(n, n) for n in columns if n not in missing]
            data = file.read(wanted)
            found: dict[str, Any] = dict(
                zip(retired.columns(path.stem, data.column_names), data.columns, strict=True)
            )
            unknown = pa.array([math.nan] * file.metadata.num_rows, pa.float64())
            return pa.table({**found, **dict.fromkeys(missing, unknown)})
    except (OSError, pa.ArrowException) as error:
        raise _cannot_read(path, error) from None


def rows(path: Path) -> int:
    """The number of rows of a Parquet table.

    Raises:
        OutputError: if it is not a Parquet table.
    """
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise _cannot_read(path, error) from None


def schema(path: Path) -> pa.Schema:
    """The columns of a Parquet table as they are stored.

    Raises:
        OutputError: if it is not a Parquet table.
    """
    try:
        return pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        raise _cannot_read(path, error) from None


def names(path: Path) -> list[str]:
    """The names of a Parquet table's columns. Names of an earlier version are replaced by current names.

    Raises:
        OutputError: if it is not a Parquet table.
    """
    current = retired.columns(path.stem, schema(path).names)
    return current + _missing(path, current)


def _missing(path: Path, present: Collection[str]) -> list[str]:
    """Columns that the table's file lacks because an earlier version wrote it."""
    return [name for name in retired.ADDED.get(path.stem, []) if name not in present]


def complete(path: Path | str, name: str, present: Iterable[str], factors: Iterable[str] = ()) -> None:
    """Check that a file has all columns of its table.

    Args:
        path: the file or URL of the table.
        name: name of the table.
        present: columns of the file.
        factors: additional columns of the table of runs.

    Raises:
        OutputError: for the first missing column.
    """
    wanted = SCHEMAS[name].names if name in SCHEMAS else (RUN.name, "seed", *factors)
    known = set(present)
    for column in wanted:
        if column not in known:
            raise no_column(path, column)


def place(folder: Path | str | None, name: str) -> str:
    """The place of a table, for messages. The table is in a folder, at a URL, or in memory (None)."""
    if isinstance(folder, str):
        return f"{folder}/{name}"
    return f"table {name}" if folder is None else str(folder / f"{name}.parquet")


def no_column(path: Path | str, column: str) -> OutputError:
    """The error for a table without a column."""
    return OutputError(f"{path}: found no column {column!r}, expected results of this version")


def _cannot_read(path: Path, error: Exception) -> OutputError:
    reason = getattr(error, "strerror", None) or "not a Parquet file"
    return OutputError(f"{path}: cannot be read ({reason})")


def cannot_write(path: Path, error: OSError) -> OutputError:
    """The error for a failed write, in one line."""
    number = error.errno
    if number is None and (named := re.search(r"\[errno (\d+)\]", str(error))):  # Arrow's text
        number = int(named[1])
    reason = os.strerror(number) if number else (str(error).splitlines() or ["unknown reason"])[0]
    advice = "; free some space and run again" if number in _FULL else ""
    return OutputError(f"{path}: cannot be written ({reason}){advice}")
