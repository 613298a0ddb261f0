"""Errors of a router's estimates and allocations (MET-80, MET-81)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class CountError:
    """Relative error of an estimate of the number of flows, averaged over time."""

    mean_absolute: float
    bias: float
    rms: float


def count_error(estimated: ArrayLike, actual: ArrayLike) -> CountError:
    """|Nhat - N| / N averaged over the samples, with bias and RMS (MET-80).

    Samples at times without any flow are left out.
    """
    truth = np.asarray(actual, dtype=np.float64)
    guess = np.asarray(estimated, dtype=np.float64)
    known = (truth > 0) & ~np.isnan(guess)
    if not known.any():
        return CountError(math.nan, math.nan, math.nan)
    error = (guess[known] - truth[known]) / truth[known]
    return CountError(float(np.abs(error).mean()), float(error.mean()), float(np.sqrt((error**2).mean())))


def allocation_error(allocated_bps: ArrayLike, fair_bps: ArrayLike) -> NDArray[np.float64]:
    """The allocation error |BW_alloc - f| / f of each flow (MET-81)."""
    fair = np.asarray(fair_bps, dtype=np.float64)
    return np.asarray(np.abs(np.asarray(allocated_bps, dtype=np.float64) - fair) / fair, dtype=np.float64)


def time_above_capacity(allocated_bps: ArrayLike, capacity_bps: ArrayLike) -> float:
    """Fraction of the samples in which the sum of the allocations exceeds the capacity (MET-81)."""
    totals = np.nansum(np.atleast_2d(np.asarray(allocated_bps, dtype=np.float64)), axis=1)
    return float((totals > np.asarray(capacity_bps, dtype=np.float64)).mean()) if totals.size else math.nan
