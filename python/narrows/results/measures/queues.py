"""Measures of the parts of a queue that belong to certain flows."""

from __future__ import annotations

import math

import numpy as np

from narrows.results.measures.registry import measure
from narrows.results.runs import Floats, Run

_PROBE_RTT_CWND = 4
"""Window of BBR v1 in ProbeRTT, in segments."""


def backlogs(run: Run, link: str) -> tuple[Floats, Floats]:
    """The times of the samples, and each flow's payload in the queue at these times, in bytes.

    Runs do not record how much of a queue belongs to each flow. The function computes it from the flows'
    goodputs. A FIFO queue of q seconds holds the packets that leave in the next q seconds. If the link has no
    delay and is the last link of all paths, the receivers get these packets in the same q seconds.
    """
    row_of_link = run.link(link)
    t, queued = run.link_series(row_of_link, "queue_bytes")
    _, capacity = run.link_series(row_of_link, "capacity_bps")
    until = t + 8 * queued / capacity
    columns = []
    for row in run.flows():
        at, goodput = run.flow_series(int(row), "goodput_bps")
        # A sample of the goodput is the mean over the time since the previous sample.
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
    """Time between `after_s` and `before_s` during which the sum of queueing delays is above `above_ms`.

    The sum is over the links. A link's queueing delay is the queue length divided by the capacity. Because
    the queue length is sampled, the result is a multiple of the sampling interval.
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
    """The fraction of the bytes in the link's queue that belong to the flows, after `after_s`.

    If `probing` names BBR flows, a time counts only if at least one of these flows is in ProbeRTT. With
    `is_probing = false`, a time counts only if none of these flows is in ProbeRTT.
    """
    t, bytes_of = backlogs(run, link)
    chosen = _chosen(run, t, probing, is_probing, after_s)
    total = float(bytes_of[chosen].sum())
    return float(bytes_of[chosen][:, run.flows(of)].sum()) / total if total > 0 else math.nan


@measure("Goodput by the state of other flows", "Mbit/s", "GAIN, 4.1")
def goodput_while(run: Run, of: str, probing: str, is_probing: bool = True, after_s: float = 5.0) -> float:
    """Mean goodput of the flows `of` while any flow of `probing` is in ProbeRTT.

    If `is_probing` is false, the mean is over the times at which no such flow is in ProbeRTT.
    """
    total = 0.0
    for row in run.flows(of):
        t, goodput = run.flow_series(int(row), "goodput_bps")
        chosen = _chosen(run, t, probing, is_probing, after_s)
        total += float(goodput[chosen].mean()) if chosen.any() else math.nan
    return total / 1e6


def _chosen(run: Run, t: Floats, probing: str, is_probing: bool, after_s: float) -> np.ndarray:
    """Which of the times are after `after_s` and have any flow of `probing` in ProbeRTT.

    If `is_probing` is false, the chosen times are those at which no such flow is in ProbeRTT.

    If `probing` is empty, the result is all times after `after_s`.
    """
    late = t > after_s
    return late & (in_probe_rtt(run, probing, t, after_s) == is_probing) if probing else late
