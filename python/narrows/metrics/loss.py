"""Metrics of loss and marks (MET-20 to MET-23). Random loss of a channel is not included."""

from __future__ import annotations

import math


def drop_rate(dropped: float, offered: float) -> float:
    """Packets that a queue dropped, divided by packets OFFERED to it, 0..1 (MET-20; BRF paper, eq. 19).

    If the denominator were the number of forwarded packets, the result could exceed 1. The result is NaN if
    nothing was offered.
    """
    return _share(dropped, offered)


def retransmission_rate(retransmitted: float, sent: float) -> float:
    """Retransmitted segments divided by all data segments sent, 0..1 (MET-22)."""
    return _share(retransmitted, sent)


def mark_rate(marked: float, ecn_capable_forwarded: float) -> float:
    """Number of CE marks divided by the number of ECN-capable packets that were forwarded, 0..1 (MET-23)."""
    return _share(marked, ecn_capable_forwarded)


def _share(part: float, whole: float) -> float:
    if part < 0 or part > whole:
        raise ValueError(f"{part} is no part of {whole}")
    return part / whole if whole > 0 else math.nan
