"""Shares of goodput: groups of flows as parts of one bar per controller."""

from __future__ import annotations

from typing import Any

import altair as alt

from narrows import metrics
from narrows.report.encode import ALGORITHM, algorithms, axis, panels_of
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.intervals import Frame, legible, possible, within
from narrows.report.series import rows
from narrows.report.style import INK, Look, look, shades
from narrows.results.measures import measure_run
from narrows.results.runs import Runs
from narrows.studies.model import FigureSpec

_LABEL = 0.08
"""Height of a bar's label, as a part of the panel's height."""


def split(spec: FigureSpec, runs: Runs) -> Figure:
    """Stacked shares of the goodput of groups of flows: a bar per controller, means over seeds.

    The study's args: parts (maps labels to patterns of flows, from the bottom), panels. Whiskers are the 95 %
    interval of the lowest part. The dashed line is the share of the lowest part if all parts were equal.
    """
    parts = {str(label): str(pattern) for label, pattern in spec.args["parts"].items()}
    drawn = panels_of(runs, spec.args.get("panels"))
    panels = [Panel(title, _bars(group, parts), height=210) for title, group in drawn]
    legend = [
        Key(label, item, area=True) for label, item in zip(parts, shades("rate", len(parts)), strict=True)
    ]
    return Figure(spec.id, spec.title, spec.caption, panels, legend)


def _bars(runs: Runs, parts: dict[str, str]) -> alt.LayerChart | alt.FacetChart:
    names = algorithms(runs)
    values: list[dict[str, Any]] = []
    tops: list[dict[str, Any]] = []
    looks: dict[str, Look] = {}
    for name in names:
        chosen = runs.where({ALGORITHM: name})
        for i, (label, item) in enumerate(zip(parts, shades(name, len(parts)), strict=True)):
            found = [measure_run("share", run, of=parts[label]).value for run in chosen]
            interval = metrics.mean_ci(found)
            key = f"{name} {label}"
            looks[key] = item
            values += rows(y=[interval.mean], s=key, part=label, label=look(name).label, i=i, n=interval.n)
            if i == 0:
                low, high = within(interval, possible("share"))
                tops += rows(
                    y=[interval.mean],
                    lo=[low],
                    hi=[high],
                    label=look(name).label,
                    text=f"{100 * interval.mean:.0f}",
                )
    x = alt.X(
        "label:N",
        sort=[look(name).label for name in names],
        title=None,
        axis=alt.Axis(labelAngle=0, ticks=False, labelLimit=90, labelExpr="split(datum.label, ', ')"),
    )
    y = axis("y", "Share of the goodput", domain=[0, 1], format="%", grid=False)
    colours = alt.Color(
        "s:N",
        scale=alt.Scale(domain=list(looks), range=[item.light for item in looks.values()]),
        legend=None,
    )
    tips = [
        alt.Tooltip("label:N", title=" "),
        alt.Tooltip("part:N", title="flows"),
        alt.Tooltip("y:Q", title="share", format=".3f"),
        alt.Tooltip("n:Q", title="seeds"),
    ]
    stacked = (
        alt.Chart(inline(values))
        .mark_bar(size=26, opacity=0.9)
        .encode(x=x, y=alt.Y(**{**y, "stack": "zero"}), color=colours, order=alt.Order("i:Q"), tooltip=tips)
    )
    even = (
        alt.Chart(inline([{"y": 1 / len(parts)}]))
        .mark_rule(color=INK, strokeDash=[4, 3], opacity=0.8)
        .encode(y="y:Q")
    )
    Frame(0.0, 1.0, _LABEL).end(tops)
    base = alt.Chart(inline(tops)).encode(x=x)
    whiskers = base.mark_rule(color=INK, strokeWidth=1.4).encode(y="from:Q", y2="upto:Q")
    text = legible(base.encode(y="at:Q", text="text:N"), dy=-5, fontSize=11, baseline="bottom")
    return alt.layer(stacked, even, whiskers, *text)
