"""Figures that compare a measure between controllers: over a factor, as bars, or per joining flow."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from narrows import metrics
from narrows.packets import FULL_PACKET, MSS
from narrows.report.encode import (
    ALGORITHM,
    LEAST_FOR_A_BAND,
    NO_BANDS,
    NUMBERS,
    algorithms,
    axis,
    bands,
    colour,
    dash,
    factor_axis,
    factor_text,
    keys,
    note_cut,
    number,
    panels_of,
    shape,
)
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.intervals import CUT_WHISKERS, Frame, legible, possible, reach, within
from narrows.report.series import rows, short
from narrows.report.style import FAINT, GREY, INK, look, neutral
from narrows.results.measures import find_measure, measure_run
from narrows.results.measures.general import join_times
from narrows.results.runs import Runs
from narrows.studies.model import FigureSpec


def _axis_title(spec: FigureSpec, factor: float) -> str:
    measure = find_measure(str(spec.args["y"]))
    unit = "%" if factor == 100.0 else measure.unit
    return f"{measure.title} ({unit})" if unit else measure.title


_MOST_BARS = 8
"""Largest number of bars whose labels do not overlap in a panel of normal width."""
_LABEL_CHARACTER = 6.0
"""Approximate width of a character of a bar's label, in px."""
_LABEL = 0.08
"""Height of a bar's label, as a part of the panel's height."""


def lines(spec: FigureSpec, runs: Runs) -> Figure:
    """A measure over a factor: a line per controller with a band for the confidence interval.

    The study's args: x (factor), y (measure), panels, x_log, x_percent, x_scale, x_title, y_from, y_to,
    measure (arguments), bound ({capacity_mbit, eta}: the bound eta C (1448/1500) (1 - x), drawn in grey).
    """
    args = spec.args
    names = algorithms(runs)
    looks = [look(name) for name in names]
    scale = 100.0 if args.get("x_percent") else float(args.get("x_scale", 1.0))
    usual = "Random loss (%)" if args["x"] == "loss" else str(args["x"]).capitalize()
    x_title = str(args.get("x_title", usual))
    ticks = [scale * number(value) for value in runs.values(args["x"])]
    x = factor_axis("x", x_title, ticks, log=bool(args.get("x_log")), grid=False)
    panels, values_by_panel, top, few = [], [], 0.0, False
    for title, group in panels_of(runs, args.get("panels")):
        values: list[dict[str, Any]] = []
        for key, case in group.cases().items():
            factors = dict(key)
            found = [measure_run(str(args["y"]), run, **args.get("measure", {})).value for run in case]
            interval = metrics.mean_ci(found)
            low, high = within(interval, possible(str(args["y"])))
            banded = interval.n >= LEAST_FOR_A_BAND
            few = few or not banded
            top = max(top, reach(interval.mean, high, interval.n))
            values += rows(
                x=[scale * number(factors[args["x"]])],
                y=[interval.mean],
                lo=[low],
                hi=[high],
                s=str(factors[ALGORITHM]),
                n=interval.n,
                band=banded,
                label=look(str(factors[ALGORITHM])).label,
            )
        values_by_panel.append((title, sorted(values, key=lambda row: (names.index(row["s"]), row["x"]))))
    y_title = _axis_title(spec, 1.0)
    domain = [float(args.get("y_from", 0)), float(args.get("y_to", top * 1.04))]
    y = axis("y", y_title, domain=domain)
    caption = spec.caption + (NO_BANDS if few else "")
    caption += note_cut((row["y"] for _, values in values_by_panel for row in values), *domain)
    for title, values in values_by_panel:
        base = alt.Chart(inline(values)).encode(x=alt.X(**x), color=colour(names, looks))
        tips = [
            alt.Tooltip("label:N", title=" "),
            alt.Tooltip("x:Q", title=x_title),
            alt.Tooltip("y:Q", title=y_title),
            alt.Tooltip("lo:Q", title="95 % from"),
            alt.Tooltip("hi:Q", title="to"),
            alt.Tooltip("n:Q", title="seeds"),
        ]
        layers: list[Any] = []
        bound = args.get("bound")
        if bound:
            grid = sorted({row["x"] for row in values})
            capacity = float(bound["capacity_mbit"]) * float(bound.get("eta", 1.0)) * MSS / FULL_PACKET
            ideal = inline(rows(x=grid, y=[capacity * (1 - at / scale) for at in grid]))
            layers.append(
                alt.Chart(ideal)
                .mark_line(color=GREY, opacity=0.45, strokeWidth=5)
                .encode(x=alt.X(**x), y=alt.Y(**y))
            )
        cut = "y_to" in args
        layers += [
            *bands(base, values, y, opacity=0.16, clip=cut),
            base.mark_line(strokeWidth=2, clip=cut).encode(y=alt.Y(**y), strokeDash=dash(names, looks)),
            base.mark_point(filled=True, size=52, opacity=1, clip=cut).encode(
                y=alt.Y(**y), shape=shape(names, looks), tooltip=tips
            ),
        ]
        panels.append(Panel(title, alt.layer(*layers)))
    legend = keys(names, marks=True)
    if args.get("bound"):
        legend.append(Key("bound of the allocation", neutral(GREY), area=True))
    return Figure(spec.id, spec.title, caption, panels, legend)


