"""Measures of the parts that flows have of a queue."""

from __future__ import annotations

import math

import numpy as np

from narrows.results.measures.registry import measure
from narrows.results.runs import Floats, Run

_PROBE_RTT_CWND = 4
"""Window of BBR v1 in ProbeRTT, in segments."""


def backlogs(run: Run, link: str) -> tuple[Floats, Floats]:
    """Times, and payload of each flow in the queue in bytes, by time and flow.

    Runs do not record the queue by flow, so it is computed from the flows' goodputs. A FIFO queue of q
    seconds holds the packets that leave in the next q seconds. The receivers get these packets in that time,
    if the link has no delay and is the last link of all paths.
    """
    row_of_link = run.link(link)
    t, queued = run.link_series(row_of_link, "queue_bytes")
    _, capacity = run.link_series(row_of_link, "capacity_bps")
    until = t + 8 * queued / capacity
    columns = []
    for row in run.flows():
        at, goodput = run.flow_series(int(row), "goodput_bps")
        # A sample is the mean since the one before it.
        delivered = np.cumsum(np.nan_to_num(goodput) * np.diff(at, prepend=0.0)) / 8
        columns.append(np.interp(until, at, delivered) - np.interp(t, at, delivered))
    return t, np.column_stack(columns)


def in_probe_rtt(run: Run, flows: str, t: Floats, after_s: float) -> np.ndarray:
    """Whether one of the flows is in BBR's ProbeRTT (a window of 4 segments) at each time after `after_s`."""
    probing = np.zeros(t.size, dtype=bool)
    for row in run.flows(flows):
        at, cwnd = run.flow_series(int(row), "cwnd")
        probing |= np.interp(t, at, cwnd) <= _PROBE_RTT_CWND
    return probing & (t > after_s)


@measure("Time with a queue", "s", "MET-11")
def time_with_queue(
    run: Run, links: list[str], above_ms: float, after_s: float = 0.0, before_s: float = math.inf
) -> float:
    """Time from `after_s` to `before_s` in which the links' queues together delay by more than `above_ms`.

    A queue's delay is its length divided by the capacity. The length is sampled, so the time is a multiple of
    the sampling interval.
    """
    t, total = np.empty(0), np.empty(0)
    for name in links:
        row = run.link(name)
        t, queued = run.link_series(row, "queue_bytes")
        _, capacity = run.link_series(row, "capacity_bps")
        delay = 8e3 * queued / capacity
        total = delay if total.size == 0 else total + delay
    if t.size < 2:
        return math.nan
    inside = (t > after_s) & (t <= before_s)
    return float(((total > above_ms) & inside).sum() * np.diff(t).mean())


@measure("Share of the queue", "", "GAIN, 4.1")
def queue_share(
    run: Run, of: str, link: str, probing: str = "", is_probing: bool = True, after_s: float = 5.0
) -> float:
    """The flows' part of the bytes in the link's queue, after `after_s`.

    With `probing`, only the times count at which these BBR flows are in ProbeRTT, or (with
    `is_probing = false`) at which they are not.
    """
    t, bytes_of = backlogs(run, link)
    chosen = _chosen(run, t, probing, is_probing, after_s)
    total = float(bytes_of[chosen].sum())
    return float(bytes_of[chosen][:, run.flows(of)].sum()) / total if total > 0 else math.nan


@measure("Goodput by the state of other flows", "Mbit/s", "GAIN, 4.1")
def goodput_while(run: Run, of: str, probing: str, is_probing: bool = True, after_s: float = 5.0) -> float:
    """Mean goodput of the flows while the flows `probing` are (or are not) in ProbeRTT."""
    total = 0.0
    for row in run.flows(of):
        t, goodput = run.flow_series(int(row), "goodput_bps")
        chosen = _chosen(run, t, probing, is_probing, after_s)
        total += float(goodput[chosen].mean()) if chosen.any() else math.nan
    return total / 1e6


def _chosen(run: Run, t: Floats, probing: str, is_probing: bool, after_s: float) -> np.ndarray:
    """The times after `after_s` at which these flows are (or are not) in ProbeRTT; all if there are none."""
    late = t > after_s
    return late & (in_probe_rtt(run, probing, t, after_s) == is_probing) if probing else late
