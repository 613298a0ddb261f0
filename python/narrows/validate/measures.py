"""Figures of a cell's runs, and the errors between simulated and real runs.

The functions are pure, except for reading tables.

The simulator and real stacks are measured in the same way. A kernel reports its smoothed RTT, so the
simulator's smoothed RTT is used too. Both RTTs are sampled every 50 ms. A sample's weight is the number of
bytes delivered since the previous sample.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from narrows.results.by_run import read_runs
from narrows.results.results import Results
from narrows.results.runs import Run
from narrows.validate import shape

Array = NDArray[np.float64]

FIGURES = ("goodput_bps", "rtt_mean_s", "rtt_p95_s", "resent", "cwnd_mean", "period_s")
"""Figures of a flow in a run. `resent` is the share of segments that were retransmissions."""


@dataclass(frozen=True)
class Side:
    """Several runs of a cell's flow on one side (simulated or real)."""

    figures: dict[str, list[float]]
    """Values per run, by figure."""
    windows: list[tuple[Array, Array]] = field(default_factory=list)
    """Time (s) and window (segments) in the measurement interval, per run (empty: not known)."""
    seeds: list[int] = field(default_factory=list)
    """Seeds of the runs."""

    def of(self, seeds: Collection[int]) -> Side:
        """The values of the runs with these seeds only."""
        kept = [run for run, seed in enumerate(self.seeds) if seed in seeds]
        return Side(
            {figure: [values[run] for run in kept] for figure, values in self.figures.items()},
            [self.windows[run] for run in kept],
            [self.seeds[run] for run in kept],
        )

    def median(self, figure: str) -> float:
        """The median of a figure over the runs; NaN if no run has a value."""
        return median(self.figures.get(figure, []))

    def range(self, figure: str) -> tuple[float, float]:
        """The smallest and the largest value of a figure over the runs."""
        values = [value for value in self.figures.get(figure, []) if not math.isnan(value)]
        return (min(values), max(values)) if values else (math.nan, math.nan)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return max((len(values) for values in self.figures.values()), default=0)


def sides(results: Results, *, disturbed: bool = False) -> dict[str, Side]:
    """The flows by name. Only sound runs are used, or only disturbed runs if `disturbed` is true."""
    unsound = {int(run) for run, verdict in results.soundness.items() if not verdict["sound"]}
    numbers = results.runs["run"].to_pylist()
    found: dict[str, Side] = {}
    for number, run in zip(numbers, read_runs(results), strict=True):
        if (number in unsound) is disturbed:
            for row, name in enumerate(run.names("flows", "name")):
                side = found.setdefault(name, Side({figure: [] for figure in FIGURES}))
                _add(side, run, row, results.warmup_s)
    return found


def _add(side: Side, run: Run, row: int, warmup: float) -> None:
    """Add the figures of the flow in this row of the table `flows`."""
    t, window = run.flow_series(row, "cwnd")
    later = t > warmup
    t, window = t[later], window[later]
    side.windows.append((t, window))
    side.seeds.append(run.seed)
    side.figures["goodput_bps"].append(float(run.column("flows", "goodput_bps")[row]))
    rtt, rate = (run.flow_series(row, quantity)[1][later] for quantity in ("srtt_s", "goodput_bps"))
    mean, p95 = weighted(rtt, rate)
    side.figures["rtt_mean_s"].append(mean)
    side.figures["rtt_p95_s"].append(p95)
    sent, resent = (float(run.column("flows", name)[row]) for name in ("sent_packets", "retransmits"))
    side.figures["resent"].append(resent / sent if sent else math.nan)
    side.figures["cwnd_mean"].append(float(window.mean()) if len(window) else math.nan)
    side.figures["period_s"].append(shape.period(t, window))


def together(parts: Iterable[dict[str, Side]]) -> dict[str, Side]:
    """Flows by name, with the runs of all parts."""
    found: dict[str, Side] = {}
    for part in parts:
        for name, side in part.items():
            whole = found.setdefault(name, Side({figure: [] for figure in side.figures}))
            whole.windows.extend(side.windows)
            whole.seeds.extend(side.seeds)
            for figure, values in side.figures.items():
                whole.figures[figure] += values
    return found


def weighted(values: Array, weights: Array) -> tuple[float, float]:
    """The weighted mean and the weighted 95th percentile of the values."""
    known = np.isfinite(values) & (weights > 0)
    values, weights = values[known], weights[known]
    if not len(values):
        return math.nan, math.nan
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    place = min(int(np.searchsorted(reached, 0.95)), len(values) - 1)
    return float(np.average(values, weights=weights)), float(values[order][place])


def median(values: Iterable[float]) -> float:
    """The median of the defined values; NaN if there are none."""
    defined = [value for value in values if not math.isnan(value)]
    return float(np.median(defined)) if defined else math.nan


def error(model: Side, real: Side, figure: str) -> float:
    """(model - real) / real with medians over runs.

    For `resent` the error is the difference, because the share may be zero.
    """
    a, b = model.median(figure), real.median(figure)
    if figure == "resent":
        return a - b
    return (a - b) / b if b else math.nan


def window_distance(model: Side, real: Side) -> float:
    """`shape.distance` between the simulated and the real windows, over all runs."""
    both = [[window for _, window in side.windows if len(window)] for side in (model, real)]
    if not all(both):
        return math.nan
    return shape.distance(np.concatenate(both[0]), np.concatenate(both[1]))
