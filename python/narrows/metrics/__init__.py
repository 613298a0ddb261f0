"""Defines every figure that Narrows prints. Each figure has only one definition.

The functions have no side effects. They take numpy arrays and return numbers, and do not depend on tables,
scenarios or plots. The docstring of a function gives the id of its definition (``MET-n``, as in
docs/reference/metrics.md) and the source of the definition (RFC 5166, Jain et al. 1984, ...).

Conventions: times are in seconds, sizes in bytes, and rates in bit/s (1 Mbit/s = 1e6 bit/s). Time windows are
half-open: ``[a, b)``. NaN means *undefined*, never zero. In a matrix of bins by flows, NaN means that the
flow is not active in the bin.
"""

from narrows.metrics.convergence import (
    Censored,
    convergence_time,
    epsilon_fair,
    mean_censored,
    responsiveness,
)
from narrows.metrics.delay import (
    DelaySummary,
    jitter,
    quantile_from_distribution,
    queueing_delay,
    summarise_delay,
)
from narrows.metrics.estimation import allocation_error, count_error, time_above_capacity
from narrows.metrics.fairness import (
    WindowedJain,
    demand_aware_jain,
    harm,
    inter_protocol_ratio,
    jain,
    jain_windowed,
    max_min_share,
    max_min_shares,
    share,
    starved,
    two_flow_ratio,
)
from narrows.metrics.fct import ideal_fct, processor_sharing_fct, slowdown, slowdown_by_size
from narrows.metrics.loss import drop_rate, mark_rate, retransmission_rate
from narrows.metrics.power import log_score, normalised_power, power
from narrows.metrics.rates import bin_width, gain, payload_efficiency, rebin, throughput, utilisation
from narrows.metrics.signalling import feedback_rate, feedback_share
from narrows.metrics.smoothness import Smoothness, coefficient_of_variation, smoothness
from narrows.metrics.statistics import (
    CONFIDENCE,
    Difference,
    Interval,
    adjusted,
    mean_ci,
    paired_difference,
    t_quantile,
    unpaired_difference,
)

__all__ = [
    "CONFIDENCE",
    "Censored",
    "DelaySummary",
    "Difference",
    "Interval",
    "Smoothness",
    "WindowedJain",
    "adjusted",
    "allocation_error",
    "bin_width",
    "coefficient_of_variation",
    "convergence_time",
    "count_error",
    "demand_aware_jain",
    "drop_rate",
    "epsilon_fair",
    "feedback_rate",
    "feedback_share",
    "gain",
    "harm",
    "ideal_fct",
    "inter_protocol_ratio",
    "jain",
    "jain_windowed",
    "jitter",
    "log_score",
    "mark_rate",
    "max_min_share",
    "max_min_shares",
    "mean_censored",
    "mean_ci",
    "normalised_power",
    "paired_difference",
    "payload_efficiency",
    "power",
    "processor_sharing_fct",
    "quantile_from_distribution",
    "queueing_delay",
    "rebin",
    "responsiveness",
    "retransmission_rate",
    "share",
    "slowdown",
    "slowdown_by_size",
    "smoothness",
    "starved",
    "summarise_delay",
    "t_quantile",
    "throughput",
    "time_above_capacity",
    "two_flow_ratio",
    "unpaired_difference",
    "utilisation",
]
