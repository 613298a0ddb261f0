"""Rankings: controllers in the order of a measure's mean over all points of an experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from narrows import metrics
from narrows.report.encode import ALGORITHM, algorithms, axis
from narrows.report.figure import Figure, Panel, inline
from narrows.report.intervals import CUT_WHISKERS, Frame, legible, possible, reach, within
from narrows.report.style import GREY, INK, PAPER, look
from narrows.results.factors import Factor
from narrows.results.measures import find_measure, measure_run
from narrows.results.runs import PAPER as PAPER_TABLE
from narrows.results.runs import Run, Runs
from narrows.studies.model import FigureSpec

_LABEL = 0.12
"""Width of a label, as a part of the axis."""


@dataclass(frozen=True)
class Place:
    """A controller in a ranking."""

    algorithm: str
    interval: metrics.Interval
    """The mean over all points, with its interval over seeds."""
    best: int
    """Best place (1 is the first) that the intervals allow for the controller. `worst` is the worst place."""
    worst: int


def places(runs: Runs, column: Mapping[str, Any], without: Sequence[str] = ()) -> list[Place]:
    """Controllers from the best to the worst by one measure.

    Args:
        runs: runs of an experiment.
        column: y (measure), measure (arguments), less (whether less is better), where (values of factors, to
            select points), harm (a value of the factor `algorithm`: the measure is then the harm relative to
            the runs with this value, MET-35).
        without: controllers to leave out.
    """
    found: dict[str, metrics.Interval] = {}
    runs = runs.where(column.get("where", {}))
    alone = _alone(runs, column)
    for name in algorithms(runs):
        if name in without:
            continue
        by_seed: dict[int, list[float]] = {}
        for run in runs.where({ALGORITHM: name}):
            by_seed.setdefault(run.seed, []).append(_value(run, alone, column))
        # If the measure is undefined at one point, the controller has no mean, because a mean over the other
        # points would be biased.
        interval = metrics.mean_ci([sum(values) / len(values) for values in by_seed.values()])
        if not math.isnan(interval.mean):
            found[name] = interval
    sign = 1.0 if column.get("less") else -1.0
    ranked = sorted(found, key=lambda name: sign * found[name].mean)
    return [
        Place(
            name,
            found[name],
            1 + sum(_apart(found[other], found[name], sign) for other in ranked),
            len(ranked) - sum(_apart(found[name], found[other], sign) for other in ranked),
        )
        for name in ranked
    ]


def _apart(better: metrics.Interval, worse: metrics.Interval, sign: float) -> bool:
    """Whether one interval is entirely on the better side of another."""
    if better.n < 2 or worse.n < 2:
        return sign * better.mean < sign * worse.mean
    return better.high < worse.low if sign > 0 else better.low > worse.high


_Point = tuple[frozenset[tuple[str, Factor]], int]
"""All factors of a run except the controller, and the run's seed."""


def _point(run: Run) -> _Point:
    return frozenset(item for item in run.factors.items() if item[0] != ALGORITHM), run.seed


def _alone(runs: Runs, column: Mapping[str, Any]) -> dict[_Point, float]:
    """The measure at each point, in the runs to which the harm is relative (empty: no harm is requested)."""
    if "harm" not in column:
        return {}
    return {_point(run): _measured(run, column) for run in runs.where({ALGORITHM: str(column["harm"])})}


def _value(run: Run, alone: Mapping[_Point, float], column: Mapping[str, Any]) -> float:
    value = _measured(run, column)
    if "harm" not in column:
        return value
    return metrics.harm(alone.get(_point(run), math.nan), value, more_is_better=True)


def _measured(run: Run, column: Mapping[str, Any]) -> float:
    return measure_run(str(column["y"]), run, **dict(column.get("measure", {}))).value


def column_title(column: Mapping[str, Any]) -> str:
    """The title of a column."""
    measure = find_measure(str(column["y"]))
    if "title" in column:
        return str(column["title"])
    return f"{measure.title} ({measure.unit})" if measure.unit else measure.title


