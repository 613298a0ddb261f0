"""Figures over time: rates, shares, and several quantities above one time axis.

The figures show the first seed of each case.
"""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import Any

import altair as alt
import numpy as np

from narrows import metrics
from narrows.packets import PAYLOAD
from narrows.report.encode import (
    ALGORITHM,
    FLOOR_MS,
    NUMBERS,
    algorithms,
    axis,
    colour,
    dash,
    first_seed,
    keys,
    note_bursts,
    note_cut,
    panels_of,
)
from narrows.report.figure import PANEL_HEIGHT, Figure, Key, Panel, inline
from narrows.report.series import POINTS, binned, rows, thin
from narrows.report.style import GREY, INK, Look, look, looks_of, neutral, order, shades
from narrows.results.figures import SAMPLED
from narrows.results.measures.general import rate_matrix
from narrows.results.runs import Run, Runs
from narrows.studies.model import FigureSpec

_OF_FLOWS = ("goodput_bps", "cwnd", "rtt_s")
"""Quantities of flows that are drawn over time."""
PEAK = 1.15
"""The goodput axis ends at this multiple of the capacity."""
MOST_SHADES = 8
"""Largest number of flows whose shades are in a legend. Readers could not distinguish more shades."""


def rates(spec: FigureSpec, runs: Runs) -> Figure:
    """Goodput of each flow over time.

    The study's args: panels, bin_s, until_s, fair (draw the fair share of goodput), capacity_mbit, parts
    (maps labels to patterns of flows: the labels replace the names of the flows), small (small panels, three
    in a row).
    """
    args = spec.args
    chosen = panels_of(Runs(first_seed(runs)), args.get("panels"))
    until, small = float(args.get("until_s", math.inf)), bool(args.get("small"))
    parts = {str(label): str(pattern) for label, pattern in args.get("parts", {}).items()}
    drawn, top = [], 0.0
    flow_names: list[str] = []
    for title, group in chosen:
        run = group[0]
        controller = str(run.factors.get(ALGORITHM, "cubic"))
        flow_names = [str(run.tables["flows"]["name"][int(row)]) for row in run.flows()]
        looks = shades(controller, len(flow_names))
        values: list[dict[str, Any]] = []
        for row, name in zip(run.flows(), flow_names, strict=True):
            t, y = run.flow_series(int(row), "goodput_bps")
            if "bin_s" in args:
                t, y = binned(t, y, float(args["bin_s"]))
            inside = t <= until
            t, y = thin(t[inside], y[inside] / 1e6)
            top = max(top, float(y.max(initial=0.0)))
            if t.size:
                values += rows(t=t, y=y, s=name)
        drawn.append((title, values, looks, _fair(run, args, until)))
    rate = float(args.get("capacity_mbit", math.inf))
    domain = [0.0, min(top, PEAK * rate) * 1.03]
    panels = []
    for title, values, looks, fair in drawn:
        x = axis("t", "Time (s)", grid=False)
        y_axis = axis("y", SAMPLED["goodput_bps"].axis, domain=domain)
        layers: list[Any] = [
            alt.Chart(inline(values))
            .mark_line(strokeWidth=1.5, clip=True)
            .encode(
                x=alt.X(**x),
                y=alt.Y(**y_axis),
                color=colour(flow_names, looks),
                strokeDash=dash(flow_names, looks),
            )
        ]
        if fair:
            layers.append(
                alt.Chart(inline(fair))
                .mark_line(color=INK, strokeDash=[3, 3], strokeWidth=1, interpolate="step-after", opacity=0.7)
                .encode(x="t:Q", y="y:Q")
            )
        panels.append(Panel(title, alt.layer(*layers), height=150 if small else PANEL_HEIGHT))
    labels = [_called(name, parts) for name in flow_names]
    legend, said = _told_apart(labels, [looks for _, _, looks, _ in drawn])
    if args.get("fair"):
        legend.append(Key("fair share", neutral(INK, (3, 3))))
    caption = spec.caption + said + note_cut([top], *domain) + note_bursts([top], rate)
    return Figure(spec.id, spec.title, caption, panels, legend, columns=3 if small else 2)


def _called(name: str, parts: dict[str, str]) -> str:
    """The label that the study gives to a flow, or the flow's name if there is no label."""
    return next((label for label, pattern in parts.items() if fnmatchcase(name, pattern)), name)


