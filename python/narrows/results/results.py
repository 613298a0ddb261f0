"""The results of a sweep, on disk or in memory, read as Arrow, pandas or polars tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from narrows import extras, retired
from narrows.errors import NarrowsError, OutputError, found, hint
from narrows.results import segments, tables
from narrows.results.datasets.urls import url_of

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow.dataset

    from narrows.results.datasets.source import Source

METADATA = "metadata.json"
"""File with the version, the scenario and the runs."""
LOGS = "logs"
"""Folder of the logs of programs."""
REPORT = "report.html"
"""The page that `narrows report` writes."""
SIMULATED = "sim"
"""Folder in the results of real stacks that has simulations of the same runs."""
INTERRUPTED = "interrupted"
"""Folder with the finished runs of an interrupted sweep. It exists only if the folder of results has earlier
results, too."""
SOUNDNESS = "soundness"
"""Metadata key. For each run in real time, the value says whether the run was sound and, if not, why."""
STOPPED = "stopped_s"
"""Key of the simulated time at which a run was stopped. In a run's output, the value is the time in seconds.
In the metadata, the value is a table with the time of each stopped run."""

DATASET = "dataset"
"""Metadata key of datasets. The value says whether the dataset is complete, and has its partitions and
segments."""

_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "scenario": ("a table", lambda value: isinstance(value, dict)),
    "warmup_s": (
        "a number",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    ),
    "factors": ("a list of names", lambda value: _list_of(str, value)),
    "entries": ("a list of names", lambda value: _list_of(str, value)),
    "runs": ("a list of tables", lambda value: _list_of(dict, value)),
}
"""Expected types of the optional keys of the metadata."""


class Results:
    """Tables of one or more runs.

    Every table begins with the column ``run``. The table ``runs`` has the seed and the factors of each run.
    Tables are read from disk or from the store at their first use.
    """

    def __init__(
        self,
        metadata: dict[str, Any],
        loaded: dict[str, pa.Table],
        folder: Path | None = None,
        source: Source | None = None,
    ) -> None:
        self.metadata = metadata
        self.folder = folder
        self._loaded = loaded
        self._source = source

    @classmethod
    def read(cls, folder: str | Path) -> Results:
        """Open a folder of results, or a dataset at a URL such as ``s3://bucket/folder``.

        If the sweep was interrupted, the results have only the finished runs.

        Raises:
            OutputError: if the folder holds no results of a finished run.
        """
        if (url := url_of(folder)) is not None:
            return cls._read_dataset(url)
        folder = Path(folder)
        try:
            metadata = json.loads((folder / METADATA).read_text(encoding="utf-8"))
            if not isinstance(metadata, dict):
                raise ValueError
        except (OSError, ValueError, RecursionError):
            raise OutputError(f"{folder}: {_not_results(folder)}") from None
        if DATASET in metadata:
            return cls._read_dataset(folder.absolute().as_uri())
        _check(metadata, folder / METADATA)
        if not holds_runs(folder):
            raise OutputError(f"{folder}: found no finished run, expected at least one")
        return cls(retired.metadata(metadata), {}, folder)

    @classmethod
    def _read_dataset(cls, url: str) -> Results:
        from narrows.results.datasets.source import Source  # noqa: PLC0415 (slow to import)

        source = Source.open(url)
        _check(source.metadata, f"{url}/{METADATA}")
        return cls(retired.metadata(source.metadata), {}, source=source)

    def __repr__(self) -> str:
        name = self.metadata.get("scenario", {}).get("name", "")
        runs = len(self.metadata.get("runs", []))
        where = "memory" if self.place is None else self.place
        return f"<Results of {name!r}: {runs} run{'' if runs == 1 else 's'}, in {where}>"

    @property
    def place(self) -> Path | str | None:
        """The folder or the URL of the results (None: they are only in memory)."""
        return self.folder if self._source is None else self._source.url

    def table(self, name: str) -> pa.Table:
        """A table by name. If the runs did not record the table, it is empty.

        Raises:
            OutputError: if there is no such table.
        """
        check_name(name)
        if name not in self._loaded:
            self._loaded[name] = self._read(name)
        return self._loaded[name]

    def in_memory(self) -> Results:
        """The results with all tables in memory, independent of their folder."""
        return Results(self.metadata, {name: self.table(name) for name in ("runs", *tables.SCHEMAS)})

    def columns(self, name: str) -> list[str]:
        """The names of a table's columns. The table is not read."""
        if self._source is not None and name not in self._loaded:
            return self._source.columns(name)
        whole = self._whole(name)
        if whole is None:
            return self.table(name).column_names
        known = tables.names(whole)
        tables.complete(whole, name, known, self.factors)
        return known

    def column(self, name: str, column: str) -> pa.ChunkedArray[Any]:
        """One column of a table. Other columns are not read.

        Raises:
            OutputError: if the table cannot be read, or has no such column.
        """
        return self.read_columns(name, [column])[column]

    def read_columns(self, name: str, wanted: Sequence[str]) -> dict[str, pa.ChunkedArray[Any]]:
        """Columns of a table by name. Other columns are not read.

        Raises:
            OutputError: if the table cannot be read, or lacks one of these columns.
        """
        if self._source is not None and name not in self._loaded:
            return {column: self._source.column(name, column) for column in wanted}
        whole = self._whole(name)
        table = self.table(name) if whole is None else tables.read(whole, list(wanted))
        for column in wanted:
            if column not in table.column_names:
                raise tables.no_column(tables.place(self.place, name), column)
        return {column: table[column] for column in wanted}

    def _whole(self, name: str) -> Path | None:
        """The file of a table (None: the table has several files, or is in memory)."""
        if name in self._loaded or self.folder is None:
            return None
        path = self.folder / f"{name}.parquet"
        return path if path.exists() else None

    def _read(self, name: str) -> pa.Table:
        if self._source is not None:
            return self._source.table(name)
        if self.folder is None:
            return tables.empty(name)
        whole = self._whole(name)
        if whole is not None:
            return self._complete(whole, name)
        parts = [self._complete(path, name) for path in segments.segments(self.folder, name)]
        return segments.joined(name, parts) if parts else tables.empty(name)

    def _complete(self, path: Path, name: str) -> pa.Table:
        """The table in a file, checked for missing columns."""
        table = tables.read(path)
        # The table of a single run has no column for a factor that only other runs set.
        tables.complete(path, name, table.column_names, self.factors if path.parent == self.folder else ())
        return table

    def pandas(self, name: str) -> pandas.DataFrame:
        """A table as a pandas frame (extra `pandas`)."""
        extras.require("pandas", "Results.pandas")
        return self.table(name).to_pandas()

    def scan(self, name: str) -> polars.LazyFrame:
        """A table as a lazy polars frame (extra `polars`). The frame reads only what a query needs.

        If the results are at a URL, each table also has a column for each factor in the paths of its files.

        Raises:
            OutputError: if there is no such table.
        """
        extras.require("polars", "Results.scan")
        import polars  # noqa: PLC0415 (optional, and slow to import)

        if self._source is not None:
            return polars.scan_pyarrow_dataset(self.dataset(name))
        whole = self._whole(name)
        if whole is None:
            return self.polars(name).lazy()
        known = tables.names(whole)
        tables.complete(whole, name, known, self.factors)
        frame = polars.scan_parquet(whole)
        # Files of an earlier version can have other columns than files of this version.
        return frame if frame.collect_schema().names() == known else self.polars(name).lazy()

    def dataset(self, name: str) -> pyarrow.dataset.Dataset:
        """A table as an Arrow dataset, which reads only what a query needs.

        If the results are at a URL, each table also has a column for each factor in the paths of its files.

        Raises:
            OutputError: if there is no such table.
        """
        import pyarrow.dataset as ds  # noqa: PLC0415 (slow to import)

        check_name(name)
        if self._source is not None:
            return self._source.dataset(name)
        whole = self._whole(name)
        if whole is not None and tables.names(whole) == tables.schema(whole).names:
            return ds.dataset(whole, format="parquet")
        # Files of an earlier version can have other columns than files of this version.
        return ds.dataset(self.table(name))

    def polars(self, name: str) -> polars.DataFrame:
        """A table as a polars frame (extra `polars`)."""
        extras.require("polars", "Results.polars")
        import polars  # noqa: PLC0415 (optional, and slow to import)

        frame = polars.from_arrow(self.table(name))
        assert isinstance(frame, polars.DataFrame)
        return frame

    @property
    def plot(self) -> Any:
        """Figures as altair charts, e.g. `results.plot.time()` (extra `report`).

        The result is a `narrows.report.notebook.Plots`.
        """
        extras.require("report", "Results.plot")
        # Import the report by name, because it is a layer above the results.
        return import_module("narrows.report.notebook").Plots(self)

    def _repr_html_(self) -> str | None:
        """The summary for a notebook (None: the extra `report` is not installed)."""
        if extras.missing("report"):
            return None
        text: str = import_module("narrows.report.notebook").as_html(self)
        return text

    @property
    def warmup_s(self) -> float:
        """Warm-up of the runs in seconds (0: the results do not state it)."""
        return float(self.metadata.get("warmup_s", 0.0))

    @property
    def factors(self) -> list[str]:
        """Keys, other than the seed, whose values vary between the runs."""
        return list(self.metadata.get("factors", []))

    @property
    def soundness(self) -> dict[str, dict[str, Any]]:
        """For each run in real time, by its number: `sound`, `reasons`, and measurements.

        The result is empty for simulations.
        """
        told = self.metadata.get(SOUNDNESS, {})
        known = isinstance(told, dict) and all(isinstance(v, dict) and "sound" in v for v in told.values())
        if not known:
            raise OutputError(
                f"{self.place}: metadata.json: {SOUNDNESS}: expected for each run whether it was sound"
            )
        return dict(told)

    @property
    def runs(self) -> pa.Table:
        """A row per run: factors, seed, cost."""
        return self.table("runs")

    @property
    def flows(self) -> pa.Table:
        """A row per run and flow."""
        return self.table("flows")

    @property
    def flow_samples(self) -> pa.Table:
        """A row per run, flow and probe interval."""
        return self.table("flow_samples")

    @property
    def links(self) -> pa.Table:
        """A row per run and directed link."""
        return self.table("links")

    @property
    def link_samples(self) -> pa.Table:
        """A row per run, sampled link and probe interval."""
        return self.table("link_samples")

    @property
    def signalling(self) -> pa.Table:
        """A row per run and controlled port (simulations only)."""
        return self.table("signalling")

    @property
    def flow_records(self) -> pa.Table:
        """A row for each run, port with BRF, and flow that ended at this port (simulations only)."""
        return self.table("flow_records")

    @property
    def distributions(self) -> pa.Table:
        """The table of quantiles of RTTs and sojourn times."""
        return self.table("distributions")

    @property
    def events(self) -> pa.Table:
        """The table of events and their times."""
        return self.table("events")

    @property
    def traces(self) -> pa.Table:
        """The state of controllers over time, if it was recorded."""
        return self.table("traces")

    @property
    def acks(self) -> pa.Table:
        """A row per recorded ACK (simulations only), if any were recorded."""
        return self.table("acks")

    @property
    def requests(self) -> pa.Table:
        """A row per object that a receiver requested (`requests` of a flow), if there were any."""
        return self.table("requests")


