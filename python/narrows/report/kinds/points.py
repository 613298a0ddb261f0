"""One figure over all points of a sweep: goodput of the flows and queueing delay of the bottleneck links.

The horizontal axis is a numeric factor. If no numeric factor has enough values, points are rows.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from narrows import units
from narrows.errors import Expected
from narrows.report.encode import LEAST_FOR_A_BAND, NO_BANDS, axis, bands, colour, dash, factor_axis, shape
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.intervals import CUT_WHISKERS, Frame, reach
from narrows.report.series import rows
from narrows.report.spread import spread
from narrows.report.style import DARK_OF, FAINT, GREY, Look, look, looks_of
from narrows.results import summary
from narrows.results.figures import SAMPLED
from narrows.results.summary import Figure as Mean
from narrows.results.summary import Row

MOST_SERIES = 12
"""Largest number of lines in a panel. Readers could not distinguish more lines."""
MOST_POINTS = 80
"""Largest number of points that are drawn as rows below each other."""
LEAST_VALUES = 3
"""Smallest number of values of a factor that is drawn as a line."""
_DECADE = 20.0
"""A factor has a logarithmic axis if its largest value is more than this many times its smallest value."""
_LEAST_SERIES = 4
"""A factor with at least this many values that form a geometric series also has a logarithmic axis."""


@dataclass(frozen=True)
class _Mark:
    """A mean at a point of the sweep."""

    factors: dict[str, Any]
    series: str
    kind: str
    """The controller that decides the colour (empty: there are several controllers)."""
    value: Mean


@dataclass(frozen=True)
class _Axis:
    """A factor as an axis."""

    factor: str
    unit: str
    values: dict[Any, float]
    """The factor's values as in the scenario, each with its number on the axis."""

    @property
    def title(self) -> str:
        return f"{self.factor} ({self.unit})" if self.unit else self.factor

    @property
    def log(self) -> bool:
        low, high = min(self.values.values()), max(self.values.values())
        return low > 0 and (high / low > _DECADE or self._is_geometric)

    @property
    def _is_geometric(self) -> bool:
        """Whether the sorted values grow by a constant factor of at least 2.

        On a linear axis, the smallest of such values would be too close to each other.
        """
        steps = sorted(set(self.values.values()))
        ratios = [after / before for before, after in itertools.pairwise(steps)]
        return len(steps) >= _LEAST_SERIES and min(ratios) >= 2 and max(ratios) <= 1.01 * min(ratios)


def overview(flows: Sequence[Row], links: Sequence[Row]) -> list[Figure]:
    """The figure over all points of a sweep. Empty if there is nothing to draw."""
    kinds = _kinds(flows)
    goodput = [_Mark(row.factors, row.name, row.cc, _scaled(row, "goodput_bps", 1e-6)) for row in flows]
    delay = [
        _Mark(row.factors, row.name, kinds.get(_point(row.factors), ""), _scaled(row, "sojourn_p95_s", 1e3))
        for row in links
    ]
    named = [(SAMPLED["goodput_bps"].axis, goodput), ("Queueing delay, p95 (ms)", delay)]
    named = [(title, _known(marks)) for title, marks in named]
    named = [(title, marks) for title, marks in named if marks]
    if not named:
        return []
    chosen = _numeric(flows or links)
    if chosen is not None:
        lines = [(title, _as_series(marks, chosen.factor)) for title, marks in named]
        if all(len({mark.series for mark in marks}) <= MOST_SERIES for _, marks in lines):
            return [_over_factor(lines, chosen)]
    return [_below_each_other(named)]


def _known(marks: list[_Mark]) -> list[_Mark]:
    return [mark for mark in marks if not math.isnan(mark.value.mean)]


def _scaled(row: Row, name: str, by: float) -> Mean:
    figure = row.figures[name]
    return Mean(figure.mean * by, figure.half * by, figure.seeds)