def _told_apart(names: list[str], panels: list[list[Look]]) -> tuple[list[Key], str]:
    """A legend of the flows that is valid in every panel, or a sentence for the caption."""
    if len(names) < 2:
        return [], ""
    if all(looks == panels[0] for looks in panels):
        return [Key(name, item) for name, item in zip(names, panels[0], strict=True)], ""
    dashes = [item.dash for item in panels[0]]
    if len(set(dashes)) == len(names):
        return [Key(name, neutral(INK, dash)) for name, dash in zip(names, dashes, strict=True)], ""
    said = f" The colours of the flows range from strong ({names[0]}) to faint ({names[-1]})."
    if len(names) > MOST_SHADES:
        return [], said
    # The panels have different colours. The legend therefore shows the shades in grey.
    return [Key(name, item) for name, item in zip(names, shades("rate", len(names)), strict=True)], said


def _fair(run: Run, args: dict[str, Any], until: float) -> list[dict[str, Any]]:
    """Steps of the fair share of goodput, in Mbit/s."""
    if not args.get("fair") or "capacity_mbit" not in args:
        return []
    begins, ends = run.column("flows", "start_s"), run.column("flows", "end_s")
    last = min(until, float(run.column("flow_samples", "t_s").max(initial=0.0)))
    ends = np.where(np.isnan(ends), math.inf, ends)
    steps = [float(t) for t in np.unique(np.concatenate([begins, ends])) if t < last]
    active = [int(((begins <= t) & (ends > t)).sum()) for t in steps]
    share = [float(args["capacity_mbit"]) * PAYLOAD / max(1, n) for n in active]
    return rows(t=[*steps, last], y=[*share, share[-1]]) if steps else []


def shares(spec: FigureSpec, runs: Runs) -> Figure:
    """Share of each flow in the goodput over time, as stacked areas.

    The study's args: panels, names (the algorithm of each flow; "algorithm" means the algorithm of the case).
    """
    panels = []
    seen: list[str] = []
    for title, group in panels_of(Runs(first_seed(runs)), spec.args.get("panels")):
        run = group[0]
        mapping = {str(k): str(v) for k, v in spec.args.get("names", {}).items()}
        names = [str(run.tables["flows"]["name"][int(row)]) for row in run.flows()]
        kinds = [
            str(run.factors[ALGORITHM]) if mapping.get(n) == ALGORITHM else mapping.get(n, n) for n in names
        ]
        seen += kinds
        starts, matrix = rate_matrix(run, "*", 1.0)
        total = np.nansum(matrix, axis=1)
        values: list[dict[str, Any]] = []
        for i, name in enumerate(names):
            with np.errstate(invalid="ignore", divide="ignore"):
                part = np.where(total > 0, np.nan_to_num(matrix[:, i]) / total, 0.0)
            values += rows(t=starts + 0.5, y=part, s=name, order=float(i))
        looks = [look(kind) for kind in kinds]
        area = (
            alt.Chart(inline(values))
            .mark_area(opacity=0.85)
            .encode(
                x=alt.X(**axis("t", "Time (s)", grid=False)),
                y=alt.Y(
                    "y:Q",
                    stack="zero",
                    title="Share of the goodput",
                    scale=alt.Scale(domain=[0, 1]),
                    axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format="%"),
                ),
                color=colour(names, looks),
                order=alt.Order("order:Q"),
            )
        )
        half = (
            alt.Chart(inline([{"y": 0.5}]))
            .mark_rule(color=INK, strokeDash=[4, 3], opacity=0.8)
            .encode(y="y:Q")
        )
        panels.append(Panel(title, alt.layer(area, half), height=180))
    return Figure(spec.id, spec.title, spec.caption, panels, keys(list(dict.fromkeys(seen)), area=True))


def delay(spec: FigureSpec, runs: Runs) -> Figure:
    """Queueing delay over time: a line per controller, on a logarithmic axis from `FLOOR_MS`.

    The study's args: panels.
    """
    names = algorithms(runs)
    looks = [look(name) for name in names]
    found: list[tuple[str, list[dict[str, Any]]]] = []
    top = 1.0
    for title, group in panels_of(Runs(first_seed(runs)), spec.args.get("panels")):
        values: list[dict[str, Any]] = []
        for run in group:
            t, rtt = run.flow_series(0, "rtt_s")
            queued = 1e3 * metrics.queueing_delay(rtt, float(run.column("flows", "rtt_empty_s")[0]))
            t, queued = thin(t, np.maximum(queued, FLOOR_MS))
            top = max(top, float(queued.max(initial=0.0)))
            if t.size:
                values += rows(t=t, y=queued, s=str(run.factors[ALGORITHM]))
        found.append((title, values))
    panels = []
    for title, values in found:
        chart = (
            alt.Chart(inline(values))
            .mark_line(strokeWidth=1.7)
            .encode(
                x=alt.X(**axis("t", "Time (s)", grid=False)),
                y=alt.Y(
                    **axis("y", "Queueing delay (ms)", log=True, domain=[FLOOR_MS, top * 1.5], format=NUMBERS)
                ),
                color=colour(names, looks),
                strokeDash=dash(names, looks),
            )
        )
        panels.append(Panel(title, chart))
    return Figure(spec.id, spec.title, spec.caption, panels, keys(names))


