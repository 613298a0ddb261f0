"""Figures of many short flows: completion time over size, and the number of flows that a router counts."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np

from narrows.report.encode import (
    ALGORITHM,
    NUMBERS,
    algorithms,
    axis,
    colour,
    dash,
    first_seed,
    keys,
    panels_of,
)
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.series import rows, thin
from narrows.report.style import GREY, INK, look, neutral
from narrows.results.measures.crowds import PACKET_BYTES, completions, flow_counts
from narrows.results.runs import Runs
from narrows.studies.model import FigureSpec

_BINS_PER_DECADE = 8
_LEAST = 20
"""A bin needs at least this many flows to have a mean."""


def completion_over_size(spec: FigureSpec, runs: Runs) -> Figure:
    """Mean completion time over flow size: a line per controller, all seeds, sizes in logarithmic bins.

    The study's args: panels, packet_bytes, after_s, ideal (a table {rtt_s, capacity_mbit, load} for a grey
    line: two RTTs plus the completion time under processor sharing at that load).
    """
    args = spec.args
    packet = float(args.get("packet_bytes", PACKET_BYTES))
    names = algorithms(runs)
    looks = [look(name) for name in names]
    panels = []
    for title, group in panels_of(runs, args.get("panels")):
        values: list[dict[str, Any]] = []
        ideal_values: list[dict[str, Any]] = []
        most = 2.0
        for name in names:
            found = [
                completions(run, packet, float(args.get("after_s", 3.0)))
                for run in group
                if run.factors[ALGORITHM] == name
            ]
            if not found:
                continue
            sizes = np.concatenate([sizes for sizes, _ in found])
            times = np.concatenate([times for _, times in found])
            bins = np.floor(np.log10(np.maximum(sizes, 1.0)) * _BINS_PER_DECADE)
            for bin_ in np.unique(bins):
                chosen = bins == bin_
                if chosen.sum() >= _LEAST:
                    size = float(sizes[chosen].mean())
                    most = max(most, size)
                    values += rows(
                        x=[size], y=[1e3 * float(times[chosen].mean())], s=name, n=int(chosen.sum())
                    )
        ideal = args.get("ideal")
        if ideal:
            grid = np.geomspace(1.0, most, 60)
            left = 1e6 * float(ideal["capacity_mbit"]) * (1.0 - float(ideal["load"])) / 8.0
            ideal_values = rows(x=grid, y=1e3 * (2.0 * float(ideal["rtt_s"]) + grid * packet / left))
        # The axes end at the data, because axes that end at powers of ten would be mostly empty.
        drawn = values + ideal_values
        x = alt.X(
            **axis("x", "Flow size (packets)", log=True, grid=False, format="~s", domain=_around(drawn, "x"))
        )
        y = alt.Y(
            **axis("y", "Mean completion time (ms)", log=True, format=NUMBERS, domain=_around(drawn, "y"))
        )
        layers: list[Any] = []
        if ideal_values:
            layers.append(
                alt.Chart(inline(ideal_values))
                .mark_line(color=GREY, opacity=0.45, strokeWidth=5)
                .encode(x=x, y=y)
            )
        layers.append(
            alt.Chart(inline(values))
            .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=22))
            .encode(
                x=x,
                y=y,
                color=colour(names, looks),
                strokeDash=dash(names, looks),
                tooltip=[
                    alt.Tooltip("s:N", title=" "),
                    alt.Tooltip("x:Q", title="packets", format=".0f"),
                    alt.Tooltip("y:Q", title="ms", format=".1f"),
                    alt.Tooltip("n:Q", title="flows"),
                ],
            )
        )
        panels.append(Panel(title, alt.layer(*layers)))
    legend = keys(names)
    if args.get("ideal"):
        legend.append(Key("two RTTs plus processor sharing", neutral(GREY), area=True))
    return Figure(spec.id, spec.title, spec.caption, panels, legend)


def _around(values: list[dict[str, Any]], field: str) -> list[float]:
    """The ends of a logarithmic axis with a small margin around the values."""
    found = [float(row[field]) for row in values] or [1.0, 10.0]
    return [min(found) / 1.1, max(found) * 1.1]


def flow_count(spec: FigureSpec, runs: Runs) -> Figure:
    """The number of flows that a BDR port counts over time, and the true number, in a panel per controller.

    The true number differs between controllers: with a slower controller, more flows are in progress. The
    figure shows the first seed. The study's args: link.
    """
    link = str(spec.args["link"])
    names = algorithms(runs)
    panels = []
    for title, group in panels_of(Runs(first_seed(runs)), ALGORITHM):
        values: list[dict[str, Any]] = []
        true: list[dict[str, Any]] = []
        for run in group:
            t, estimate, truth = flow_counts(run, link)
            if not t.size:
                continue
            values += rows(
                **dict(zip(("t", "y"), thin(t, estimate), strict=True)), s=str(run.factors[ALGORITHM])
            )
            true = rows(**dict(zip(("t", "y"), thin(t, truth), strict=True)))
        looks = [look(name) for name in names]
        x = alt.X(**axis("t", "Time (s)", grid=False))
        most = max([row["y"] or 0.0 for row in values + true], default=1.0)
        y = alt.Y(**axis("y", "Flows", domain=[0.0, math.ceil(1.05 * most)]))
        chart = alt.layer(
            alt.Chart(inline(true)).mark_line(color=INK, opacity=0.5, strokeWidth=1.2).encode(x=x, y=y),
            alt.Chart(inline(values))
            .mark_line(strokeWidth=1.7)
            .encode(x=x, y=y, color=colour(names, looks), strokeDash=dash(names, looks)),
        )
        panels.append(Panel(title, chart))
    return Figure(
        spec.id,
        spec.title,
        spec.caption,
        panels,
        [*keys(names), Key("true number of flows", neutral(INK))],
    )
