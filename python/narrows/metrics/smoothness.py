"""Metrics of the smoothness of a rate (MET-50, MET-51)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Smoothness:
    """Mean relative change per period.

    A lower value means a smoother rate. The value depends on the length of a period, so always state this
    length together with the value.
    """

    index: float
    """Mean of |x_i - x_(i-1)| / x_(i-1) over all i for which this term is defined (NaN: more than 5 % of the
    terms are undefined)."""
    skipped: int
    """Number of terms that were left out because x_(i-1) was zero."""
    variation: float
    """Coefficient of variation of the samples."""


def smoothness(rates: ArrayLike, *, times_s: ArrayLike | None = None, skip_s: float = 2.0) -> Smoothness:
    """Smoothness of a series with one mean rate per update period (MET-50, MET-51).

    The definitions are equations 11 and 12 of the PACEC paper.

    ``times_s`` is the start of each period, counted from the flow's start. If ``times_s`` is given, periods
    before ``skip_s`` are left out, because the relative size of the first jump from zero is undefined. The
    paper's formula divides by the number of samples, but this function divides by the number of differences.
    """
    x = np.asarray(rates, dtype=np.float64)
    if times_s is not None:
        x = x[np.asarray(times_s, dtype=np.float64) >= skip_s]
    x = x[~np.isnan(x)]
    before, after = x[:-1], x[1:]
    valid = before > 0
    skipped = int((~valid).sum())
    terms = np.abs(after[valid] - before[valid]) / before[valid]
    undefined = terms.size == 0 or skipped > 0.05 * before.size
    return Smoothness(math.nan if undefined else float(terms.mean()), skipped, coefficient_of_variation(x))


def coefficient_of_variation(values: ArrayLike) -> float:
    """Standard deviation, with n - 1 in its denominator, divided by the mean.

    The result is NaN if there are fewer than two samples, or if the mean is zero.
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[~np.isnan(x)]
    mean = float(x.mean()) if x.size else 0.0
    return float(x.std(ddof=1)) / mean if x.size > 1 and mean != 0 else math.nan
