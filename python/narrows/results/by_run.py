"""Divides the tables of a sweep into runs. Each column is read at its first use.

Reading columns late saves time. A study has hundreds of runs, with a row for every flow and every 10 ms, but
it uses only four of the fifteen columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from narrows.results.factors import factor
from narrows.results.results import Results
from narrows.results.runs import Run, Runs
from narrows.results.tables import SCHEMAS


class Columns:
    """A table of a sweep, as columns. The rows of each column are in the order of the runs.

    Args:
        results: results of the sweep.
        table: name of the table.
        count: number of runs, including missing runs.
    """

    def __init__(self, results: Results, table: str, count: int) -> None:
        self._results = results
        self._table = table
        self._whole: dict[str, Any] = {}
        known = results.columns(table)
        owner = values(results.column(table, "run")) if "run" in known else np.empty(0)
        self._borders = np.searchsorted(owner, np.arange(count + 1))
        self.names = [name for name in known if name != "run"]

    def of(self, run: int) -> Mapping[str, Any]:
        """The columns of one run, by name."""
        return _OfRun(self, int(self._borders[run]), int(self._borders[run + 1]))

    def whole(self, name: str) -> Any:
        """A column of all runs."""
        if name not in self._whole:
            if name not in self.names:
                raise KeyError(name)
            self._whole[name] = values(self._results.column(self._table, name))
        return self._whole[name]


@dataclass(frozen=True)
class _OfRun(Mapping[str, Any]):
    columns: Columns
    first: int
    last: int

    def __getitem__(self, name: str) -> Any:
        return self.columns.whole(name)[self.first : self.last]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns.names)

    def __len__(self) -> int:
        return len(self.columns.names)


def values(column: pa.ChunkedArray[Any]) -> Any:
    """A column as a list if it has strings, otherwise as a numpy array."""
    return column.to_pylist() if pa.types.is_string(column.type) else column.to_numpy()


def read_runs(results: Results, factors: Mapping[str, str] | None = None) -> Runs:
    """The tables of a sweep as runs.

    Args:
        results: results of the sweep.
        factors: the key (`case` or a dotted key) of each factor whose name differs from its key.
    """
    rows: list[dict[str, Any]] = results.runs.to_pylist()
    names = {key: name for name, key in (factors or {}).items()}
    # The runs of an interrupted sweep are not numbered consecutively.
    count = max((int(row["run"]) for row in rows), default=-1) + 1
    columns = {name: Columns(results, name, count) for name in SCHEMAS}
    # A key is a factor only if it has several values in the sweep, or if `factors` names it.
    keys = [key for key in results.factors if key in names or len({row.get(key) for row in rows}) > 1]
    runs, soundness = [], results.soundness
    for row in rows:
        identity = int(row["run"])
        values_ = {names.get(key, key): factor(row[key]) for key in keys if row.get(key) is not None}
        tables = {name: part.of(identity) for name, part in columns.items()}
        doubts = tuple(soundness.get(str(identity), {}).get("reasons", ()))
        runs.append(Run(values_, int(row["seed"]), tables, doubts=doubts, folder=results.folder))
    return Runs(runs)
