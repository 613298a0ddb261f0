"""Metrics of the cost of feedback from rate controllers (MET-82)."""

from __future__ import annotations

import math


def feedback_share(added_bytes: float, all_bytes: float) -> float:
    """Bytes that feedback adds to packets, divided by all L3 bytes sent, 0..1 (MET-82).

    The result is NaN if nothing was sent.
    """
    if not 0 <= added_bytes <= all_bytes:
        raise ValueError(f"{added_bytes} bytes are no part of {all_bytes}")
    return added_bytes / all_bytes if all_bytes > 0 else math.nan


def feedback_rate(count: float, seconds: float) -> float:
    """Number of rewritten packets, or of control messages, per second (MET-82).

    The result is NaN if the time is zero.
    """
    return count / seconds if seconds > 0 else math.nan