def bars(spec: FigureSpec, runs: Runs) -> Figure:
    """A measure per controller with its confidence interval: bars if the axis starts at zero, else points.

    The study's args: y (measure), panels, y_from, y_to, y_log, y_percent, y_title, measure (arguments), rule
    and rule_label (a line to compare with).
    """
    args = spec.args
    scale = 100.0 if args.get("y_percent") else 1.0
    log = bool(args.get("y_log"))
    floor = float(args.get("y_from", 0.0)) * scale
    found: list[tuple[str, list[dict[str, Any]]]] = []
    top, least = floor, math.inf
    for title, group in panels_of(runs, args.get("panels")):
        values: list[dict[str, Any]] = []
        for name in algorithms(group):
            taken = [
                measure_run(str(args["y"]), run, **args.get("measure", {})).value * scale
                for run in group.where({ALGORITHM: name})
            ]
            interval = metrics.mean_ci(taken)
            if math.isnan(interval.mean):
                continue
            least_of, most_of = possible(str(args["y"]))
            low, high = within(interval, (least_of * scale, most_of * scale))
            if interval.mean > 0:
                least = min(least, interval.mean)
            top = max(top, reach(interval.mean, high, interval.n))
            values += rows(
                y=[interval.mean],
                lo=[low],
                hi=[high],
                s=name,
                label=look(name).label,
                n=interval.n,
                text=_number(interval.mean),
            )
        found.append((title, values))
    high = float(args["y_to"]) * scale if "y_to" in args else (top * (1.6 if log else 1.12) or 1.0)
    if log:
        floor = 10.0 ** math.floor(math.log10(max(1e-3, 0.7 * least if math.isfinite(least) else 1.0)))
    cut = Frame(floor, high, _LABEL, log).end([row for _, values in found for row in values])
    y_title = str(args.get("y_title", _axis_title(spec, scale)))
    panels = [
        Panel(title, _bars(values, y_title, floor, high, log, args), height=210)
        for title, values in found
        if values
    ]
    crowded = len(algorithms(runs)) > _MOST_BARS
    columns = 1 if crowded else 3 if len(panels) > 2 else 2
    caption = spec.caption + (CUT_WHISKERS if cut else "")
    return Figure(spec.id, spec.title, caption, panels, columns=columns)