def check_name(name: str) -> None:
    """Check that there is a table of this name.

    Raises:
        OutputError: if there is no table of this name.
    """
    if name not in ("runs", *tables.SCHEMAS):
        raise OutputError(f"found table {name!r}, expected one of the results'{hint(name, tables.SCHEMAS)}")


def _check(metadata: dict[str, Any], place: Path | str) -> None:
    """Check the types of the metadata.

    Raises:
        OutputError: if a key has another type.
    """
    for key, (expected, fits) in _KINDS.items():
        if key in metadata and not fits(metadata[key]):
            raise OutputError(f"{place}: {key}: found {found(metadata[key])}, expected {expected}")


_MOST_NAMED = 8
"""Maximum number of folders of results that an error message lists."""


def _not_results(path: Path) -> str:
    """A text that says why a path is not a folder of results, and what the user can do."""
    expected = "expected a folder of results"
    if path.is_file():
        if path.suffix == ".toml":
            return f"found a scenario, {expected}; run it first: narrows run {path}"
        return f"found a file, {expected}"
    if not path.exists():
        return f"no such folder, {expected}"
    try:
        inside = sorted(entry.name for entry in path.iterdir() if (entry / METADATA).is_file())
    except OSError as error:
        return f"{error.strerror}, {expected}"
    if inside and not (path / METADATA).exists():
        more = ", ..." if len(inside) > _MOST_NAMED else ""
        return f"found no {METADATA}, {expected}; {path} holds: {', '.join(inside[:_MOST_NAMED])}{more}"
    return f"found no readable {METADATA}, {expected}"


def _list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def holds_runs(folder: Path) -> bool:
    """Whether a folder has results of at least one finished run."""
    whole = any((folder / f"runs.{suffix}").exists() for suffix in tables.FORMATS)
    return (folder / METADATA).exists() and (whole or bool(segments.segments(folder, segments.RUNS)))


def left_by(error: NarrowsError) -> Results | None:
    """The finished runs of a sweep that an error stopped (None: they are not on disk)."""
    return error.left if isinstance(error.left, Results) else None


def is_finished(folder: Path) -> bool:
    """Whether a folder has the results of a complete sweep."""
    return (folder / METADATA).is_file() and (folder / "runs.parquet").is_file()
