"""The states of a rate controller over time, above the rates and the queue that they cause."""

from __future__ import annotations

from typing import Any

import altair as alt

from narrows.report.encode import ALGORITHM, axis, colour, dash, first_seed, panels_of
from narrows.report.figure import Figure, Panel, inline
from narrows.report.kinds.time import FLOWS_APART, queued
from narrows.report.series import rows
from narrows.report.style import INK, look, shades
from narrows.results.measures.states import visits
from narrows.results.runs import Run, Runs
from narrows.studies.model import FigureSpec

LANES = {
    "init": "INIT",
    "bw-init": "BW_INIT",
    "measure": "MEASURE",
    "alloc": "ALLOC",
    "settle": "settle",
    "congestion": "CONGESTION",
}
"""The paper's name of each state, in the order from top to bottom. The BRF paper has no state `settle`."""
_INSTANT_S = 1e-6
"""A visit that is at most this long is drawn as an instant."""


def states(spec: FigureSpec, runs: Runs) -> Figure:
    """The states of a port as bands over time, above the pacing rates and the queue: a column per panel.

    The study's args: link (of the controlled port), queues (links), from_s, until_s, panels (default:
    algorithm). A state is left out if no panel has it between from_s and until_s.
    """
    args = spec.args
    begin, end = float(args.get("from_s", 0.0)), float(args["until_s"])
    with_states = Runs(run for run in first_seed(runs) if visits(run, str(args["link"])))
    chosen = [(title, group[0]) for title, group in panels_of(with_states, args.get("panels", ALGORITHM))]
    bands = [_bands(run, str(args["link"]), begin, end) for _, run in chosen]
    shown = dict.fromkeys(row["lane"] for found in bands for row in found)
    # A state without a name in the paper has a lane of its own, below the lanes of the other states.
    lanes = [name for name in dict.fromkeys([*LANES.values(), *shown]) if name in shown]
    paces = [_paces(run, begin, end) for _, run in chosen]
    queues = [_window(*queued(run, list(args.get("queues", ["*"]))), begin, end) for _, run in chosen]
    tops = [
        max((row["y"] or 0.0 for part in found for row in part), default=1.0) for found in (paces, queues)
    ]
    across = [begin, end]
    panels = [
        Panel(title, _lanes(found, lanes, look(str(run.factors[ALGORITHM])).light, across), height=130)
        for (title, run), found in zip(chosen, bands, strict=True)
    ]
    for (_, run), values in zip(chosen, paces, strict=True):
        names = [str(run.tables["flows"]["name"][int(row)]) for row in run.flows()]
        kind = str(run.factors[ALGORITHM])
        looks = shades(kind, len(names)) if len(names) <= FLOWS_APART else [look(kind)] * len(names)
        more = {"color": colour(names, looks), "strokeDash": dash(names, looks)}
        y = axis("y", "Pacing rate (Mbit/s)", domain=[0.0, tops[0] * 1.05], tickCount=4, minExtent=84)
        panels.append(Panel("", _line(values, y, across, "", **more), height=110))
    for values in queues:
        y = axis("y", "Queue (packets)", domain=[0.0, max(tops[1] * 1.05, 10.0)], tickCount=4, minExtent=84)
        panels.append(Panel("", _line(values, y, across, "Time (s)", color=alt.value(INK)), height=90))
    return Figure(spec.id, spec.title, spec.caption, panels, columns=max(1, len(chosen)))


def _bands(run: Run, link: str, begin: float, end: float) -> list[dict[str, Any]]:
    """The visits within the window, cut at its ends."""
    return [
        {
            "lane": LANES.get(visit.state, visit.state),
            "t": round(max(visit.begin_s, begin), 6),
            "to": round(min(visit.end_s, end), 6),
            "instant": visit.end_s - visit.begin_s <= _INSTANT_S,
        }
        for visit in visits(run, link)
        if visit.begin_s < end and visit.end_s >= begin
    ]


def _paces(run: Run, begin: float, end: float) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = []
    for row in run.flows():
        t, y = run.flow_series(int(row), "pacing_bps")
        found = _window(t, y / 1e6, begin, end)
        values += [point | {"s": str(run.tables["flows"]["name"][int(row)])} for point in found]
    return values


def _window(t: Any, y: Any, begin: float, end: float) -> list[dict[str, Any]]:
    inside = (t >= begin) & (t <= end)
    return rows(t=t[inside], y=y[inside]) if inside.any() else []


def _lanes(values: list[dict[str, Any]], lanes: list[str], shade: str, across: list[float]) -> Any:
    y = alt.Y("lane:N", sort=lanes, title=None, scale=alt.Scale(domain=lanes), axis=alt.Axis(minExtent=84))
    x = alt.X(**axis("t", "", domain=across, grid=False, labels=False, ticks=False))
    base = alt.Chart(inline(values)).encode(y=y, x=x)
    lasting = base.transform_filter("!datum.instant").mark_bar(color=shade, clip=True).encode(x2="to:Q")
    instant = base.transform_filter("datum.instant").mark_tick(color=INK, thickness=2, clip=True)
    return alt.layer(lasting, instant)


def _line(
    values: list[dict[str, Any]], y: dict[str, Any], across: list[float], title: str, **more: Any
) -> Any:
    bottom = bool(title)
    x = axis("t", title, domain=across, grid=False, labels=bottom, ticks=bottom)
    mark = alt.Chart(inline(values)).mark_line(strokeWidth=1.5, clip=True, interpolate="step-after")
    return mark.encode(x=alt.X(**x), y=alt.Y(**y), **more)
