"""Measures that compare allotted and sending rates with max-min shares and with the capacity of links."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from narrows import metrics
from narrows.results.measures.general import rate_matrix
from narrows.results.measures.registry import Measured, measure
from narrows.results.runs import Floats, Run

Routes = Mapping[str, Sequence[str]]
"""For each pattern of flows, the links on their paths that may limit these flows."""
Demands = Mapping[str, float]
"""For each pattern of flows with limited data, the rate of their application in Mbit/s. Other flows have
unlimited data."""


@measure("Jain's index against max-min shares", "", "MET-31, MET-60")
def jain_max_min(run: Run, routes: Routes, demands_mbit: Demands | None = None) -> float:
    """Jain's index of each flow's goodput divided by its max-min share of the links on its route.

    `routes` maps patterns of flows to links. `demands_mbit` maps patterns of flows with limited data to their
    rates.
    """
    rows, crossed, demands = _flows(run, routes, demands_mbit or {})
    links = _links(crossed)
    capacities = [float(run.column("links", "capacity_bps")[run.link(name)]) for name in links]
    shares = metrics.max_min_shares(
        capacities, [[links.index(n) for n in route] for route in crossed], demands
    )
    return metrics.demand_aware_jain(run.column("flows", "goodput_bps")[rows], shares)


@measure("Error of the allotted rate", "%", "MET-81")
def allocation_error(
    run: Run, routes: Routes, demands_mbit: Demands | None = None, after_s: float = 3.0
) -> float:
    """Mean of |allotted rate - max-min share| / share over the samples of all flows, from `after_s` on.

    The allotted rate is the smallest rate that any switch allots to the flow. If switches store no rate per
    flow, the allotted rate is the pacing rate of the sender. If senders do not pace either, the value is
    undefined.
    """
    told, fair, _ = _allotted(run, routes, demands_mbit or {}, after_s)
    known = np.isfinite(told) & np.isfinite(fair)
    return (
        100.0 * float(metrics.allocation_error(told[known], fair[known]).mean()) if known.any() else math.nan
    )


@measure("Time with allotted rates above the capacity", "%", "MET-81")
def time_above_capacity(run: Run, link: str, flows: str = "*", after_s: float = 3.0) -> float:
    """Share of samples in which the sum of the flows' allotted rates is above the link's capacity."""
    told, _, capacity = _allotted(run, {flows: [link]}, {}, after_s)
    known = np.isfinite(told).any(axis=1)
    return 100.0 * metrics.time_above_capacity(told[known], capacity[known, 0]) if known.any() else math.nan


@measure("Responsiveness", "s", "MET-64")
def responsiveness(run: Run, link: str, change_s: float, bin_s: float = 0.1, flows: str = "*") -> Measured:
    """Time from a change of the link's capacity until a flow's sending rate is within 10 % of its new share.

    The value is the mean over the flows. It is a lower bound if a flow was not within 10 % of its share
    before the next change. The share of each flow is the capacity divided by the number of flows.
    """
    starts, rates = rate_matrix(run, flows, bin_s, "send_bps")
    capacity = _capacity(run, link, starts + bin_s)
    later = starts >= change_s - 1e-9
    if not later.any():
        return Measured(math.nan)
    new = capacity[later][0]
    until = later & (np.cumsum(later & (np.abs(capacity - new) > 1e-6 * new)) == 0)
    times = [
        metrics.responsiveness(starts[until], rates[until, i], new / rates.shape[1], change_s=change_s)
        for i in range(rates.shape[1])
    ]
    mean = metrics.mean_censored(times)
    return Measured(mean.seconds, mean.censored)


def _allotted(
    run: Run, routes: Routes, demands_mbit: Demands, after_s: float
) -> tuple[Floats, Floats, Floats]:
    """The allotted rates and the max-min shares of the active flows, and the capacities of the links.

    A row is a sample, and a column is a flow or a link. NaN means that the flow is not active or has no rate.
    """
    rows, crossed, demands = _flows(run, routes, demands_mbit)
    links = _links(crossed)
    series = [run.flow_series(int(row), "allocation_bps") for row in rows]
    paced = [run.flow_series(int(row), "pacing_bps") for row in rows]
    times = np.unique(np.concatenate([t for t, _ in series])) if series else np.empty(0)
    times = times[times > after_s]
    told = np.full((times.size, len(series)), math.nan)
    for column, ((t, allotted), (_, pacing)) in enumerate(zip(series, paced, strict=True)):
        values = np.where(np.isfinite(allotted), allotted, pacing)
        late = t > after_s
        told[np.searchsorted(times, t[late]), column] = values[late]
    begins, ends = run.column("flows", "start_s")[rows], run.column("flows", "end_s")[rows]
    ends = np.where(np.isnan(ends), math.inf, ends)
    active = (begins[None, :] < times[:, None]) & (ends[None, :] > times[:, None])
    capacity = np.column_stack([_capacity(run, name, times) for name in links])
    fair = _shares(active, capacity, [[links.index(name) for name in route] for route in crossed], demands)
    return np.where(active, told, math.nan), fair, capacity


def _shares(active: np.ndarray, capacity: Floats, routes: list[list[int]], demands: Floats) -> Floats:
    """The max-min shares of the active flows at each time."""
    fair = np.full(active.shape, math.nan)
    known: dict[tuple[bytes, bytes], Floats] = {}
    for at, (now, bits) in enumerate(zip(active, capacity, strict=True)):
        key = (now.tobytes(), bits.tobytes())
        chosen = np.flatnonzero(now)
        if key not in known:
            shared = [routes[flow] for flow in chosen]
            known[key] = metrics.max_min_shares(list(bits), shared, demands[chosen])
        fair[at, chosen] = known[key]
    return fair


def _flows(run: Run, routes: Routes, demands_mbit: Demands) -> tuple[np.ndarray, list[list[str]], Floats]:
    """Rows of the flows that have a route, the links on each route, and the flows' demands in bit/s."""
    rows = [(int(row), pattern) for pattern in routes for row in run.flows(pattern)]
    limits = {int(row): 1e6 * rate for pattern, rate in demands_mbit.items() for row in run.flows(pattern)}
    crossed = [list(routes[pattern]) for _, pattern in rows]
    demands = np.array([limits.get(row, math.inf) for row, _ in rows])
    return np.array([row for row, _ in rows], dtype=np.int64), crossed, demands


def _links(crossed: list[list[str]]) -> list[str]:
    return list(dict.fromkeys(name for route in crossed for name in route))


def _capacity(run: Run, link: str, times: Floats) -> Floats:
    """The capacity of a sampled link in bit/s at these times.

    After the last sample, the last sampled capacity is used.
    """
    t, values = run.link_series(run.link(link), "capacity_bps")
    if t.size == 0:
        return np.full(times.shape, math.nan)
    return values[np.clip(np.searchsorted(t, times - 1e-9), 0, t.size - 1)]
