"""Compares two congestion windows over time. All functions are pure.

Two runs of the same sawtooth are not synchronised for long, so their windows cannot be subtracted. Instead
this module compares the distributions of window sizes, and the periods of the sawtooth.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

HYSTERESIS = 0.1
"""Half width of the band around the mean, as a fraction of the mean. A window is high if it is above this
band, and low if it is below."""

_QUANTILES = np.linspace(0.005, 0.995, 100)
"""The distance compares these quantiles. Windows of a long run therefore have the same weight as windows of a
short run."""


def distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Mean distance of two distributions of windows (Wasserstein's, order one), divided by the mean of `b`.

    The distance is 0 if both distributions are equal. It is 0.2 if the windows differ on average by a fifth
    of the mean of `b`.
    """
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    if not len(a) or not len(b) or not b.mean():
        return math.nan
    from scipy.stats import wasserstein_distance  # noqa: PLC0415 (slow to import)

    return float(wasserstein_distance(np.quantile(a, _QUANTILES), np.quantile(b, _QUANTILES)) / b.mean())


def period(t: NDArray[np.float64], window: NDArray[np.float64]) -> float:
    """Mean time in s from one rise through the mean to the next; NaN if there are fewer than two rises."""
    mean = np.nanmean(window) if len(window) else math.nan
    rises: list[float] = []
    up = True
    for when, size in zip(t, window, strict=True):
        if up and size < mean * (1 - HYSTERESIS):
            up = False
        elif not up and size > mean * (1 + HYSTERESIS):
            up = True
            rises.append(when)
    return (rises[-1] - rises[0]) / (len(rises) - 1) if len(rises) > 1 else math.nan
