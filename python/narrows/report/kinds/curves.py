"""Curves that a model computed: columns of the table `computed` over another column."""

from __future__ import annotations

from typing import Any

import altair as alt

from narrows.report.encode import ALGORITHM, algorithms, axis, colour, dash, first_seed, keys
from narrows.report.figure import Figure, Panel, inline
from narrows.report.series import rows
from narrows.report.style import look
from narrows.results.runs import COMPUTED, Runs
from narrows.studies.model import FigureSpec


def curves(spec: FigureSpec, runs: Runs) -> Figure:
    """A line per algorithm in a panel per column.

    The study's args: x (column), x_title, y_title, columns (maps the title of each panel to its column).
    """
    args = spec.args
    names = algorithms(runs)
    looks = [look(name) for name in names]
    columns = {str(title): str(column) for title, column in args["columns"].items()}
    taken = [(str(run.factors[ALGORITHM]), run) for run in first_seed(runs)]
    everything = [run.column(COMPUTED, column) for _, run in taken for column in columns.values()]
    domain = [min(float(y.min()) for y in everything), max(float(y.max()) for y in everything)]
    panels = []
    for i, (title, column) in enumerate(columns.items()):
        values: list[dict[str, Any]] = []
        for name, run in taken:
            values += rows(x=run.column(COMPUTED, str(args["x"])), y=run.column(COMPUTED, column), s=name)
        chart = (
            alt.Chart(inline(values))
            .mark_line(strokeWidth=1.8)
            .encode(
                x=alt.X(**axis("x", str(args["x_title"]), grid=False)),
                y=alt.Y(**axis("y", str(args["y_title"]), domain=domain)),
                color=colour(names, looks),
                strokeDash=dash(names, looks),
            )
        )
        panels.append(Panel(f"({chr(97 + i)}) {title}", chart))
    return Figure(spec.id, spec.title, spec.caption, panels, keys(names))
