"""Metrics of the convergence of a new flow to its fair share (MET-60 to MET-64)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from narrows.metrics.fairness import jain


@dataclass(frozen=True, slots=True)
class Censored:
    """A time in seconds or, if the event was not observed, a lower bound for this time (right-censored)."""

    seconds: float
    censored: bool = False

    def __str__(self) -> str:
        return f"{'> ' if self.censored else ''}{self.seconds:.3g} s"


def convergence_time(
    start_s: ArrayLike,
    width_s: float,
    rates: ArrayLike,
    newcomer: int,
    fair: ArrayLike,
    utilisation: ArrayLike,
    *,
    join_s: float,
    until_s: float,
    hold: int = 5,
    tolerance: float = 0.2,
    min_jain: float = 0.95,
    min_utilisation: float = 0.9,
) -> Censored:
    """Time from a flow's start to the first of ``hold`` consecutive bins with its fair share (MET-61).

    Section 4.4 of the BRF paper describes this metric. Each of the ``hold`` bins must meet three conditions.
    The new flow's rate is within ``tolerance`` of the fair share. Jain's index over the active flows is at
    least ``min_jain``. The link's utilisation is at least ``min_utilisation``.

    ``start_s``: start of each bin. ``rates``: a matrix of bins by flows, with NaN where a flow is not active.
    ``fair``: fair share in each bin (MET-60). ``utilisation``: utilisation of the bottleneck in each bin.
    ``until_s``: time of the next join or leave of a flow, or the end of the run. If the flow did not converge
    before ``until_s``, the result is the lower bound ``until_s - join_s``.
    """
    starts = np.asarray(start_s, dtype=np.float64)
    matrix = np.asarray(rates, dtype=np.float64)
    target = np.broadcast_to(np.asarray(fair, dtype=np.float64), starts.shape)
    used = np.broadcast_to(np.asarray(utilisation, dtype=np.float64), starts.shape)
    slack = 1e-9
    inside = (starts >= join_s - slack) & (starts + width_s <= until_s + slack)
    run = 0
    for index in np.flatnonzero(inside):
        if (
            abs(matrix[index, newcomer] - target[index]) <= tolerance * target[index]
            and used[index] >= min_utilisation
            and jain(matrix[index]) >= min_jain
        ):
            run += 1
            if run == hold:
                waited = float(starts[index]) - (hold - 1) * width_s - join_s
                return Censored(max(0.0, round(waited, 9)))
        else:
            run = 0
    return Censored(until_s - join_s, censored=True)


def mean_censored(times: Iterable[Censored]) -> Censored:
    """Mean convergence time over joins (MET-63).

    If at least one time is only a lower bound (censored), the mean is a lower bound, too.
    """
    known = list(times)
    if not known:
        return Censored(math.nan)
    return Censored(sum(time.seconds for time in known) / len(known), any(time.censored for time in known))


def epsilon_fair(rates: ArrayLike, epsilon: float) -> bool:
    """Whether the smallest rate is at least (1 - epsilon) times the largest (MET-62; RFC 5166, 2.3.4)."""
    x = np.asarray(rates, dtype=np.float64)
    x = x[~np.isnan(x)]
    return bool(x.size and x.max() > 0 and x.min() / x.max() >= 1.0 - epsilon)


def responsiveness(
    start_s: ArrayLike, rate_bps: ArrayLike, fair_bps: float, *, change_s: float, within: float = 0.1
) -> Censored:
    """Time from a change of capacity until the rate is first within 10 % of the new fair share (MET-64)."""
    starts = np.asarray(start_s, dtype=np.float64)
    rates = np.asarray(rate_bps, dtype=np.float64)
    after = starts >= change_s - 1e-9
    near = after & (np.abs(rates - fair_bps) <= within * fair_bps)
    if near.any():
        return Censored(max(0.0, float(starts[near][0]) - change_s))
    end = float(starts[-1]) if starts.size else change_s
    return Censored(max(0.0, end - change_s), censored=True)
