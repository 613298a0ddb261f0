"""Measures of many short flows: completion times by size, and the number of flows that a router counts."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from narrows import metrics
from narrows.results.measures.general import Statistic
from narrows.results.measures.registry import measure
from narrows.results.runs import Run

Floats = NDArray[np.float64]

PACKET_BYTES = 948
"""Payload of a packet of 1000 bytes, the packet size in the BDR paper."""


@measure("Mean completion time", "ms", "MET-70")
def fct(
    run: Run,
    least_packets: float = 0.0,
    most_packets: float = math.inf,
    packet_bytes: float = PACKET_BYTES,
    after_s: float = 3.0,
    flows: str = "*",
) -> float:
    """Mean time from the SYN to the ACK of the last data.

    The mean is over finished flows of the given sizes that began after `after_s`.
    """
    packets, times = completions(run, packet_bytes, after_s, flows)
    chosen = (packets >= least_packets) & (packets <= most_packets)
    return 1e3 * float(times[chosen].mean()) if chosen.any() else math.nan


@measure("Request time", "ms", "ours")
def request_time(
    run: Run,
    statistic: Statistic = "mean",
    after_s: float = 0.0,
    flows: str = "*",
) -> float:
    """Time from a request to the last byte of its object.

    The value is the mean, the median (`p50`), the p95, the p99 or the maximum (`max`) over the complete
    objects that were requested after `after_s`. It is NaN if there are none.
    """
    if "requested_s" not in run.tables.get("requests", {}):
        return math.nan
    numbers = run.column("flows", "flow")[run.flows(flows)]
    requested = run.column("requests", "requested_s")
    chosen = np.isin(run.column("requests", "flow"), numbers) & (requested > after_s)
    found = metrics.summarise_delay((run.column("requests", "received_s") - requested)[chosen])
    values = {"mean": found.mean, "p50": found.median, "p95": found.p95, "p99": found.p99, "max": found.max}
    return 1e3 * values[statistic]


@measure("Exponent of the completion time over the size", "", "MET-70")
def size_exponent(
    run: Run,
    least_packets: float = 0.0,
    handshake_s: float = 0.0,
    packet_bytes: float = PACKET_BYTES,
    after_s: float = 3.0,
    flows: str = "*",
) -> float:
    """Exponent k of the power law T ~ size^k that fits the flows' completion times T best.

    An exponent of 1 means that the time is proportional to the size. An exponent of 0 means that the time
    does not depend on the size. `handshake_s` is subtracted from each time. The fit is by least squares over
    the logarithms. Only finished flows that began in the first half of the time after `after_s` count,
    because large flows that begin later do not finish.
    """
    begins = run.column("flows", "start_s")[run.flows(flows)]
    half_s = (after_s + begins.max(initial=after_s)) / 2
    packets, times = completions(run, packet_bytes, after_s, flows, before_s=half_s)
    chosen = (packets >= least_packets) & (times > handshake_s)
    x, y = np.log(packets[chosen]), np.log(times[chosen] - handshake_s)
    spread = x - x.mean() if x.size else x
    return float((spread * y).sum() / (spread**2).sum()) if spread.any() else math.nan


@measure("Slowdown", "", "MET-71")
def slowdown(
    run: Run, statistic: Literal["mean", "p99"] = "mean", after_s: float = 3.0, flows: str = "*"
) -> float:
    """Slowdown: the completion time of a flow, divided by its completion time in an empty network.

    The value is the mean or the p99 of the slowdowns of finished flows that began after `after_s`.
    """
    rows = run.flows(flows)
    times, ideal = run.column("flows", "fct_s")[rows], run.column("flows", "ideal_fct_s")[rows]
    chosen = np.isfinite(times) & (run.column("flows", "start_s")[rows] > after_s)
    if not chosen.any():
        return math.nan
    slow = times[chosen] / ideal[chosen]
    return float(np.quantile(slow, 0.99) if statistic == "p99" else slow.mean())


@measure("Finished flows", "%", "MET-70")
def finished(run: Run, after_s: float = 3.0, before_s: float = 2.0, flows: str = "*") -> float:
    """Share of finished flows.

    A flow counts only if it began after `after_s` and more than `before_s` before the start of the last flow.
    """
    rows = run.flows(flows)
    start, times = run.column("flows", "start_s")[rows], run.column("flows", "fct_s")[rows]
    chosen = (start > after_s) & (start < start.max(initial=0.0) - before_s)
    return 100.0 * float(np.isfinite(times[chosen]).mean()) if chosen.any() else math.nan


@measure("Error of the estimated number of flows", "%", "MET-80, BDR-21")
def flow_count_error(
    run: Run, link: str, after_s: float = 5.0, statistic: Literal["mean", "bias", "rms"] = "mean"
) -> float:
    """Relative error of the number of flows that a BDR port counts.

    The errors are relative to the true number. `statistic` is "mean" (mean absolute error of the samples),
    "bias" (mean signed error) or "rms" (root of the mean square).
    """
    t, estimate, truth = flow_counts(run, link)
    error = metrics.count_error(estimate[t > after_s], truth[t > after_s])
    found = {"mean": error.mean_absolute, "bias": error.bias, "rms": error.rms}
    return 100.0 * found[statistic]


def completions(
    run: Run, packet_bytes: float, after_s: float, flows: str = "*", before_s: float = math.inf
) -> tuple[Floats, Floats]:
    """Sizes in packets and completion times in seconds of finished flows.

    Only flows that began after `after_s` and before `before_s` count.
    """
    rows = run.flows(flows)
    times, start = run.column("flows", "fct_s")[rows], run.column("flows", "start_s")[rows]
    chosen = np.isfinite(times) & (start > after_s) & (start < before_s)
    packets = np.ceil(run.column("flows", "size_bytes")[rows] / packet_bytes)
    return packets[chosen], times[chosen]


def flow_counts(run: Run, link: str) -> tuple[Floats, Floats, Floats]:
    """Times of the samples, the number of flows that the port counts, and the true number.

    A flow exists from its SYN until the ACK of its last data.
    """
    t, estimate = run.traced(link, "flows")
    begins = np.sort(run.column("flows", "start_s"))
    lasted = run.column("flows", "fct_s")
    ends = np.sort((run.column("flows", "start_s") + lasted)[np.isfinite(lasted)])
    truth = np.searchsorted(begins, t, side="right") - np.searchsorted(ends, t, side="right")
    return t, estimate, truth.astype(np.float64)
