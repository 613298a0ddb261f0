"""Metrics of delay: queueing delay, its summary, and jitter (MET-10 to MET-14)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


def queueing_delay(rtt_s: ArrayLike, rtt_empty_s: float) -> NDArray[np.float64]:
    """Queueing delay in seconds: RTT minus the RTT of the empty network (MET-10; BRF paper, equation 20).

    ``rtt_empty_s`` is computed from the topology. If the smallest RTT of the run replaced it, the result
    would not show a standing queue.
    """
    return np.asarray(np.asarray(rtt_s, dtype=np.float64) - rtt_empty_s, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class DelaySummary:
    """Summary of delays in seconds, as MET-12 defines it. Every packet has the same weight in the summary."""

    mean: float
    median: float
    p95: float
    p99: float
    max: float


def summarise_delay(delay_s: ArrayLike) -> DelaySummary:
    """Mean, median, 95th percentile, 99th percentile and maximum of delays (MET-12).

    NaN samples are left out. If no sample is left, all figures are NaN.
    """
    values = np.asarray(delay_s, dtype=np.float64)
    values = values[~np.isnan(values)]
    if values.size == 0:
        return DelaySummary(math.nan, math.nan, math.nan, math.nan, math.nan)
    median, p95, p99 = np.quantile(values, [0.5, 0.95, 0.99])
    return DelaySummary(float(values.mean()), float(median), float(p95), float(p99), float(values.max()))


def quantile_from_distribution(quantiles: ArrayLike, values: ArrayLike, wanted: float) -> float:
    """The ``wanted`` quantile (0..1) of a distribution that is stored as points, with linear interpolation.

    The result is NaN if there are no points.
    """
    levels = np.asarray(quantiles, dtype=np.float64)
    points = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(points)
    if not known.any():
        return math.nan
    order = np.argsort(levels[known], kind="stable")
    return float(np.interp(wanted, levels[known][order], points[known][order]))


def jitter(delay_s: ArrayLike) -> float:
    """Mean absolute difference of consecutive delays in seconds (MET-14; RFC 3393).

    The result is NaN if there are fewer than two samples.
    """
    values = np.asarray(delay_s, dtype=np.float64)
    values = values[~np.isnan(values)]
    return float(np.abs(np.diff(values)).mean()) if values.size > 1 else math.nan
