"""Tables of measures by algorithm, next to a paper's values if the paper has such a table."""

from __future__ import annotations

import math

from narrows import metrics
from narrows.report.claims import number
from narrows.report.encode import ALGORITHM, algorithms
from narrows.report.style import look
from narrows.report.tables import DASH, PLUS_MINUS, Cell, Column, Table
from narrows.results.factors import Factor
from narrows.results.measures import find_measure, measure_run
from narrows.results.runs import PRINTED, Runs
from narrows.studies.model import TableColumn, TableSpec
from narrows.studies.runner import Outcome

_LAST_DIGIT = 5e-4
"""A mean is printed with three digits. Half a unit of the third digit is at least this part of the mean."""


def paper_table(spec: TableSpec, outcome: Outcome) -> Table | None:
    """A row for each value of the table's factor. Values that were run on real stacks have a second row.

    Each column of the paper becomes two columns: one with the paper's values and one with ours.

    The result is None if the experiment was not run, or if the table has no rows.
    """
    runs = outcome.runs.get(spec.experiment)
    if runs is None:
        return None
    columns = [Column("", number=False)]
    for column in spec.columns:
        unit = find_measure(column.measure).unit
        if _has_paper(column):
            columns += [Column(column.title, "paper"), Column("", f"measured{f', {unit}' if unit else ''}")]
        else:
            columns.append(Column(column.title, unit))
    rows = _rows(spec, outcome, runs.where(spec.where), "")
    real = outcome.real.runs.get(spec.experiment) if outcome.real is not None else None
    if outcome.real is not None and real is not None:
        rows += _rows(spec, outcome, real.where(spec.where), f", {outcome.real.side}")
    notes = [spec.caption] if spec.caption else []
    return Table(spec.title, columns, rows, notes) if rows else None


def _rows(spec: TableSpec, outcome: Outcome, runs: Runs, where: str) -> list[list[Cell]]:
    """A row for each value of the table's factor in these runs. The label of a row ends with `where`."""
    rows = []
    for name in algorithms(runs) if spec.rows == ALGORITHM else runs.values(spec.rows):
        if not _has_row(spec, str(name), outcome):
            continue
        label = look(str(name)).label if spec.rows == ALGORITHM else str(name)
        cells = [Cell(f"{label}{where}")]
        for column in spec.columns:
            if _has_paper(column):
                paper = _paper(spec, column, str(name), outcome)
                cells.append(Cell(DASH if paper is None else _text(paper)))
            cells.append(_measured(column, runs, spec.rows, name))
        rows.append(cells)
    return rows


def _has_paper(column: TableColumn) -> bool:
    return bool(column.paper or column.printed)


def _has_row(spec: TableSpec, name: str, outcome: Outcome) -> bool:
    """Whether the paper has a value in the row. Always true if the table contains no values of a paper."""
    of_paper = [column for column in spec.columns if _has_paper(column)]
    return not of_paper or any(_paper(spec, column, name, outcome) is not None for column in of_paper)


def _paper(spec: TableSpec, column: TableColumn, name: str, outcome: Outcome) -> float | str | None:
    """The paper's value in a row (None: the paper has none)."""
    if not column.printed:
        return column.paper.get(name)
    for run in outcome.runs.get(spec.printed, Runs([])):
        if str(run.factors.get(spec.rows)) == name and column.printed in run.tables[PRINTED]:
            return float(run.tables[PRINTED][column.printed][0])
    return None


def mean_of(column: TableColumn, runs: Runs, factor: str, name: Factor) -> metrics.Interval:
    """The mean over seeds of a column's measure in a row, with its 95 % interval."""
    chosen = runs.where({**column.where, factor: name})
    return metrics.mean_ci([measure_run(column.measure, run, **column.args).value for run in chosen])


def _measured(column: TableColumn, runs: Runs, factor: str, name: Factor) -> Cell:
    """The mean over seeds, with the half width of its 95 % interval."""
    interval = mean_of(column, runs, factor, name)
    if math.isnan(interval.mean):
        return Cell(DASH)
    # The mean has three digits. Leave out an interval whose half width is below half of the last digit.
    known = interval.half_width >= _LAST_DIGIT * abs(interval.mean) and interval.half_width > 0
    half = f"{PLUS_MINUS}\N{NO-BREAK SPACE}{number(interval.half_width)}" if known else ""
    return Cell(number(interval.mean), half)


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)
