"""Computes means with confidence intervals over seeds, and differences of two sides (MET-90 to MET-93).

SciPy is imported by the functions that need it, because importing it takes longer than a short run.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
"""Default level of a confidence interval."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over ``n`` independent runs and its confidence interval.

    If there are fewer than two runs, the bounds are NaN.
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
        """Whether ``value`` is outside the interval. The result is false if the interval is unknown."""
        return self.low > value or self.high < value


@dataclass(frozen=True, slots=True)
class Difference(Interval):
    """The mean difference of two sides, with its confidence interval and a two-sided t-test.

    ``n`` is the number of pairs. If the runs are not paired, ``n`` is the number of runs on the side with
    fewer runs.
    """

    p: float
    """Probability of a difference of at least this size if the true difference is zero.

    NaN for fewer than two runs.
    """


def mean_ci(values: ArrayLike, level: float = CONFIDENCE) -> Interval:
    """Mean and Student-t interval over seeds (MET-90).

    NaN values are left out, and ``n`` is the number of the remaining values. Pass one value per seed: the
    bins of one run would not be independent samples.
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


def paired_difference(a: ArrayLike, b: ArrayLike, level: float = CONFIDENCE) -> Difference:
    """The mean of ``a - b``, seed by seed (MET-91). A seed for which ``a`` or ``b`` is NaN is left out.

    Say that A is above B only if the whole interval is above zero.
    """
    first = np.asarray(a, dtype=np.float64)
    second = np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"expected pairs, found {first.size} and {second.size} values")
    differences = first - second
    differences = differences[~np.isnan(differences)]
    interval = mean_ci(differences, level)
    if interval.n < 2:
        return _without_test(interval)
    rounding = _rounding(first, second)
    if np.ptp(differences) <= rounding:
        # If all differences are equal, the t-test is undefined, so the exact sign test is used.
        mean = interval.mean if abs(interval.mean) > rounding else 0.0
        return _constant(mean, interval.n, 2.0 ** (1 - interval.n))
    from scipy.stats import ttest_1samp

    return Difference(
        interval.mean, interval.low, interval.high, interval.n, float(ttest_1samp(differences, 0.0).pvalue)
    )


def unpaired_difference(a: ArrayLike, b: ArrayLike, level: float = CONFIDENCE) -> Difference:
    """The mean of ``a`` minus the mean of ``b`` for runs with different seeds (MET-92, Welch's t-test).

    NaN values are left out.
    """
    first, second = (np.asarray(x, dtype=np.float64).ravel() for x in (a, b))
    first, second = first[~np.isnan(first)], second[~np.isnan(second)]
    n = min(first.size, second.size)
    mean = float(first.mean() - second.mean()) if n else math.nan
    if n < 2:
        return _without_test(Interval(mean, math.nan, math.nan, n))
    rounding = _rounding(first, second)
    if max(np.ptp(first), np.ptp(second)) <= rounding:
        mean = mean if abs(mean) > rounding else 0.0
        # Use an exact permutation test. Among all possible divisions of the values into two sides, the actual
        # division has the largest difference. If the sides have equally many values, the division with
        # exchanged sides has the same difference.
        extreme = 2.0 if first.size == second.size else 1.0
        return _constant(mean, n, extreme / math.comb(first.size + second.size, n))
    from scipy.stats import ttest_ind

    with warnings.catch_warnings():
        # If all values of one side are equal, SciPy warns of a possible loss of precision. Ignore this
        # warning.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = ttest_ind(first, second, equal_var=False)
        bounds = test.confidence_interval(level)
    return Difference(mean, float(bounds.low), float(bounds.high), n, float(test.pvalue))


def _rounding(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The largest difference between two values that rounding alone can explain."""
    largest = max(np.nanmax(np.abs(first)), np.nanmax(np.abs(second)))
    return float(8 * np.finfo(np.float64).eps * largest)


def _without_test(interval: Interval) -> Difference:
    return Difference(interval.mean, math.nan, math.nan, interval.n, math.nan)


def _constant(difference: float, n: int, p: float) -> Difference:
    """A difference that is the same for all seeds, so that its interval has no width."""
    return Difference(difference, difference, difference, n, 1.0 if difference == 0 else p)


def adjusted(p_values: Sequence[float]) -> list[float]:
    """The p-values, corrected for multiple tests (MET-93, Benjamini and Hochberg).

    Suppose that all figures with a corrected value of at most L are reported as changed. The expected share
    of these figures that did not really change is at most L. If nothing has changed, the probability of
    finding any change is at most L.
    """
    if not p_values:
        return []
    from scipy.stats import false_discovery_control

    return [float(p) for p in false_discovery_control(p_values)]


@lru_cache(maxsize=256)
def t_quantile(probability: float, dof: float) -> float:
    """The ``probability`` quantile of Student's t with ``dof`` degrees of freedom."""
    if dof <= 0 or not 0.0 < probability < 1.0:
        raise ValueError(f"no t quantile for probability {probability} and {dof} degrees of freedom")
    from scipy.special import stdtrit

    return float(stdtrit(dof, probability))
