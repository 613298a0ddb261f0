"""Completion times of flows that have a size: slowdown over size, and the distribution of the times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from narrows.metrics import slowdown
from narrows.report.encode import NUMBERS, axis, colour, dash
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.series import rows
from narrows.report.style import look, looks_of
from narrows.results.runs import Run

DOTS = 1200
"""Number of flows per entry that are drawn as dots."""
WORST = 60
"""For each entry, this number of flows is always drawn: the flows with the largest slowdowns."""
GROUPS = 10
"""Number of groups by size, each with the same number of flows (MET-72)."""
LEAST_FOR_LINES = 10 * GROUPS
"""Smallest number of finished flows for which quantiles per group are drawn."""
_LEVELS = np.concatenate([np.linspace(0.0, 0.99, 100), [0.995, 0.999, 1.0]])

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Finished:
    """Finished flows of one entry of the scenario, of all seeds."""

    label: str
    kind: str
    size: Floats
    """Sizes of the flows, in kB."""
    fct: Floats
    """Completion times of the flows, in ms."""
    slowdown: Floats
    unfinished: int


def completion(runs: Sequence[Run]) -> Figure | None:
    """Slowdown over size, and distribution of completion times; None if no flow with a size has finished.

    Dots are flows. The flows are divided into ten groups by size. Lines connect the groups' medians and 99th
    percentiles.
    """
    found = [entry for entry in _entries(runs) if entry.fct.size]
    if not found:
        return None
    names = [entry.label for entry in found]
    looks = looks_of([entry.kind for entry in found])
    dots, lines, times = [], [], []
    for entry in found:
        keep = _kept(entry.size, entry.slowdown)
        dots += rows(x=entry.size[keep], y=entry.slowdown[keep], f=entry.fct[keep], s=entry.label)
        if entry.fct.size >= LEAST_FOR_LINES:
            lines += _lines(entry)
        values = np.quantile(entry.fct, _LEVELS) if entry.fct.size > _LEVELS.size else np.sort(entry.fct)
        levels = _LEVELS if entry.fct.size > _LEVELS.size else np.arange(1, values.size + 1) / values.size
        times += rows(x=values, y=levels, s=entry.label, i=np.arange(levels.size))
    x = alt.X(**_log("x", "Size (kB)", np.concatenate([entry.size for entry in found])))
    y_axis = _log("y", "Slowdown", np.concatenate([entry.slowdown for entry in found]))
    over_size: list[alt.Chart] = [
        alt.Chart(inline(dots))
        .mark_point(filled=True, size=13, opacity=0.3)
        .encode(
            x=x,
            y=alt.Y(**y_axis),
            color=colour(names, looks),
            tooltip=[
                alt.Tooltip("s:N", title=" "),
                alt.Tooltip("x:Q", title="kB"),
                alt.Tooltip("f:Q", title="ms"),
                alt.Tooltip("y:Q", title="slowdown"),
            ],
        )
    ]
    for quantile, strokes in (("p50", [1, 0]), ("p99", [5, 3])):
        part = [row for row in lines if row["q"] == quantile]
        if part:
            over_size.append(
                alt.Chart(inline(part))
                .mark_line(
                    strokeWidth=2.2, strokeDash=strokes, point={"filled": True, "size": 34, "opacity": 1}
                )
                .encode(
                    x=x,
                    y=alt.Y(**y_axis),
                    color=colour(names, looks),
                    tooltip=[
                        alt.Tooltip("q:N", title=" "),
                        alt.Tooltip("x:Q", title="median kB"),
                        alt.Tooltip("y:Q", title="slowdown"),
                        alt.Tooltip("n:Q", title="flows"),
                    ],
                )
            )
    spread = (
        alt.Chart(inline(times))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(**_log("x", "Completion time (ms)", np.concatenate([entry.fct for entry in found]))),
            y=alt.Y("y:Q", title="Share of the flows", axis=alt.Axis(format="%", tickCount=5)),
            color=colour(names, looks),
            strokeDash=dash(names, looks),
            order="i:Q",
        )
    )
    panels = [
        Panel(
            "(a) Slowdown: completion time relative to an empty network", alt.layer(*over_size), height=260
        ),
        Panel("(b) Completion time", spread, height=260),
    ]
    legend = [
        Key(f"{name} ({look(entry.kind).label})", item)
        for name, entry, item in zip(names, found, looks, strict=True)
    ]
    return Figure("completion", "Completion times", _caption(found, len(runs), bool(lines)), panels, legend)


def _caption(found: list[_Finished], seeds: int, with_lines: bool) -> str:
    finished = sum(entry.fct.size for entry in found)
    open_ = sum(entry.unfinished for entry in found)
    text = f"{finished:,} of {finished + open_:,} flows with a size finished"
    text += f", {seeds} seeds together. " if seeds > 1 else ". "
    text += "Slowdown is the completion time divided by the shortest one on an empty network."
    if with_lines:
        text += " Lines: median (solid) and 99th percentile (dashed) of each tenth of the flows by size."
    if any(entry.fct.size > DOTS for entry in found):
        text += f" Dots show about {DOTS:,} flows, evenly chosen by size, and the {WORST} slowest."
    return text


def _entries(runs: Sequence[Run]) -> list[_Finished]:
    """Flows with a size, by entry of the scenario and controller, in order of appearance."""
    parts: dict[tuple[str, str], list[tuple[Floats, Floats, Floats]]] = {}
    for run in runs:
        size, fct = run.column("flows", "size_bytes"), run.column("flows", "fct_s")
        over = slowdown(fct, run.column("flows", "ideal_fct_s"))
        owners = np.array(
            [f"{a}\n{b}" for a, b in zip(run.names("flows", "source"), run.names("flows", "cc"), strict=True)]
        )
        for owner in dict.fromkeys(owners[size > 0].tolist()):
            mine = (owners == owner) & (size > 0)
            source, _, kind = str(owner).partition("\n")
            parts.setdefault((source, kind), []).append((size[mine], fct[mine], over[mine]))
    entries = []
    for (source, kind), found in parts.items():
        size, fct, over = (np.concatenate(column) for column in zip(*found, strict=True))
        done = ~np.isnan(over)
        entries.append(
            _Finished(source, kind, size[done] / 1e3, fct[done] * 1e3, over[done], int((~done).sum()))
        )
    return entries


def _kept(size: Floats, over: Floats) -> NDArray[np.int64]:
    """Indices of the flows to draw.

    These are flows at even distances in the order of sizes, and the flows with the largest slowdown, so that
    outliers are drawn.
    """
    if size.size <= DOTS:
        return np.arange(size.size)
    by_size = np.argsort(size, kind="stable")
    even = by_size[np.linspace(0, size.size - 1, DOTS).astype(np.int64)]
    worst = np.argsort(-over, kind="stable")[:WORST]
    return np.union1d(even, worst)


def _lines(entry: _Finished) -> list[dict[str, Any]]:
    """Median and 99th percentile of the slowdown of each group of sizes, at the group's median size."""
    order = np.argsort(entry.size, kind="stable")
    points: list[dict[str, Any]] = []
    for part in np.array_split(order, GROUPS):
        for name, level in (("p50", 0.5), ("p99", 0.99)):
            points += rows(
                x=[float(np.median(entry.size[part]))],
                y=[float(np.quantile(entry.slowdown[part], level))],
                n=int(part.size),
                s=entry.label,
                q=name,
            )
    return points


def _log(field: str, title: str, values: Floats) -> dict[str, Any]:
    """A logarithmic axis around the values. The fewer decades it has, the more ticks each decade has."""
    low, high = float(values.min()) / 1.15, float(values.max()) * 1.15
    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    steps = (1, 1.5, 2, 3, 5, 7) if high < 10 * low else (1, 2, 5) if len(decades) <= 4 else (1,)
    ticks = [float(f"{step * 10.0**power:.3g}") for power in decades for step in steps]
    return axis(field, title, log=True, domain=[low, high], values=ticks, format=NUMBERS, grid=field == "y")
