"""The overview of a study: measures of every algorithm in every experiment, as heat maps."""

from __future__ import annotations

import math

from narrows.report.encode import ALGORITHM
from narrows.report.figure import Figure, Key, Panel
from narrows.report.kinds.heat import PERCENT, Sides, Unit, Value, heat_panel, ramp
from narrows.report.paper import mean_of
from narrows.report.shade import Ramp
from narrows.report.style import Look, look, order
from narrows.results.measures import find_measure
from narrows.studies.model import OverviewPanel, TableColumn
from narrows.studies.runner import Outcome

LEAST = 1e-3
"""Smallest value on a logarithmic scale of shades."""


def overview(outcome: Outcome) -> Figure | None:
    """The overview of a study (None: the study has none, or no experiment of it ran).

    The values come from the experiments' tables.
    """
    spec = outcome.study.overview
    if spec is None:
        return None
    panels = [panel for item in spec.panels if (panel := _panel(item, outcome)) is not None]
    if not panels:
        return None
    scale = ramp(spec.panels[0].scale)
    names = (
        ("better", "neutral", "worse")
        if scale.low == spec.panels[0].scale[-1]
        else ("worse", "neutral", "better")
    )
    fills = [scale.fill(value) for value in (scale.low, scale.middle, scale.high)]
    keys = [Key(name, Look("", fill, fill), area=True) for name, fill in zip(names, fills, strict=True)]
    return Figure(spec.id, spec.title, spec.caption, panels, keys)


def _panel(item: OverviewPanel, outcome: Outcome) -> Panel | None:
    """The panel of one column of the tables: a row per experiment that has it, and a column per algorithm."""
    found: list[tuple[str, str, TableColumn, Value]] = []
    scale = _scale(item)
    for table in outcome.study.tables:
        runs = outcome.runs.get(table.experiment)
        column = next((column for column in table.columns if column.title == item.column), None)
        if runs is None or column is None or table.rows != ALGORITHM:
            continue
        title = f"{table.experiment} {outcome.study.experiment(table.experiment).title}"
        for name in map(str, runs.values(ALGORITHM)):
            interval = mean_of(column, runs.where(table.where), ALGORITHM, name)
            if not math.isnan(interval.mean):
                value = Value(
                    title,
                    look(name).label,
                    interval.mean,
                    interval.half_width,
                    _text(interval.mean, item),
                    math.log10(max(interval.mean, LEAST)) if item.log else None,
                )
                found.append((title, name, column, value))
    if not found:
        return None
    labels = [look(name).label for name in order([name for _, name, _, _ in found])]
    titles = list(dict.fromkeys(title for title, _, _, _ in found))
    unit = PERCENT if item.percent else Unit(find_measure(found[0][2].measure).unit)
    heading = f"{item.title} ({unit.name})" if unit.name else item.title
    return heat_panel(heading, Sides(titles, labels, "", ""), [value for *_, value in found], scale, unit)


def _scale(item: OverviewPanel) -> Ramp:
    ends = [math.log10(end) for end in item.scale] if item.log else item.scale
    return ramp(ends)


def _text(value: float, item: OverviewPanel) -> str:
    """A cell's number in at most five characters."""
    if item.percent:
        return f"{100 * value:.0f}"
    if max(item.scale) <= 1:
        # With fewer than three decimals, a fairness just below 1 would be printed as 1.
        return f"{value:.3f}" if value < 0.9995 else "1"
    if value == 0:
        return "0"
    if value >= 9_950:
        return f"{value / 1e3:.0f}k"
    digits = 0 if value >= 9.95 else 1 if value >= 0.95 else 2
    return f"{value:,.{digits}f}" if value >= 0.005 else "<0.01"
