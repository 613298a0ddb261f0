"""Means with confidence intervals over seeds, and paired differences (MET-90, MET-91)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

CONFIDENCE = 0.95
"""Level of a confidence interval if no other level is given."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over ``n`` independent runs and its confidence interval.

    The bounds are NaN for fewer than two runs.
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        """Half of the width of the interval."""
        return (self.high - self.low) / 2.0

    def excludes(self, value: float) -> bool:
        """Whether ``value`` lies outside the interval; never, if the interval is unknown."""
        return self.low > value or self.high < value


def mean_ci(values: ArrayLike, level: float = CONFIDENCE) -> Interval:
    """Mean and Student-t interval over seeds (MET-90).

    NaN values are left out, and ``n`` is the number of the other values. Give one value per seed, because
    bins of one run are not replicates.
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    x = x[~np.isnan(x)]
    if x.size == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(x.mean())
    if x.size == 1:
        return Interval(mean, math.nan, math.nan, 1)
    half = t_quantile(0.5 + level / 2.0, x.size - 1) * float(x.std(ddof=1)) / math.sqrt(x.size)
    return Interval(mean, mean - half, mean + half, int(x.size))


def paired_difference(a: ArrayLike, b: ArrayLike, level: float = CONFIDENCE) -> Interval:
    """Interval of the mean of ``a - b``, seed by seed (MET-91).

    "A above B" holds if the interval lies above zero.
    """
    first = np.asarray(a, dtype=np.float64)
    second = np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"expected pairs, found {first.size} and {second.size} values")
    return mean_ci(first - second, level)


@lru_cache(maxsize=256)
def t_quantile(probability: float, dof: int) -> float:
    """The ``probability`` quantile of Student's t with ``dof`` degrees of freedom (a whole number).

    For a whole number of degrees P(|T| < t) is a finite sum in the angle theta = atan(t / sqrt(dof))
    (Abramowitz and Stegun 26.7.3 and 26.7.4). The sum grows with theta, and theta is bounded, so halving the
    interval finds the root to the last digit.
    """
    if dof < 1 or not 0.0 < probability < 1.0:
        raise ValueError(f"no t quantile for probability {probability} and {dof} degrees of freedom")
    if probability == 0.5:
        return 0.0
    wanted = abs(2.0 * probability - 1.0)
    low, high = 0.0, math.pi / 2.0
    while True:
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        if _central_probability(middle, dof) < wanted:
            low = middle
        else:
            high = middle
    return math.copysign(math.tan(middle) * math.sqrt(dof), probability - 0.5)


def _central_probability(theta: float, dof: int) -> float:
    """P(|T| < sqrt(dof) tan(theta)) for ``dof`` degrees of freedom."""
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = dof % 2 == 1
    if dof == 1:
        return 2.0 * theta / math.pi
    term = cosine if odd else 1.0
    total = term
    for k in range(3 if odd else 2, dof - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2.0 / math.pi * (theta + sine * total) if odd else sine * total
