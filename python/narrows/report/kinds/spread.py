"""Figures of distributions: cumulative, and throughput against delay with ellipses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from narrows.results.measures.crowds import PACKET_BYTES, completions
from narrows.results.runs import Run, Runs
from narrows.studies.model import FigureSpec


def cdf(spec: FigureSpec, runs: Runs) -> Figure:
    """Cumulative distribution of the queueing delay of a flow, or of the completion times of all flows.

    Each quantile is a mean over seeds. The study's args: panels, of (`queueing` or `completion`), flow (row,
    for `queueing`), after_s (only flows that began later count, for `completion`).
    """
    names = algorithms(runs)
    looks = [look(name) for name in names]
    distribution = _DISTRIBUTIONS[str(spec.args.get("of", "queueing"))]
    found: list[tuple[str, list[dict[str, Any]]]] = []
    low, top = math.inf, 1.0
    for title, group in panels_of(runs, spec.args.get("panels")):
        values: list[dict[str, Any]] = []
        for name in names:
            curves = []
            for run in group.where({ALGORITHM: name}):
                curve = distribution.quantiles(run, spec.args)
                if curve.size:
                    curves.append(curve)
            if curves:
                mean = np.maximum(np.mean(curves, axis=0), FLOOR_MS)
                low, top = min(low, float(mean.min())), max(top, float(mean.max()))
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
                        distribution.x,
                        log=True,
                        domain=[distribution.floor or low / 1.1, top * 1.3],
                        format=NUMBERS,
                        grid=False,
                    )
                ),
                y=alt.Y(**axis("y", distribution.y, domain=[0, 1], format="%")),
                order="i:Q",
                color=colour(names, looks),
                strokeDash=dash(names, looks),
            )
        )
        panels.append(Panel(title, chart))
    return Figure(spec.id, spec.title, spec.caption, panels, keys(names))


_LEVELS = np.concatenate([np.linspace(0.0, 0.98, 50), [0.99, 0.995, 1.0]])


def _queueing(run: Run, args: Mapping[str, Any]) -> NDArray[np.float64]:
    """The quantiles of a flow's RTT minus the RTT of the empty path, in ms."""
    flow = int(args.get("flow", 0))
    levels, rtt = run.distribution("flow", int(run.column("flows", "flow")[flow]), "rtt")
    if not levels.size:
        return levels
    empty = float(run.column("flows", "rtt_empty_s")[flow])
    return np.asarray(1e3 * (np.interp(_LEVELS, levels, rtt) - empty), dtype=np.float64)


def _completion(run: Run, args: Mapping[str, Any]) -> NDArray[np.float64]:
    """The quantiles of the completion times of finished flows, in ms."""
    _, times = completions(run, PACKET_BYTES, float(args.get("after_s", 3.0)))
    return 1e3 * np.quantile(times, _LEVELS) if times.size else times


@dataclass(frozen=True)
class _Distribution:
    """A quantity whose distribution is drawn."""

    x: str
    y: str
    floor: float | None
    """Start of the axis (None: the smallest value)."""
    quantiles: Callable[[Run, Mapping[str, Any]], NDArray[np.float64]]
    """The values at `_LEVELS`, in ms (empty: the run has none)."""


_DISTRIBUTIONS = {
    "queueing": _Distribution("Queueing delay (ms)", "Share of the ACKs", FLOOR_MS, _queueing),
    "completion": _Distribution("Completion time (ms)", "Share of the flows", None, _completion),
}


_STATISTICS = {"p95": "95th percentile", "p99": "99th percentile", "mean": "mean", "p50": "median"}


def ellipses(spec: FigureSpec, runs: Runs) -> Figure:
    """Throughput against delay, with a reversed axis of delay.

    The form of the figure follows Winstein, Sivaraman and Balakrishnan (NSDI 2013).

    Each run is a point. Each controller has an ellipse of one standard deviation, which is computed with the
    logarithm of the delay. The study's args: x (measure of delay, ms), y (measure of throughput), x_args,
    y_args.
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
