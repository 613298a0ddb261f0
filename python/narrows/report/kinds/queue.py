"""The shares of a queue that belong to groups of flows, over time."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from narrows.report.encode import ALGORITHM, axis, colour, first_seed
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.series import binned, rows
from narrows.report.style import Look, shades
from narrows.results.measures.queues import backlogs
from narrows.results.runs import Runs
from narrows.studies.model import FigureSpec

_BIN_S = 0.02
"""Width of the bins in which the figure shows means."""


def queue_shares(spec: FigureSpec, runs: Runs) -> Figure:
    """Bytes of each group of flows in a queue over time (stacked), and the groups' shares; the first seed.

    The study's args: link, parts (maps labels to patterns of flows, from the bottom), from_s, until_s.
    """
    args = spec.args
    run = first_seed(runs)[0]
    parts = {str(label): str(pattern) for label, pattern in args["parts"].items()}
    looks = shades(str(run.factors.get(ALGORITHM, "bbr")), len(parts))
    t, bytes_of = backlogs(run, str(args["link"]))
    shown = (t >= float(args["from_s"])) & (t <= float(args["until_s"]))
    stacked: list[dict[str, Any]] = []
    share: list[dict[str, Any]] = []
    total = bytes_of.sum(axis=1)
    for i, (label, pattern) in enumerate(parts.items()):
        mine = bytes_of[:, run.flows(pattern)].sum(axis=1)
        for series, y in ((stacked, mine / 1e3), (share, mine / np.maximum(total, 1.0))):
            at, means = binned(t[shown], y[shown], _BIN_S)
            series.extend(rows(t=at, y=means, s=label, i=float(i)))
    titles = axis("y", "Payload in the queue (kB)"), axis("y", "Share", domain=[0, 1], format="%")
    charts = [
        _areas(values, list(parts), looks, y) for values, y in zip((stacked, share), titles, strict=True)
    ]
    panels = [
        Panel(title, chart, height=130)
        for title, chart in zip(("(a) Queue", "(b) Shares of the queue"), charts, strict=True)
    ]
    legend = [Key(label, item, area=True) for label, item in zip(parts, looks, strict=True)]
    return Figure(spec.id, spec.title, spec.caption, panels, legend, columns=1)


def _areas(
    values: list[dict[str, Any]], labels: list[str], looks: list[Look], y: dict[str, Any]
) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(inline(values))
        .mark_area(opacity=0.9)
        .encode(
            x=alt.X(**axis("t", "Time (s)", grid=False)),
            y=alt.Y(**{**y, "stack": "zero"}),
            color=colour(labels, looks),
            order=alt.Order("i:Q"),
        )
    )
    return chart
