"""Metrics of power, which is throughput divided by delay (MET-40, MET-41)."""

from __future__ import annotations

import math


def power(throughput: float, delay: float, exponent: float = 1.0) -> float:
    """X^a / D, in the units of the arguments (MET-40). The PACEC paper uses Mbit/s per ms (equation 10).

    The result is NaN if the delay is zero.
    """
    return throughput**exponent / delay if delay > 0 else math.nan


def normalised_power(
    throughput_bps: float, capacity_bps: float, delay_s: float, no_load_delay_s: float, exponent: float = 1.0
) -> float:
    """(X/C)^a (D0/D), 0..1 (MET-40; Kleinrock).

    The value 1 means that the full capacity is used and there is no queue.
    """
    if not (capacity_bps > 0 and delay_s > 0):
        return math.nan
    return float((throughput_bps / capacity_bps) ** exponent * (no_load_delay_s / delay_s))


def log_score(throughput: float, delay: float, delta: float = 0.5) -> float:
    """Log X - delta log D, for plots (MET-41).

    The result is NaN unless both throughput and delay are above zero.
    """
    return math.log(throughput) - delta * math.log(delay) if throughput > 0 and delay > 0 else math.nan
