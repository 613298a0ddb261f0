"""A small chart for each controller, by default all on the same axes."""

from __future__ import annotations

import math

import altair as alt
import numpy as np

from narrows.report.encode import ALGORITHM, CUT, axis, first_seed, note_bursts, note_cut
from narrows.report.figure import Figure, Panel, inline
from narrows.report.series import POINTS, binned, rows, thin
from narrows.report.style import GREY, look, order
from narrows.results.figures import SAMPLED
from narrows.results.runs import Runs
from narrows.studies.model import FigureSpec

HEIGHT = 110
"""Height of a chart in px."""
PEAK_OF = 0.995
"""The axis ends near this quantile of all values, so that one burst does not flatten the rest."""


def multiples(spec: FigureSpec, runs: Runs) -> Figure:
    """A sampled quantity of the first flow or of a link over time: a small chart per controller, on one axis.

    The study's args: quantity, link (None: the first flow), bin_s (bins of a rate), rule (a line to compare
    with), capacity_mbit (the link's rate: the caption explains goodput above it), own_axis (whether each
    chart has an axis of its own).
    """
    args = spec.args
    quantity = str(args["quantity"])
    heading = SAMPLED[quantity]
    drawn: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    last = 0.0
    for run in first_seed(runs):
        link = args.get("link")
        t, y = run.flow_series(0, quantity) if link is None else run.link_series(run.link(link), quantity)
        last = max(last, float(t[~np.isnan(y)].max(initial=0.0)))
        if "bin_s" in args:
            t, y = binned(t, y, float(args["bin_s"]))
        known = ~np.isnan(y)
        if known.any():
            drawn[str(run.factors[ALGORITHM])] = (t[known], y[known] * heading.scale)
    if not drawn:
        return Figure(spec.id, spec.title, spec.caption, [])
    values = np.concatenate([y for _, y in drawn.values()])
    rule_at = float(args.get("rule", 0.0))
    top = _top(values, rule_at)
    rate = float(args.get("capacity_mbit", math.inf))
    owns = bool(args.get("own_axis"))
    cut = any(note_cut(y, 0.0, _top(y, rule_at) if owns else top) for _, y in drawn.values())
    caption = spec.caption + (CUT if cut else "")
    caption += note_bursts(values, rate) if quantity == "goodput_bps" else ""
    panels = []
    for name in order(list(drawn)):
        top = _top(drawn[name][1], rule_at) if owns else top
        t, y = thin(*drawn[name], POINTS // 2)
        shown = look(name)
        line = (
            alt.Chart(inline(rows(t=t, y=y)))
            .mark_line(strokeWidth=1.3, clip=True, color=shown.light)
            .encode(
                x=alt.X(**axis("t", "Time (s)", domain=[0, last], grid=False)),
                y=alt.Y(**axis("y", heading.axis, domain=[0, top], tickCount=4, minExtent=40)),
            )
        )
        layers = [line]
        if "rule" in args:
            rule = alt.Chart(inline([{"y": float(args["rule"])}]))
            layers.insert(0, rule.mark_rule(color=GREY, strokeDash=[3, 3]).encode(y="y:Q"))
        panels.append(Panel(shown.label, alt.layer(*layers), height=HEIGHT))
    return Figure(spec.id, spec.title, caption, panels, columns=3)


def _top(values: np.ndarray, rule: float) -> float:
    """The end of an axis that shows these values and the line `rule`."""
    return max(float(np.quantile(values, PEAK_OF)) * 1.15, rule * 1.05, 1e-9)