def ranking(spec: FigureSpec, runs: Runs) -> Figure:
    """A panel per measure: controllers from the best (top) to the worst, with intervals over seeds.

    The study's args: columns (the keys that `places` reads, and: title; rule, a line to compare with; paper,
    a column of the paper's table, whose figures get a marker), without (controllers).
    """
    panels, cut, is_compared = [], False, False
    for column in spec.args["columns"]:
        ranked = places(runs, column, spec.args.get("without", []))
        if not ranked:
            continue
        labels = [look(place.algorithm).label for place in ranked]
        limits = possible(str(column["y"]), harm="harm" in column)
        data: list[dict[str, Any]] = [
            {
                "label": look(place.algorithm).label,
                "y": place.interval.mean,
                "lo": within(place.interval, limits)[0],
                "hi": within(place.interval, limits)[1],
                "n": place.interval.n,
                "t": _text(place.interval.mean),
                "c": look(place.algorithm).light,
                "at": f"{place.best}" if place.best == place.worst else f"{place.best} to {place.worst}",
            }
            for place in ranked
        ]
        colours = [str(row["c"]) for row in data]
        rule = float(column.get("rule", 0.0))
        printed = _printed(runs, ranked, str(column.get("paper", "")))
        is_compared = is_compared or bool(printed)
        high = (
            max(rule, *(row["p"] for row in printed), *(reach(row["y"], row["hi"], row["n"]) for row in data))
            or 1.0
        )
        low = min(0.0, *(row["y"] for row in data))
        high += _LABEL * (high - low)
        cut = Frame(low, high, _LABEL).end(data) or cut
        _make_room(data, printed, _LABEL * (high - low))
        base = alt.Chart(inline(data)).encode(
            y=alt.Y("label:N", sort=labels, title=None, axis=alt.Axis(domain=False, ticks=False, grid=False))
        )
        x = axis(
            "y",
            column_title(column),
            domain=[low, high + _LABEL * (high - low)],
            grid=True,
            **_ticks(low, high, limits),
        )
        colour = alt.Color("label:N", legend=None, scale=alt.Scale(domain=labels, range=colours))
        tips = [
            alt.Tooltip("label:N", title=" "),
            alt.Tooltip("y:Q", title=column_title(column), format=".4~g"),
            alt.Tooltip("lo:Q", title="95 % from", format=".4~g"),
            alt.Tooltip("hi:Q", title="to", format=".4~g"),
            alt.Tooltip("at:N", title="place"),
            alt.Tooltip("n:Q", title="seeds"),
        ]
        layers: list[Any] = [
            base.mark_bar(size=11, opacity=0.85).encode(x=alt.X(**x), color=colour, tooltip=tips),
            base.mark_rule(color=INK, strokeWidth=1.4).encode(x="from:Q", x2="upto:Q"),
            *legible(base.encode(x="at:Q", text="t:N"), align="left", dx=5, fontSize=10.5),
        ]
        if printed:
            mark = alt.Chart(inline(printed)).mark_point(
                shape="diamond", size=42, filled=True, color=PAPER, stroke=INK, strokeWidth=1.3, opacity=1
            )
            layers.append(
                mark.encode(
                    x=alt.X("p:Q"),
                    y=alt.Y("label:N", sort=labels),
                    tooltip=[alt.Tooltip("label:N", title=" "), alt.Tooltip("p:Q", title="the paper")],
                )
            )
        if rule:
            line = alt.Chart(inline([{"r": rule}]))
            layers.append(line.mark_rule(color=GREY, strokeDash=[3, 3]).encode(x="r:Q"))
        panels.append(Panel(column_title(column), alt.layer(*layers), height=19 * len(ranked) + 12))
    note = " Diamonds are the paper's figures." if is_compared else ""
    return Figure(spec.id, spec.title, spec.caption + note + (CUT_WHISKERS if cut else ""), panels)


def _make_room(data: Sequence[dict[str, Any]], printed: Sequence[dict[str, Any]], room: float) -> None:
    """Change rows in place: a label that a paper's marker would cover moves to the right of the marker."""
    markers = {row["label"]: row["p"] for row in printed}
    for row in data:
        at = markers.get(row["label"], math.inf)
        if 0 <= at - row["at"] <= room:
            row["at"] = at


def _printed(runs: Runs, ranked: Sequence[Place], column: str) -> list[dict[str, Any]]:
    """The paper's figure of each controller, if runs have it."""
    found = []
    for place in ranked:
        run = runs.where({ALGORITHM: place.algorithm})[0]
        values = run.tables.get(PAPER_TABLE, {})
        if column in values:
            found.append({"label": look(place.algorithm).label, "p": float(values[column][0])})
    return found


def _ticks(low: float, high: float, limits: tuple[float, float]) -> dict[str, Any]:
    """Removes the ticks outside the range of the measure, because labels are there."""
    if limits[1] != 1.0 or high < 0.8:
        return {}
    return {"values": [i / 5 for i in range(math.ceil(5 * low), 6)]}


def _text(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
