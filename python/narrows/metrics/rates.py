"""Metrics of rates: throughput, utilisation, efficiency, gain, and series in bins (MET-1 to MET-7)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def throughput(size_bytes: float, start_s: float, end_s: float) -> float:
    """Rate in bit/s of ``size_bytes`` bytes in ``[start_s, end_s)``.

    The result is MET-1 if ``size_bytes`` counts L3 bytes, and MET-2 if it counts application bytes. The
    result is NaN for an empty window.
    """
    if not end_s > start_s:
        return math.nan
    return 8.0 * size_bytes / (end_s - start_s)


def utilisation(throughput_bps: ArrayLike, capacity_bps: ArrayLike, width_s: ArrayLike = 1.0) -> float:
    """Share of the link's capacity that was used, 0..1 (MET-5).

    Scalars describe one window. For series, the result is the number of carried bits divided by the integral
    of the capacity. If the capacity varies, the result differs from the mean of the bins' utilisations. The
    result is NaN if the capacity is zero.
    """
    width = np.asarray(width_s, dtype=np.float64)
    carried = np.asarray(throughput_bps, dtype=np.float64) * width
    offered = np.asarray(capacity_bps, dtype=np.float64) * width
    carried, offered = np.broadcast_arrays(carried, offered)
    known = ~(np.isnan(carried) | np.isnan(offered))
    total = float(offered[known].sum())
    return float(carried[known].sum()) / total if total > 0 else math.nan


def payload_efficiency(goodput_bps: ArrayLike, capacity_bps: float) -> float:
    """Sum of the goodputs divided by the capacity (MET-6).

    With 1448 B of payload in packets of 1500 B, the result is at most 0.9653.
    """
    if not capacity_bps > 0:
        return math.nan
    return float(np.nansum(np.asarray(goodput_bps, dtype=np.float64))) / capacity_bps


def gain(value: float, baseline: float) -> float:
    """Gain over a baseline in percent (MET-7). For example, a gain of 912 % is a factor of 10.12.

    The result is NaN for a baseline of zero.
    """
    return 100.0 * (value / baseline - 1.0) if baseline != 0 else math.nan


def bin_width(rtt_s: float) -> float:
    """Default width in seconds of the bins of a series: max(100 ms, 2 RTT) (MET-4)."""
    return max(0.1, 2.0 * rtt_s)


def rebin(
    end_s: ArrayLike, values: ArrayLike, width_s: float, *, origin_s: float = 0.0
) -> tuple[Floats, Floats]:
    """Convert a series with narrow bins of equal width to means over wider bins (MET-4).

    ``end_s`` has the time at which each narrow bin ends, as in tables of samples. Returns the start of each
    wide bin and the mean of its values. NaN values (no active flow) are left out. A wide bin with only
    NaN values is omitted.
    """
    ends = np.asarray(end_s, dtype=np.float64)
    data = np.asarray(values, dtype=np.float64)
    if ends.shape != data.shape:
        raise ValueError(f"{ends.size} times for {data.size} values")
    if not width_s > 0:
        raise ValueError(f"a bin must be wider than 0 s, not {width_s}")
    known = ~np.isnan(data)
    # A sample exactly at the end of a wide bin belongs to that bin. A tolerance of a nanosecond allows for
    # rounding in the division.
    index = np.ceil((ends[known] - origin_s) / width_s - 1e-9 / width_s).astype(np.int64) - 1
    wide, inverse, counts = np.unique(index, return_inverse=True, return_counts=True)
    sums = np.bincount(inverse, weights=data[known], minlength=wide.size)
    return np.asarray(origin_s + wide * width_s, dtype=np.float64), np.asarray(sums / counts)
