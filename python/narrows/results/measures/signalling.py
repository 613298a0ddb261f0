"""Measures of the cost of feedback: bytes in packets, rewritten packets, messages."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from narrows import metrics
from narrows.results.measures.registry import measure
from narrows.results.runs import Run

WORK = {"rewrites": ("rewritten_data", "rewritten_acks"), "messages": ("messages", "notices")}
"""Kinds of work of a port for signalling, and the columns that count them."""


@measure("Bytes of signalling", "%", "MET-82")
def signalling_bytes(run: Run, flows: str = "*") -> float:
    """Bytes of congestion headers, their echoes and rate options, divided by all L3 bytes sent."""
    rows = run.flows(flows)
    added, sent = run.column("flows", "signal_bytes")[rows], run.column("flows", "sent_bytes")[rows]
    return (
        100.0 * metrics.feedback_share(float(added.sum()), float(sent.sum())) if _counted(run) else math.nan
    )


@measure("Work of signalling", "1/s", "MET-82")
def signalling_work(run: Run, of: Literal["rewrites", "messages"] = "rewrites") -> float:
    """Rewritten packets, or control messages (including messages to sources), per second over all ports."""
    if not _counted(run):
        return math.nan
    seconds = run.column("signalling", "duration_s")
    # Without a rate controller at any port, nothing is signalled.
    if seconds.size == 0:
        return 0.0
    return metrics.feedback_rate(
        float(sum(run.column("signalling", name).sum() for name in WORK[of])), float(seconds[0])
    )


def _counted(run: Run) -> bool:
    """Whether the run has counters of signalling. Only simulated runs have them."""
    sent = run.column("flows", "sent_bytes")
    return bool(np.isfinite(sent).all() and sent.any())