def _point(factors: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(factors.values())


def _kinds(flows: Sequence[Row]) -> dict[tuple[Any, ...], str]:
    """The controller of each point at which all flows have the same controller."""
    found: dict[tuple[Any, ...], set[str]] = {}
    for row in flows:
        found.setdefault(_point(row.factors), set()).add(row.cc)
    return {point: next(iter(names)) for point, names in found.items() if len(names) == 1}


def _numeric(points: Sequence[Row]) -> _Axis | None:
    """The numeric factor with the most values; None if none has `LEAST_VALUES` values."""
    best: _Axis | None = None
    for factor in points[0].factors if points else []:
        found = _numbers(factor, list(dict.fromkeys(row.factors[factor] for row in points)))
        if found and len(found.values) >= LEAST_VALUES and (not best or len(found.values) > len(best.values)):
            best = found
    return best


_UNITS: list[tuple[str, float, Callable[[object], float]]] = [
    ("Mbit/s", 1e-6, units.parse_rate),
    ("ms", 1e-6, units.parse_duration),
    ("kB", 1e-3, units.parse_size),
    ("%", 100.0, units.parse_probability),
]


def _numbers(factor: str, values: list[Any]) -> _Axis | None:
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return _Axis(factor, "", {value: float(value) for value in values})
    texts = [re.fullmatch(r"([\d.]+)\s*([a-zA-Z%]*)", str(value)) for value in values]
    suffixes = {text[2] for text in texts if text}
    if all(texts) and len(suffixes) == 1:
        return _Axis(
            factor, suffixes.pop(), {v: float(t[1]) for v, t in zip(values, texts, strict=True) if t}
        )
    for unit, scale, parse in _UNITS:
        try:
            return _Axis(factor, unit, {value: scale * float(parse(value)) for value in values})
        except Expected:
            continue
    return None


def _as_series(marks: list[_Mark], x: str) -> list[_Mark]:
    """Add to each mark's series all properties that distinguish the mark from other marks at the same x."""
    varied = [
        name
        for name in marks[0].factors
        if name != x and len({str(mark.factors.get(name)) for mark in marks}) > 1
    ]
    # The names of flows contain the controller, unless the scenario names the flows.
    controllers = {(mark.series, mark.kind) for mark in marks}
    ambiguous = len(controllers) > len({name for name, _ in controllers})
    renamed = []
    for mark in marks:
        extra = [look(mark.kind).label] if ambiguous and mark.kind else []
        extra += [
            f"{_short(name)} {summary.point_text(mark.factors[name])}"
            for name in varied
            if str(mark.factors[name]) != mark.kind
        ]
        renamed.append(_Mark(mark.factors, ", ".join([mark.series, *extra]), mark.kind, mark.value))
    return renamed


def _short(factor: str) -> str:
    """The last part of a factor's dotted key."""
    return factor.rpartition(".")[2]


def _looks(marks: Sequence[_Mark]) -> tuple[list[str], list[Look]]:
    """Series in order of appearance, and the look of each."""
    kinds: dict[str, str] = {}
    for mark in marks:
        if kinds.setdefault(mark.series, mark.kind) != mark.kind:
            kinds[mark.series] = ""
    names = list(kinds)
    return names, looks_of([kinds[name] or f"link-{i}" for i, name in enumerate(names)])


def _over_factor(named: list[tuple[str, list[_Mark]]], x: _Axis) -> Figure:
    """A line per series against the factor."""
    panels, legends, few = [], [], False
    scale = factor_axis("x", x.title, list(x.values.values()), log=x.log, grid=False)
    for i, (title, marks) in enumerate(named):
        names, looks = _looks(marks)
        values = [
            row
            for mark in marks
            for row in rows(
                x=[x.values[mark.factors[x.factor]]],
                s=mark.series,
                band=_banded(mark),
                **_interval(mark.value),
            )
        ]
        few = few or not all(_banded(mark) for mark in marks)
        top = max((row["hi"] if row["band"] else row["y"] for row in values), default=1.0) or 1.0
        base = alt.Chart(inline(values)).encode(x=alt.X(**scale), color=colour(names, looks))
        y = axis("y", title, domain=[0, top * 1.06])
        chart = alt.layer(
            *bands(base, values, y, opacity=0.14),
            base.mark_line(strokeWidth=2).encode(y=alt.Y(**y), strokeDash=dash(names, looks)),
            base.mark_point(filled=True, size=48, opacity=1).encode(
                y=alt.Y(**y), shape=shape(names, looks), tooltip=_tips(title, x.title)
            ),
        )
        panels.append(Panel(f"({chr(97 + i)}) {title.rpartition(' (')[0]}", chart))
        legends += [Key(name, item, marks=True) for name, item in zip(names, looks, strict=True)]
    caption = f"Means over seeds against `{x.factor}`. Bands are 95 % confidence intervals."
    caption += NO_BANDS if few else ""
    return Figure("points", f"All points over {x.factor}", caption, panels, legends)


def _below_each_other(named: list[tuple[str, list[_Mark]]]) -> Figure:
    """A row per point of the sweep, a dot per flow or link."""
    points = {_label(mark.factors): mark.factors for _, marks in named for mark in marks}
    every = list(points)
    order = [every[i] for i in spread(list(points.values()), MOST_POINTS)]
    left_out = len(every) - len(order)
    panels: list[Panel] = []
    legend: dict[str, Key] = {}
    alike: dict[int, list[str]] = {}
    cut = False
    for i, (title, all_marks) in enumerate(named):
        marks = [mark for mark in all_marks if _label(mark.factors) in order]
        kinds = list(dict.fromkeys(mark.kind or mark.series for mark in marks))
        looks = [look(kind) for kind in kinds]
        fills = _fills(marks)
        for mark, fill in zip(marks, fills, strict=True) if any(fills) else ():
            alike.setdefault(fill, []).append(mark.series)
        legend |= {kind: Key(item.label, item, marks=True) for kind, item in zip(kinds, looks, strict=True)}
        values = [
            row
            for mark, fill in zip(marks, fills, strict=True)
            for row in rows(
                p=[_label(mark.factors)],
                s=mark.kind or mark.series,
                name=mark.series,
                fill=_OPACITIES[fill],
                n=mark.value.seeds,
                **_interval(mark.value),
            )
        ]
        top = 1.06 * (max((reach(row["y"], row["hi"], row["n"]) for row in values), default=1.0) or 1.0)
        cut = Frame(0.0, top, 0.0).end(values) or cut
        x = axis("y", title, domain=[0, top])
        y = alt.Y(
            "p:N",
            sort=order,
            title=None,
            axis=alt.Axis(
                grid=True, gridColor=FAINT, domain=False, ticks=False, labels=i == 0, labelLimit=260
            ),
        )
        base = alt.Chart(inline(values)).encode(y=y, color=colour(kinds, looks))
        chart = alt.layer(
            base.mark_rule(strokeWidth=1.6, opacity=0.6).encode(
                x=alt.X(**{**x, "shorthand": "from:Q"}), x2="upto:Q"
            ),
            base.mark_point(filled=False, size=60, opacity=0.9).encode(
                x=alt.X(**x),
                fill=alt.Fill("s:N", scale=alt.Scale(domain=kinds, range=[item.light for item in looks])),
                fillOpacity=alt.FillOpacity("fill:Q", scale=None),
                shape=shape(kinds, looks),
                tooltip=[alt.Tooltip("p:N", title=" "), alt.Tooltip("name:N", title=" "), *_tips(title)],
            ),
        )
        panels.append(
            Panel(f"({chr(97 + i)}) {title.rpartition(' (')[0]}", chart, height=max(90, 26 * len(order)))
        )
    caption = (
        "Each row is a point of the sweep. A dot is the mean of a flow or link over seeds, "
        "with its 95 % confidence interval."
    )
    caption += CUT_WHISKERS if cut else ""
    if len(alike) > 1:
        said = [f"{_FILLS[fill]}: {_named(alike[fill])}" for fill in sorted(alike)]
        caption += (
            " If several flows at a point have the same algorithm, their dots differ in fill: "
            f"{'; '.join(said)}."
        )
        legend |= {
            f"/{fill}": Key(
                _named(alike[fill]), Look("", GREY, DARK_OF[GREY]), marks=True, fill=_OPACITIES[fill]
            )
            for fill in sorted(alike)
        }
    if left_out > 0:
        caption += f" The figure shows {len(order)} of {len(every):,} points; the table has all of them."
    return Figure("points", "All points", caption, panels, list(legend.values()))


_OPACITIES = (1.0, 0.0, 0.4)
_FILLS = ("filled", "open", "half filled")
_MOST_NAMES = 3


def _fills(marks: Sequence[_Mark]) -> list[int]:
    """The number of each mark's fill.

    Marks of one controller at one point of the sweep get different fills.
    """
    seen: dict[tuple[str, str], int] = {}
    places = []
    for mark in marks:
        key = (_label(mark.factors), mark.kind or mark.series)
        places.append(min(seen.get(key, 0), len(_OPACITIES) - 1))
        seen[key] = seen.get(key, 0) + 1
    return places


def _named(series: Sequence[str]) -> str:
    """The names of the series as text: all names if they are few, otherwise the first two."""
    names = list(dict.fromkeys(series))
    return " or ".join(names) if len(names) <= _MOST_NAMES else f"{names[0]}, {names[1]} and so on"


def _label(factors: dict[str, Any]) -> str:
    return ", ".join(
        summary.point_text(value) if len(factors) == 1 else f"{_short(name)} {summary.point_text(value)}"
        for name, value in factors.items()
    )


def _banded(mark: _Mark) -> bool:
    return mark.value.seeds >= LEAST_FOR_A_BAND


def _interval(value: Mean) -> dict[str, Any]:
    half = 0.0 if math.isnan(value.half) else value.half
    return {"y": [value.mean], "lo": [max(0.0, value.mean - half)], "hi": [value.mean + half]}


def _tips(title: str, x_title: str = "") -> list[alt.Tooltip]:
    tips = [alt.Tooltip("s:N", title=" "), alt.Tooltip("x:Q", title=x_title)] if x_title else []
    return [
        *tips,
        alt.Tooltip("y:Q", title=title),
        alt.Tooltip("lo:Q", title="95 % from"),
        alt.Tooltip("hi:Q", title="to"),
    ]
