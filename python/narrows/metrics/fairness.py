"""Metrics of fairness between flows, shares, and harm (MET-30 to MET-36, MET-60)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def jain(rates: ArrayLike) -> float:
    """Jain's index, in the range 1/n .. 1 (MET-30; Jain, Chiu, Hawe, DEC-TR-301).

    ``rates``: the goodput of each flow over an interval in which all flows are active. NaN values (inactive
    flows) are left out. The result is NaN if there is no flow, or if all rates are zero.
    """
    x = _active(rates)
    if x.size == 0 or not x.max() > 0:
        return math.nan
    x = x / x.max()  # so that the squares of tiny and huge rates neither underflow nor overflow
    return min(1.0, float(x.sum() ** 2 / (x.size * (x**2).sum())))


@dataclass(frozen=True, slots=True)
class WindowedJain:
    """Jain's index of each bin (MET-30, variant `windowed`)."""

    series: Floats
    mean: float
    min: float


def jain_windowed(rates: ArrayLike) -> WindowedJain:
    """Jain's index of each row of a matrix of bins by flows, and the mean and minimum of the indices.

    A NaN in the matrix means that the flow is not active in the bin.
    """
    matrix = np.asarray(rates, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"a matrix of bins by flows is needed, not {matrix.ndim} dimension(s)")
    series = np.array([jain(row) for row in matrix], dtype=np.float64)
    known = series[~np.isnan(series)]
    if known.size == 0:
        return WindowedJain(series, math.nan, math.nan)
    return WindowedJain(series, float(known.mean()), float(known.min()))


def demand_aware_jain(rates: ArrayLike, fair_rates: ArrayLike) -> float:
    """Jain's index of the rates divided by their max-min fair rates (MET-31).

    A flow with a low demand has a low fair rate.
    """
    fair = np.asarray(fair_rates, dtype=np.float64)
    if (fair <= 0).any():
        raise ValueError("a fair rate must be above zero")
    return jain(np.asarray(rates, dtype=np.float64) / fair)


def two_flow_ratio(index: float) -> float:
    """The ratio r >= 1 of the larger to the smaller of two rates whose Jain index is ``index`` (MET-32).

    The result is infinite for an index of 1/2, and NaN outside 1/2..1.
    """
    if math.isnan(index) or not 0.5 <= index <= 1.0:
        return math.nan
    a = 2.0 * index - 1.0
    return (2.0 + math.sqrt(4.0 - 4.0 * a * a)) / (2.0 * a) if a > 0 else math.inf


def share(rate: float, others: ArrayLike) -> float:
    """``rate`` divided by the sum of ``rate`` and ``others``, 0..1 (MET-33). NaN if all rates are zero."""
    total = rate + float(np.nansum(np.asarray(others, dtype=np.float64)))
    return rate / total if total > 0 else math.nan


def inter_protocol_ratio(rates_a: ArrayLike, rates_b: ArrayLike) -> float:
    """Mean rate per flow of class A, divided by the mean rate per flow of class B (MET-34).

    The result is NaN if one of the classes has no flows, and infinite if the rates of B are zero.
    """
    a, b = _active(rates_a), _active(rates_b)
    if a.size == 0 or b.size == 0:
        return math.nan
    mean_a, mean_b = float(a.mean()), float(b.mean())
    if mean_b == 0:
        return math.inf if mean_a > 0 else math.nan
    return mean_a / mean_b


def harm(solo: float, with_competitor: float, *, more_is_better: bool) -> float:
    """Harm done to a victim, in the range (-inf, 1] (MET-35; Ware et al., HotNets 2019).

    A value of at most 0 means that there is no harm. ``solo``: the victim's metric when the victim runs
    alone. ``with_competitor``: the same metric when the victim shares the bottleneck. ``more_is_better`` is
    true for rates, and false for delays and completion times. The result is NaN if the denominator is zero.
    """
    lost, whole = (
        (solo - with_competitor, solo) if more_is_better else (with_competitor - solo, with_competitor)
    )
    return lost / whole if whole > 0 else math.nan


def starved(
    rate_bps: ArrayLike, fair_bps: ArrayLike, width_s: float, *, below: float = 0.05, longer_s: float = 10.0
) -> bool:
    """Whether a flow had less than 5 % of its fair share for more than 10 s without a break (MET-36).

    A bin whose value is NaN interrupts a period of starvation.
    """
    low = np.asarray(rate_bps, dtype=np.float64) < below * np.asarray(fair_bps, dtype=np.float64)
    longest = run = 0
    for is_low in low:
        run = run + 1 if is_low else 0
        longest = max(longest, run)
    return longest * width_s > longer_s


def max_min_share(capacity_bps: float, demands_bps: ArrayLike) -> Floats:
    """Max-min fair rates of flows that share one link (MET-60).

    An unlimited flow has an infinite demand.
    """
    demands = np.asarray(demands_bps, dtype=np.float64)
    return max_min_shares([capacity_bps], [[0]] * demands.size, demands)


def max_min_shares(
    capacities_bps: Sequence[float], routes: Sequence[Sequence[int]], demands_bps: ArrayLike | None = None
) -> Floats:
    """Max-min fair rates of a network by progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2).

    For each flow, ``routes`` has the indices of the links that the flow crosses.
    """
    count = len(routes)
    demands = np.full(count, math.inf) if demands_bps is None else np.asarray(demands_bps, dtype=np.float64)
    left = np.asarray(capacities_bps, dtype=np.float64).copy()
    crosses = np.zeros((left.size, count))
    for flow, route in enumerate(routes):
        crosses[list(route), flow] = 1.0
    rates = np.zeros(count)
    growing = demands > 0
    while growing.any():
        load = crosses[:, growing].sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            per_flow = np.where(load > 0, left / load, math.inf)
        step = min(float(per_flow.min(initial=math.inf)), float((demands - rates)[growing].min()))
        if not math.isfinite(step):
            raise ValueError("a flow with infinite demand crosses no link")
        rates[growing] += step
        left = np.maximum(left - step * load, 0.0)
        full = (load > 0) & (left <= 1e-12 * np.asarray(capacities_bps, dtype=np.float64))
        stopped = (rates >= demands * (1 - 1e-12)) | (crosses[full].sum(axis=0) > 0)
        growing &= ~stopped
    return rates


def _active(rates: ArrayLike) -> Floats:
    x = np.asarray(rates, dtype=np.float64).ravel()
    x = x[~np.isnan(x)]
    if (x < 0).any():
        raise ValueError("a rate cannot be negative")
    return x
