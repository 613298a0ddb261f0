"""Metrics of flow completion time (MET-70 to MET-73)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def ideal_fct(size_l3_bytes: float, capacity_bps: float, rtt_s: float) -> float:
    """Completion time in seconds on an empty network.

    The time is the sum of three parts: one RTT for the handshake, one RTT from the first data to the last
    ACK, and the transmission time (MET-71).
    """
    return 2.0 * rtt_s + 8.0 * size_l3_bytes / capacity_bps if capacity_bps > 0 else math.nan


def slowdown(fct_s: ArrayLike, ideal_s: ArrayLike) -> Floats:
    """Completion time divided by the ideal completion time (MET-71).

    The result is NaN for flows that did not finish or have no ideal time.
    """
    ideal = np.asarray(ideal_s, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ideal > 0, np.asarray(fct_s, dtype=np.float64) / ideal, math.nan)


@dataclass(frozen=True, slots=True)
class SizeGroup:
    """The slowdown of the flows whose sizes are in one group."""

    low_bytes: float
    high_bytes: float
    finished: int
    unfinished: int
    mean: float
    p99: float


def slowdown_by_size(size_bytes: ArrayLike, slowdowns: ArrayLike, groups: int = 10) -> list[SizeGroup]:
    """For each decile of the flows' sizes, the mean and the 99th percentile of the slowdown (MET-72).

    Unfinished flows (NaN) are counted separately.
    """
    sizes = np.asarray(size_bytes, dtype=np.float64)
    values = np.asarray(slowdowns, dtype=np.float64)
    order = np.argsort(sizes, kind="stable")
    result = []
    for part in np.array_split(order, groups):
        if part.size == 0:
            continue
        done = values[part][~np.isnan(values[part])]
        mean, p99 = (
            (float(done.mean()), float(np.quantile(done, 0.99))) if done.size else (math.nan, math.nan)
        )
        low, high = float(sizes[part].min()), float(sizes[part].max())
        result.append(SizeGroup(low, high, int(done.size), int(part.size - done.size), mean, p99))
    return result


def processor_sharing_fct(size_bytes: float, capacity_bps: float, load: float) -> float:
    """Mean completion time (s) of a flow of this size in an M/G/1 queue with processor sharing (MET-73)."""
    return 8.0 * size_bytes / (capacity_bps * (1.0 - load)) if 0 <= load < 1 else math.nan