def stack(spec: FigureSpec, runs: Runs) -> Figure:
    """Goodput, window and RTT of the first flow, and queues of links, over time: a line per controller.

    The study's args: queues (links).
    """
    names = algorithms(runs)
    looks = [look(name) for name in names]
    quantities: list[tuple[str, list[dict[str, Any]]]] = [
        (SAMPLED[name].axis, []) for name in (*_OF_FLOWS, "queue_packets")
    ]
    for run in first_seed(runs):
        name = str(run.factors[ALGORITHM])
        for (_, series), quantity in zip(quantities, _OF_FLOWS, strict=False):
            t, y = thin(*run.flow_series(0, quantity))
            series.extend(rows(t=t, y=y * SAMPLED[quantity].scale, s=name) if t.size else [])
        t, y = queue_of(run, list(spec.args.get("queues", ["*"])))
        quantities[3][1].extend(rows(t=t, y=y, s=name) if t.size else [])
    rate = float(spec.args.get("capacity_mbit", math.inf))
    goodputs = [row["y"] for row in quantities[0][1]]
    cut = note_cut(goodputs, 0.0, PEAK * rate)
    panels = _stacked(quantities, names, looks, [0.0, PEAK * rate] if cut else None)
    caption = spec.caption + cut + note_bursts(goodputs, rate)
    return Figure(spec.id, spec.title, caption, panels, keys(names), columns=1)


def queue_of(run: Run, patterns: list[str]) -> tuple[Any, Any]:
    """Sum of the packets in the named queues over time, thinned for a figure of the whole run."""
    return thin(*queued(run, patterns))


def queued(run: Run, patterns: list[str]) -> tuple[Any, Any]:
    """Sum of the packets in the named queues over time."""
    t, total = np.empty(0), np.empty(0)
    for row in sorted({int(row) for pattern in patterns for row in run.links(pattern)}):
        at, packets = run.link_series(row, "queue_packets")
        t, total = (at, packets) if total.size == 0 else (at, total + packets)
    return t, total


def _stacked(
    quantities: list[tuple[str, list[dict[str, Any]]]],
    names: list[str],
    looks: list[Look],
    first_axis: list[float] | None = None,
) -> list[Panel]:
    """Panels on top of each other. The last panel has the time axis."""
    shown = [(title, values) for title, values in quantities if any(row["y"] is not None for row in values)]
    last = max((row["t"] for _, values in shown for row in values), default=1.0)
    panels = []
    for i, (title, values) in enumerate(shown):
        bottom = i == len(shown) - 1
        x = axis("t", "Time (s)" if bottom else "", domain=[0, last], grid=False, labels=bottom, ticks=bottom)
        domain = first_axis if i == 0 else None
        y = axis("y", title, domain=domain, scale={"zero": True}, minExtent=46, tickCount=4)
        chart = (
            alt.Chart(inline(values))
            .mark_line(strokeWidth=1.5, clip=True)
            .encode(x=alt.X(**x), y=alt.Y(**y), color=colour(names, looks), strokeDash=dash(names, looks))
        )
        panels.append(Panel("", chart, height=96))
    return panels


FLOWS_APART = 12
"""Largest number of flows that each have a look and a legend entry of their own. If there are more flows, all
flows of a controller have the same look, and the legend has one entry per controller.
"""
MOST_FLOWS = 200
"""Largest number of flows that are drawn."""


def single_run(run: Run) -> list[Figure]:
    """The figures of a single run.

    The figures show goodput, window and RTT of each sampled flow, and the queues of the busiest links.
    """
    figures = [_flows_over_time(run), _links_over_time(run)]
    return [figure for figure in figures if figure.panels]


def _sampled(run: Run) -> list[int]:
    """The rows of the table `flows` whose flows have samples."""
    ids = np.unique(run.column("flow_samples", "flow"))
    return [int(row) for row in np.flatnonzero(np.isin(run.column("flows", "flow"), ids))]


