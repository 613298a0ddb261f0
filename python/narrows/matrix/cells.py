"""Computes the cells of a matrix.

A cell has the results of a controller against a rival with one length of the buffer.

If the rival is the same controller, the cell describes both flows. In this case, goodput, RTT and harm are
means over both flows. The share is the larger share, and the ratio is the larger goodput divided by the
smaller one.

Harm (MET-35) follows Ware, Mukerjee, Seshan and Sherry (HotNets 2019). It compares the controller's run
against a rival with its run without a rival, on the same link and with the same seed. Harm is the part of the
goodput that the rival takes away, or the part of the RTT that the rival adds. All figures are means over
seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from narrows import metrics
from narrows.matrix.ask import Ask
from narrows.matrix.plan import BUFFER, TIGHT, case, pairs
from narrows.metrics.statistics import Interval
from narrows.packets import PAYLOAD
from narrows.results.by_run import read_runs
from narrows.results.factors import factor
from narrows.results.results import Results
from narrows.results.runs import Run, Runs

SHARE_OF_ONE = 0.5
"""The fair share of one of two flows, as a part of the capacity."""


@dataclass(frozen=True)
class Cell:
    """The results of a controller against a rival, or without a rival."""

    buffer: str
    algorithm: str
    rival: str | None
    """Name of the rival (None: there is no rival)."""
    seeds: int
    goodput_bps: Interval
    """Goodput of the controller's flow (MET-2)."""
    rtt_mean_s: Interval
    """Mean RTT over the ACKs of the controller's flow (MET-12)."""
    share: Interval
    """Share of the controller's flow in the goodput of both flows (MET-33). If the controller runs against
    itself, this is the larger of both shares."""
    ratio: Interval
    """Goodput of the controller's flow divided by the rival's goodput (MET-34). If the controller runs
    against itself, this is the larger goodput divided by the smaller goodput."""
    jain: Interval
    """Jain's index of the goodputs of both flows (MET-30)."""
    harm_goodput: Interval
    """Goodput that the controller loses to the rival, divided by the controller's goodput without a rival
    (MET-35)."""
    harm_rtt: Interval
    """Time that the rival adds to the RTT, divided by the RTT with the rival (MET-35)."""
    starved: Interval
    """Share of seeds in which the controller's flow had less than 5 % of its fair share for more than 10 s
    (MET-36). If the controller runs against itself, one such flow is enough."""


FIGURES = tuple(item.name for item in fields(Cell) if item.type == "Interval")
"""Names of the measured figures."""


def cells(results: Results, ask: Ask) -> list[Cell]:
    """All cells, buffer by buffer.

    For each buffer, controllers without a rival come first, then all pairs row by row.
    """
    runs = read_runs(results, {"buffer": BUFFER})
    gathered: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        key = (str(run.factors.get("buffer", factor(ask.buffers[0]))), str(run.factors["case"]))
        gathered.setdefault(key, []).append(run)
    groups = {key: Runs(group) for key, group in gathered.items()}
    alone = list(dict.fromkeys(name for pair in pairs(ask) for name in pair))
    meetings = {pair: case(*pair) for pair in pairs(ask)}
    found: list[Cell] = []
    for buffer in ask.buffers:
        at = str(factor(buffer))
        lonely = {name: groups[at, case(name)] for name in alone}
        found += [_cell(buffer, name, None, lonely[name], lonely[name], results.warmup_s) for name in alone]
        for name in alone:
            for rival in alone:
                pair = (name, rival) if (name, rival) in meetings else (rival, name)
                if pair in meetings:
                    met = groups[at, meetings[pair]]
                    found.append(_cell(buffer, name, rival, met, lonely[name], results.warmup_s))
    return found


def _cell(buffer: str, name: str, rival: str | None, runs: Runs, alone: Runs, warmup: float) -> Cell:
    """The cell of the controller `name` against `rival`.

    `alone` has the controller's runs without a rival.
    """
    solo = {run.seed: run for run in alone}
    rows = [_figures(run, name, rival, solo[run.seed], warmup) for run in runs if run.seed in solo]
    columns = {figure: metrics.mean_ci([row[figure] for row in rows]) for figure in FIGURES}
    return Cell(buffer, name, rival, len(rows), **columns)


def _figures(run: Run, name: str, rival: str | None, solo: Run, warmup: float) -> dict[str, float]:
    rates, rtts = run.column("flows", "goodput_bps"), run.column("flows", "rtt_mean_s")
    own = [i for i, cc in enumerate(run.names("flows", "cc")) if cc == name]
    goodput, rtt = float(rates[own].mean()), float(rtts[own].mean())
    before = float(solo.column("flows", "goodput_bps")[0])
    together = rival is not None
    # If both flows have the same controller, treat the flow with more goodput as the first flow.
    mine = max(own, key=lambda i: float(rates[i]))
    more, other = float(rates[mine]), float(rates[1 - mine]) if together else np.nan
    return {
        "goodput_bps": goodput,
        "rtt_mean_s": rtt,
        "share": metrics.share(more, [other]) if together else np.nan,
        "ratio": metrics.inter_protocol_ratio([more], [other]) if together else np.nan,
        "jain": metrics.jain(rates) if together else np.nan,
        "harm_goodput": metrics.harm(before, goodput, more_is_better=True) if together else np.nan,
        "harm_rtt": metrics.harm(float(solo.column("flows", "rtt_mean_s")[0]), rtt, more_is_better=False)
        if together
        else np.nan,
        "starved": float(any(_starved(run, i, warmup) for i in own)) if together else np.nan,
    }


def _starved(run: Run, row: int, warmup: float) -> bool:
    """Whether the flow starved (MET-36). Only bins that end after the warm-up time are considered."""
    t, rates = run.flow_series(row, "goodput_bps")
    _, capacity = run.link_series(int(run.links(TIGHT)[0]), "capacity_bps")
    fair = SHARE_OF_ONE * PAYLOAD * capacity[: t.size]
    later = t[: fair.size] > warmup
    width = float(t[1] - t[0]) if t.size > 1 else 0.0
    return metrics.starved(rates[: fair.size][later], fair[later], width)


def table(found: Sequence[Cell]) -> pa.Table:
    """The cells as a table.

    Each figure has two columns: the mean over seeds, and half the width of the mean's 95 % confidence
    interval.
    """
    columns: dict[str, Any] = {
        "buffer": [cell.buffer for cell in found],
        "algorithm": [cell.algorithm for cell in found],
        "rival": pa.array([cell.rival for cell in found], pa.string()),
        "seeds": pa.array([cell.seeds for cell in found], pa.uint32()),
    }
    for name in FIGURES:
        intervals: list[Interval] = [getattr(cell, name) for cell in found]
        columns[name] = [interval.mean for interval in intervals]
        columns[f"{name}_ci95"] = [interval.half_width for interval in intervals]
    return pa.table(columns)
