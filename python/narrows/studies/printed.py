"""Reads a table printed in a paper, and treats each of its rows as a run.

A study can therefore check the paper's printed figures without a simulation.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from narrows import retired
from narrows.errors import NarrowsError, hint, one_line
from narrows.results.measures import measure
from narrows.results.runs import PRINTED, Run, Runs

KEY = "algorithm"
"""Name of the table's first column. It is a factor of the runs."""


def printed_rows(path: Path) -> Runs:
    """Return a run per row. The first column is the algorithm. The other columns are figures.

    Raises:
        NarrowsError: if the file does not have this form.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        first = next(iter(rows[0]), "") if rows else ""
        if retired.current(first, retired.FACTORS, str(path)) != first:
            rows = [{KEY: row.pop(first), **row} for row in rows]
        return Runs(Run({KEY: row.pop(KEY)}, 0, {PRINTED: _figures(row)}) for row in rows)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise NarrowsError(one_line(f"{path}: expected a table of a paper: {error!r}")) from None


def _figures(row: Mapping[str, str]) -> dict[str, Any]:
    return {name: np.array([float(text)]) for name, text in row.items()}


def _figure(run: Run, column: str) -> float:
    known = run.tables[PRINTED]
    if column not in known:
        raise NarrowsError(f"no column {column!r} in the paper's table{hint(column, known)}")
    return float(known[column][0])


@measure("As printed", "", "the paper's table")
def printed(run: Run, column: str) -> float:
    """The figure in a column of the paper's table."""
    return _figure(run, column)


@measure("Cells that repeat the throughput", "", "the paper's table")
def printed_repeats(run: Run, of: str, among: list[str]) -> float:
    """Number of columns in `among` whose figure in this row is equal to the figure of column `of`."""
    return float(sum(_figure(run, column) == _figure(run, of) for column in among))


@measure("Throughput that window and RTT allow, divided by the printed throughput", "", "W x MSS / RTT")
def printed_window_rate(
    run: Run,
    window: str,
    rtt: str,
    throughput: str,
    rtt_unit_s: float,
    window_unit_bytes: float,
) -> float:
    """Rate of one window per RTT, divided by the printed throughput.

    If the ratio is below 1, the figures of the row contradict each other.

    `rtt_unit_s` is the unit of column `rtt`. `window_unit_bytes` is the unit of column `window`. The
    throughput is in Mbit/s.
    """
    seconds = _figure(run, rtt) * rtt_unit_s
    allowed = 8 * _figure(run, window) * window_unit_bytes / seconds / 1e6 if seconds > 0 else math.nan
    return allowed / _figure(run, throughput)