def _flows_over_time(run: Run) -> Figure:
    sampled = _sampled(run)
    # If there are too many flows, keep the flows that delivered the most data.
    delivered = run.column("flows", "delivered_bytes")
    rows_of = sorted(sorted(sampled, key=lambda row: -float(delivered[row]))[:MOST_FLOWS])
    names = [str(run.tables["flows"]["name"][row]) for row in rows_of]
    kinds = [str(run.tables["flows"]["cc"][row]) for row in rows_of]
    apart = len(rows_of) <= FLOWS_APART
    looks = looks_of(kinds) if apart else [look(kind) for kind in kinds]
    buckets = POINTS if apart else max(20, POINTS * FLOWS_APART // len(rows_of))
    quantities: list[tuple[str, list[dict[str, Any]]]] = []
    for quantity in _OF_FLOWS:
        values: list[dict[str, Any]] = []
        for row, name in zip(rows_of, names, strict=True):
            t, y = thin(*run.flow_series(row, quantity), buckets)
            values += rows(t=t, y=y * SAMPLED[quantity].scale, s=name) if t.size else []
        quantities.append((SAMPLED[quantity].axis, values))
    if apart:
        legend = [
            Key(f"{name} ({look(kind).label})", item)
            for name, kind, item in zip(names, kinds, looks, strict=True)
        ]
    else:
        legend = keys(order(kinds))
    caption = "Goodput, window and RTT of each flow over time."
    everyone = run.column("flows", "flow").size
    if len(sampled) < everyone:
        part = f"{len(sampled):,} of {everyone:,} flows"
        caption = f"Goodput, window and RTT of each flow that was sampled ({part}) over time."
    caption += f" The run has seed {run.seed}."
    if len(rows_of) < len(sampled):
        caption += f" Only the {MOST_FLOWS} flows that delivered the most are drawn."
    panels = _stacked(quantities, names, looks)
    caption += _bursts(run, rows_of)
    return Figure("flows", "Flows over time", caption, panels, legend, columns=1)


def _bursts(run: Run, flows: list[int]) -> str:
    """The caption's sentence about goodputs above the rate of the links at which packets waited."""
    if "capacity_bps" not in run.tables["link_samples"]:
        return ""
    offered = [run.link_series(row, "capacity_bps")[1] for row in _bottlenecks(run)]
    rate = max((float(np.nanmax(series, initial=0.0)) for series in offered), default=0.0) or math.inf
    goodputs = [run.flow_series(row, "goodput_bps")[1] for row in flows]
    goodputs = [series[~np.isnan(series)] for series in goodputs]
    # A flow whose mean goodput is higher than this rate does not use these links.
    peaks = (float(series.max()) for series in goodputs if series.size and series.mean() <= rate)
    return note_bursts(peaks, rate)


MOST_LINKS = 4
"""Largest number of links that are drawn."""
QUEUED = 0.05
"""A link is drawn if its longest queue was at least this share of the longest queue of all links. This leaves
out access links, which are busy but have no queue.
"""


def _bottlenecks(run: Run) -> list[int]:
    """Rows of the busiest links that had a queue, or of the busiest links if no link had a queue."""
    busiest = np.argsort(-np.nan_to_num(run.column("links", "utilisation")), kind="stable").tolist()
    sampled = run.column("link_samples", "link")
    packets = np.nan_to_num(run.column("link_samples", "queue_packets"))
    ids = run.column("links", "link")
    longest = {row: float(packets[sampled == ids[row]].max(initial=0.0)) for row in busiest}
    least = QUEUED * max(longest.values(), default=0.0)
    return [row for row in busiest if longest[row] >= least][:MOST_LINKS]


def _links_over_time(run: Run) -> Figure:
    busiest = _bottlenecks(run)
    labels = [str(run.tables["links"]["name"][int(row)]) for row in busiest]
    # Links get looks that no controller has. These looks differ by colour and dash.
    link_looks = [look(f"link-{i}") for i in range(len(labels))]
    parts: list[tuple[str, list[dict[str, Any]]]] = []
    for quantity in ("throughput_bps", "queue_packets"):
        values = []
        for row, label in zip(busiest, labels, strict=True):
            t, y = thin(*run.link_series(int(row), quantity))
            values += rows(t=t, y=y * SAMPLED[quantity].scale, s=label) if t.size else []
        parts.append((SAMPLED[quantity].axis, values))
    return Figure(
        "links",
        "Links over time",
        f"Throughput and queue of the busiest links that had a queue. The run has seed {run.seed}.",
        _stacked(parts, labels, link_looks),
        [Key(n, i) for n, i in zip(labels, link_looks, strict=True)],
        columns=1,
    )


__all__ = ["GREY", "delay", "queue_of", "rates", "shares", "single_run", "stack"]