def _bars(
    values: list[dict[str, Any]], title: str, low: float, high: float, log: bool, args: dict[str, Any]
) -> alt.LayerChart | alt.FacetChart:
    names = [row["s"] for row in values]
    looks = [look(name) for name in names]
    y = axis("v", title, log=log, domain=[low, high], format=NUMBERS)
    labels = [item.label for item in looks]
    # On a narrow page, e.g. on a phone, labels are inclined if they would overlap. In files, labels are never
    # inclined, because panels in files are wide enough. The expression recognises a page by its container:
    # charts in files have none.
    widest = max((len(part) for label in labels for part in label.split(", ")), default=0)
    narrow = f"isFinite(containerSize()[0]) && width < {len(labels) * (widest * _LABEL_CHARACTER + 4):.0f}"
    x = alt.X(
        "label:N",
        sort=labels,
        title=None,
        axis=alt.Axis(
            labelAngle=alt.ExprRef(f"{narrow} ? -40 : 0"),
            labelAlign=alt.ExprRef(f"{narrow} ? 'right' : 'center'"),
            labelBaseline="top",
            domain=low != 0,
            ticks=False,
            labelLimit=140,
            labelExpr=f"{narrow} ? datum.label : split(datum.label, ', ')",
        ),
    )
    base = alt.Chart(inline(values)).encode(x=x)
    tips = [
        alt.Tooltip("label:N", title=" "),
        alt.Tooltip("y:Q", title=title),
        alt.Tooltip("lo:Q", title="95 % from"),
        alt.Tooltip("hi:Q", title="to"),
        alt.Tooltip("n:Q", title="seeds"),
    ]
    layers: list[Any] = []
    if "rule" in args:
        mark = alt.Chart(inline([{"y": args["rule"], "t": args.get("rule_label", "")}]))
        layers.append(mark.mark_rule(color=GREY, strokeDash=[3, 3]).encode(y="y:Q"))
        layers.append(
            mark.mark_text(align="left", dx=4, dy=-6, color=GREY, fontSize=11).encode(
                y="y:Q", x=alt.value(0), text="t:N"
            )
        )
    standing = low == 0 and not log
    if standing:
        layers.append(
            base.mark_bar(size=34, opacity=0.9).encode(y=alt.Y(**y), color=colour(names, looks), tooltip=tips)
        )
    else:
        layers.append(
            base.mark_point(filled=True, size=90, opacity=1).encode(
                y=alt.Y(**y), color=colour(names, looks), shape=shape(names, looks), tooltip=tips
            )
        )
    layers.append(base.mark_rule(color=INK, strokeWidth=1.4).encode(y=alt.Y("from:Q"), y2="upto:Q"))
    # Raise the label if a marker is below it.
    layers += legible(
        base.encode(y=alt.Y("at:Q"), text="text:N"), dy=-4 if standing else -9, fontSize=11, baseline="bottom"
    )
    return alt.layer(*layers)


def _number(value: float) -> str:
    """The label of a bar, with three significant digits."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def convergence(spec: FigureSpec, runs: Runs) -> Figure:
    """Convergence time of each new flow in each seed (MET-61). The study's args: link, bin_s."""
    args = spec.args
    names = algorithms(runs)
    values: list[dict[str, Any]] = []
    for name in names:
        for run in runs.where({ALGORITHM: name}):
            times = join_times(run, str(args["link"]), "*", float(args.get("bin_s", 0.1)))
            for join, time in enumerate(times):
                values.append(
                    {
                        "y": short(time.seconds),
                        "s": name,
                        "label": look(name).label,
                        "open": time.censored,
                        "x": names.index(name)
                        + 0.5
                        + 0.5 * (join - (len(times) - 1) / 2) / max(1, len(times))
                        + 0.01 * (run.seed % 7 - 3),
                        "join": f"flow {join + 2}",
                        "seed": run.seed,
                        "text": str(time),
                    }
                )
    looks = [look(name) for name in names]
    labels = ", ".join(f"'{item.label}'" for item in looks)
    x = alt.X(
        "x:Q",
        title=None,
        scale=alt.Scale(domain=[0, len(names)], nice=False),
        axis=alt.Axis(
            values=[i + 0.5 for i in range(len(names))],
            labelExpr=f"[{labels}][floor(datum.value)]",
            grid=False,
            ticks=False,
        ),
    )
    y = alt.Y(
        "y:Q",
        title="Convergence time (s)",
        scale=alt.Scale(type="symlog", constant=0.1),
        axis=alt.Axis(values=[0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50], format=NUMBERS),
    )
    tips = [
        alt.Tooltip("label:N", title=" "),
        alt.Tooltip("join:N", title="newcomer"),
        alt.Tooltip("seed:Q"),
        alt.Tooltip("text:N", title="time"),
    ]
    base = alt.Chart(inline(values)).encode(
        x=x, y=y, color=colour(names, looks), shape=shape(names, looks), tooltip=tips
    )
    full = base.transform_filter("!datum.open").mark_point(filled=True, size=50, opacity=0.75)
    hollow = base.transform_filter("datum.open").mark_point(
        filled=False, size=50, opacity=0.9, strokeWidth=1.4
    )
    rules = (
        alt.Chart(inline(rows(x=[float(i) for i in range(1, len(names))] or [0.0])))
        .mark_rule(color=FAINT)
        .encode(x="x:Q")
    )
    panel = Panel("", alt.layer(rules, full, hollow), height=260)
    return Figure(spec.id, spec.title, spec.caption, [panel], columns=1)


__all__ = ["bars", "convergence", "factor_text", "lines"]
