"""Formats figures of results for the terminal."""

from __future__ import annotations

import math

HEADINGS = {
    "goodput_bps": ("goodput", 1e6, "Mbit/s"),
    "share": ("share", 0.01, "%"),
    "rtt_mean_s": ("RTT mean", 1e-3, "ms"),
    "rtt_p95_s": ("RTT p95", 1e-3, "ms"),
    "retransmits": ("retransmits", 1, ""),
    "fct_s": ("FCT", 1e-3, "ms"),
    "utilisation": ("utilisation", 0.01, "%"),
    "sojourn_mean_s": ("queueing mean", 1e-3, "ms"),
    "sojourn_p95_s": ("queueing p95", 1e-3, "ms"),
    "dropped_packets": ("drops", 1, ""),
    "random_losses": ("random losses", 1, ""),
    "marks": ("marks", 1, ""),
}
"""Title, scale and unit of each figure by its name in the tables."""


def digits(value: float, scale: float) -> int:
    """Number of decimals of a scaled figure."""
    if abs(value) >= 1000 or (scale == 1 and value == int(value)):
        return 0
    return 1 if abs(value) >= 10 else 2


def number(value: float, scale: float) -> str:
    """A figure of the tables, converted to the unit of its heading."""
    if math.isnan(value):
        return "-"
    return f"{value / scale:.{digits(value / scale, scale)}f}"
