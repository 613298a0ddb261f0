"""Heat maps: a value per row and column. Rows are controllers in the order of their families."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import altair as alt

from narrows import metrics
from narrows.report.encode import ALGORITHM, algorithms, panels_of
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.shade import DARK_TEXT, Ramp
from narrows.report.style import Look, look
from narrows.results.measures import find_measure, measure_run
from narrows.results.runs import Runs
from narrows.studies.model import FigureSpec

ROW_HEIGHT, COLUMN_WIDTH = 27, 44
"""Size of a cell in px. If there are many columns, they are narrower."""
_MORE_IS_BETTER = ("#7f2704", "#f7f7f7", "#08519c")
"""Colours for bad, neutral and good: brown to blue, which most colour-blind people can distinguish. The
colours are the same on a dark page, because the colour of a cell's text is chosen for the cell's background.
"""
_HARM = ("#6baed6", "#f7f7f7", "#7f2704")
"""Colours for harm below zero (a controller does better than alone), no harm, and complete loss."""


@dataclass(frozen=True)
class Unit:
    """Unit of the numbers in cells."""

    name: str = ""
    times: float = 1.0


PERCENT = Unit("%", 100.0)
SHARE = Ramp(0.0, 0.5, 1.0, _MORE_IS_BETTER)
HARM = Ramp(-1.0, 0.0, 1.0, _HARM)
FAIR = Ramp(0.5, 0.75, 1.0, _MORE_IS_BETTER)


@dataclass(frozen=True)
class Value:
    """A cell: row, column, mean, half the width of its interval, and its text."""

    row: str
    column: str
    mean: float
    half: float
    text: str
    level: float | None = None
    """The number that decides the shade, e.g. a logarithm (None: the mean)."""

    @property
    def shade(self) -> float:
        """The number that decides the shade."""
        return self.mean if self.level is None else self.level


@dataclass(frozen=True)
class Sides:
    """The rows from top to bottom, the columns from left to right, and the words for both in sentences."""

    rows: Sequence[str]
    columns: Sequence[str]
    down: str = "of"
    """Word before a row's name."""
    across: str = "against"
    """Word before a column's name."""
    frame: bool = False
    """Whether to frame cells whose row and column have the same name."""


def heat_map(
    identity: str,
    title: str,
    caption: str,
    sides: Sides,
    values: Sequence[Value],
    scale: Ramp,
    unit: Unit,
) -> Figure:
    """A heat map. Cells without a value are empty. The heading includes the unit."""
    panel = heat_panel(f"{title} ({unit.name})" if unit.name else title, sides, values, scale, unit)
    return Figure(identity, title, caption, [panel], _keys(scale, unit), columns=1)


def heat_panel(heading: str, sides: Sides, values: Sequence[Value], scale: Ramp, unit: Unit) -> Panel:
    """The panel of a heat map."""
    data = [
        {
            "r": value.row,
            "c": value.column,
            "f": scale.fill(value.shade),
            "m": unit.times * value.mean,
            "h": None if math.isnan(value.half) else unit.times * value.half,
            "t": value.text,
            "k": scale.text(value.shade),
        }
        for value in values
        if not math.isnan(value.mean)
    ]
    base = alt.Chart(inline(data)).encode(
        x=alt.X(
            "c:N",
            sort=list(sides.columns),
            title=sides.across,
            scale=alt.Scale(domain=list(sides.columns)),
            axis=alt.Axis(orient="top", labelAngle=-45, domain=False, ticks=False, grid=False),
        ),
        y=alt.Y(
            "r:N",
            sort=list(sides.rows),
            title=sides.down,
            scale=alt.Scale(domain=list(sides.rows)),
            axis=alt.Axis(domain=False, ticks=False, grid=False),
        ),
        tooltip=[
            alt.Tooltip("r:N", title=sides.down or " "),
            alt.Tooltip("c:N", title=sides.across or " "),
            alt.Tooltip("m:Q", title=heading, format=".3~f"),
            alt.Tooltip("h:Q", title="\N{PLUS-MINUS SIGN}", format=".2~f"),
        ],
    )
    cells = base.mark_rect(stroke="#ffffff", strokeWidth=1).encode(color=alt.Color("f:N", scale=None))
    text = base.mark_text(fontSize=10.5).encode(text="t:N", color=alt.Color("k:N", scale=None))
    layers = [cells, text]
    if sides.frame:
        layers.insert(
            1, base.transform_filter("datum.r === datum.c").mark_rect(filled=False, stroke=DARK_TEXT)
        )
    size = {
        "height": ROW_HEIGHT * max(1, len(sides.rows)),
        "width": COLUMN_WIDTH * max(1, len(sides.columns)),
    }
    return Panel(heading, alt.layer(*layers), **size)


def _keys(scale: Ramp, unit: Unit) -> list[Key]:
    """The legend of the shades: the ends of the scale, its middle, and the values halfway between them."""
    ends = (scale.low, scale.middle, scale.high)
    values = [ends[0], (ends[0] + ends[1]) / 2, ends[1], (ends[1] + ends[2]) / 2, ends[2]]
    name = f"\N{NO-BREAK SPACE}{unit.name}" if unit.name else ""
    words = [f"{_text(value, unit)}{name}" for value in values]
    labels = [f"{words[0]} and less", *words[1:4], f"{words[4]} and more"]
    fills = [scale.fill(value) for value in values]
    return [Key(label, Look("", fill, fill), area=True) for label, fill in zip(labels, fills, strict=True)]


def heat(spec: FigureSpec, runs: Runs) -> Figure:
    """The mean over seeds of a measure, for each controller at each point.

    The study's args: y (measure), measure (arguments), columns (factors), scale (bad, neutral, good), percent
    (whether fractions are written in percent), without (controllers).
    """
    args = spec.args
    names = [name for name in algorithms(runs) if name not in args.get("without", [])]
    points = [(title.partition(") ")[2] or title, group) for title, group in panels_of(runs, args["columns"])]
    unit = PERCENT if args.get("percent") else Unit(find_measure(str(args["y"])).unit)
    values = []
    for title, group in points:
        for name in names:
            found = [
                measure_run(str(args["y"]), run, **args.get("measure", {})).value
                for run in group.where({ALGORITHM: name})
            ]
            interval = metrics.mean_ci(found)
            if not math.isnan(interval.mean):
                text = _text(interval.mean, unit)
                values.append(Value(look(name).label, title, interval.mean, interval.half_width, text))
    sides = Sides([look(name).label for name in names], [title for title, _ in points], "", "")
    figure = heat_map(spec.id, spec.title, spec.caption, sides, values, ramp(args["scale"]), unit)
    return figure if values else replace(figure, panels=[])


def _text(value: float, unit: Unit) -> str:
    # A value without a unit is between 0 and 1 and gets two decimals, as in rankings and tables.
    return number_text(unit.times * value) if unit.name else f"{value:.2f}"


def number_text(value: float) -> str:
    """Two significant digits below ten, else a whole number. Zero has no minus sign."""
    text = f"{value:.0f}" if abs(value) >= 9.5 else f"{value:.2g}"
    return "0" if float(text) == 0 else text.replace("-", "\N{MINUS SIGN}")


def ramp(ends: Sequence[float]) -> Ramp:
    """The scale from bad through neutral to good; good may be the largest or the smallest value."""
    bad, neutral, good = (float(end) for end in ends)
    if bad < good:
        return Ramp(bad, neutral, good, _MORE_IS_BETTER)
    return Ramp(good, neutral, bad, (_MORE_IS_BETTER[2], _MORE_IS_BETTER[1], _MORE_IS_BETTER[0]))
