"""Figures of distributions: cumulative, and throughput against delay with ellipses."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from narrows.report.encode import (
    ALGORITHM,
    FLOOR_MS,
    NUMBERS,
    algorithms,
    axis,
    colour,
    dash,
    factor_text,
    keys,
    panels_of,
    shape,
)
from narrows.report.figure import Figure, Panel, inline
from narrows.report.series import rows
from narrows.report.style import look
from narrows.results.measures import find_measure, measure_run
from narrows.results.runs import Runs
from narrows.studies.model import FigureSpec


def cdf(spec: FigureSpec, runs: Runs) -> Figure:
    """Cumulative distribution of the queueing delay.

    Each quantile is a mean over seeds. The study's args: panels, flow (row).
    """
    names = algorithms(runs)
    looks = [look(name) for name in names]
    flow = int(spec.args.get("flow", 0))
    found: list[tuple[str, list[dict[str, Any]]]] = []
    top = 1.0
    for title, group in panels_of(runs, spec.args.get("panels")):
        values: list[dict[str, Any]] = []
        for name in names:
            curves = []
            for run in group.where({ALGORITHM: name}):
                levels, rtt = run.distribution("flow", int(run.column("flows", "flow")[flow]), "rtt")
                if levels.size:
                    curves.append(
                        1e3 * (np.interp(_LEVELS, levels, rtt) - run.column("flows", "rtt_empty_s")[flow])
                    )
            if curves:
                mean = np.maximum(np.mean(curves, axis=0), FLOOR_MS)
                top = max(top, float(mean.max()))
                values += rows(x=mean, y=_LEVELS, s=name, i=np.arange(_LEVELS.size))
        found.append((title, values))
    panels = []
    for title, values in found:
        chart = (
            alt.Chart(inline(values))
            .mark_line(strokeWidth=2)
            .encode(
                x=alt.X(
                    **axis(
                        "x",
                        "Queueing delay (ms)",
                        log=True,
                        domain=[FLOOR_MS, top * 1.3],
                        format=NUMBERS,
                        grid=False,
                    )
                ),
                y=alt.Y(**axis("y", "Share of the ACKs", domain=[0, 1], format="%")),
                order="i:Q",
                color=colour(names, looks),
                strokeDash=dash(names, looks),
            )
        )
        panels.append(Panel(title, chart))
    return Figure(spec.id, spec.title, spec.caption, panels, keys(names))


_LEVELS = np.concatenate([np.linspace(0.0, 0.98, 50), [0.99, 0.995, 1.0]])


_STATISTICS = {"p95": "95th percentile", "p99": "99th percentile", "mean": "mean", "p50": "median"}


def ellipses(spec: FigureSpec, runs: Runs) -> Figure:
    """Throughput against delay, with a reversed axis of delay.

    The form of the figure follows Winstein, Sivaraman and Balakrishnan (NSDI 2013).

    Each run is a point. Each controller has an ellipse of one standard deviation, in the logarithm of the
    delay. The study's args: x (measure of delay, ms), y (measure of throughput), x_args, y_args.
    """
    args = spec.args
    names = algorithms(runs)
    looks = [look(name) for name in names]
    points: list[dict[str, Any]] = []
    rings: list[dict[str, Any]] = []
    centres: list[dict[str, Any]] = []
    for name in names:
        pairs = []
        for run in runs.where({ALGORITHM: name}):
            delay = measure_run(str(args["x"]), run, **args.get("x_args", {})).value
            rate = measure_run(str(args["y"]), run, **args.get("y_args", {})).value
            if math.isnan(delay) or math.isnan(rate):
                continue
            pairs.append((math.log10(max(delay, FLOOR_MS)), rate))
            what = ", ".join(factor_text(f, v) for f, v in run.factors.items() if f != ALGORITHM)
            points += rows(
                x=[10 ** pairs[-1][0]], y=[rate], s=name, label=look(name).label, what=what, seed=run.seed
            )
        if not pairs:
            continue
        array = np.array(pairs)
        centres += rows(x=[10 ** array[:, 0].mean()], y=[array[:, 1].mean()], s=name, label=look(name).label)
        if len(pairs) > 1:
            ring = _ellipse(array)
            rings += rows(x=10 ** ring[:, 0], y=ring[:, 1], s=name, i=np.arange(len(ring)))
    every = [row["x"] for row in points + rings]
    low, high = (min(every) * 0.8, max(every) * 1.3) if every else (1.0, 10.0)
    heights = [row["y"] for row in points + rings]
    y_low, y_high = (min(heights), max(heights)) if heights else (0.0, 1.0)
    margin = 0.04 * (y_high - y_low or 1.0)
    measure = find_measure(str(args["y"]))
    delay_measure = find_measure(str(args["x"]))
    statistic = str(args.get("x_args", {}).get("statistic", "p95"))
    statistic = _STATISTICS.get(statistic, statistic)
    x = axis(
        "x",
        f"{delay_measure.title}, {statistic} (ms), less is better \N{RIGHTWARDS ARROW}",
        log=True,
        domain=[low, high],
        format=NUMBERS,
        grid=False,
    )
    x["scale"] = alt.Scale(type="log", domain=[low, high], nice=False, reverse=True)
    y = axis(
        "y",
        measure.title + (f" ({measure.unit})" if measure.unit else ""),
        domain=[max(0.0, y_low - margin), y_high + margin],
    )
    tips = [
        alt.Tooltip("label:N", title=" "),
        alt.Tooltip("what:N", title="case"),
        alt.Tooltip("seed:Q"),
        alt.Tooltip("x:Q", title="delay (ms)"),
        alt.Tooltip("y:Q", title=measure.title),
    ]
    common = {"x": alt.X(**x), "y": alt.Y(**y), "color": colour(names, looks)}
    fill = alt.Fill("s:N", scale=alt.Scale(domain=names, range=[item.light for item in looks]), legend=None)
    layers = [
        alt.Chart(inline(rings))
        .mark_line(strokeWidth=1.6, fillOpacity=0.13, clip=True)
        .encode(**common, fill=fill, order="i:Q", strokeDash=dash(names, looks)),
        alt.Chart(inline(points))
        .mark_point(filled=True, size=20, opacity=0.45)
        .encode(**common, shape=shape(names, looks), tooltip=tips),
        alt.Chart(inline(centres))
        .mark_point(filled=True, size=140, opacity=1)
        .encode(**common, shape=shape(names, looks)),
    ]
    return Figure(
        spec.id,
        spec.title,
        spec.caption,
        [Panel("", alt.layer(*layers), height=340)],
        keys(names, marks=True),
        columns=1,
    )


def _ellipse(points: NDArray[np.float64], steps: int = 60) -> NDArray[np.float64]:
    """The ellipse of one standard deviation around the mean of points in the plane."""
    spread, axes = np.linalg.eigh(np.cov(points.T))
    angle = np.linspace(0.0, 2.0 * math.pi, steps + 1)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray(
        points.mean(axis=0) + circle * np.sqrt(np.maximum(spread, 0.0)) @ axes.T, dtype=np.float64
    )
