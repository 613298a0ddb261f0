"""Measures of what feedback costs: bytes in packets, packets rewritten, messages."""

from __future__ import annotations

import math

import numpy as np

from narrows import metrics
from narrows.errors import NarrowsError
from narrows.studies.measures import measure
from narrows.studies.run import Run

WORK = {"rewrites": ("rewritten_data", "rewritten_acks"), "messages": ("messages", "notices")}
"""What a port does for its signalling, and the columns that count it."""


@measure("Bytes of signalling", "%", "MET-82")
def signalling_bytes(run: Run, flows: str = "*") -> float:
    """Congestion headers, their echoes and rate options over all L3 bytes that the flows' ends sent."""
    rows = run.flows(flows)
    added, sent = run.column("flows", "signal_bytes")[rows], run.column("flows", "sent_bytes")[rows]
    return (
        100.0 * metrics.feedback_share(float(added.sum()), float(sent.sum())) if _counted(run) else math.nan
    )


@measure("Work of signalling", "1/s", "MET-82")
def signalling_work(run: Run, of: str = "rewrites") -> float:
    """Per second and all ports together: packets rewritten, or control messages (those to sources too)."""
    if of not in WORK:
        raise NarrowsError(f"signalling_work: found of = {of!r}, expected one of {', '.join(WORK)}")
    if not _counted(run):
        return math.nan
    seconds = run.column("signalling", "duration_s")
    # Where nobody controls a port, nobody does anything.
    if seconds.size == 0:
        return 0.0
    return metrics.feedback_rate(
        float(sum(run.column("signalling", name).sum() for name in WORK[of])), float(seconds[0])
    )


def _counted(run: Run) -> bool:
    """Only the simulator counts."""
    sent = run.column("flows", "sent_bytes")
    return bool(np.isfinite(sent).all() and sent.any())
