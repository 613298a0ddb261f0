"""Measures of a run's flows and links: rates, fairness, losses, delays, power, convergence."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from narrows import metrics
from narrows.errors import NarrowsError
from narrows.packets import PAYLOAD
from narrows.results.measures.registry import Measured, measure
from narrows.results.runs import Floats, Run

Statistic = Literal["mean", "p50", "p95", "p99", "max"]
"""Statistics of RTTs and of times in queues, which are columns of the tables of flows and links."""
Quantity = Literal["goodput_bps", "send_bps"]
"""Rates in the table of samples of flows."""

# --- rates


@measure("Goodput", "Mbit/s", "MET-2")
def goodput(run: Run, flows: str = "*") -> float:
    """Sum of the goodputs of the flows over the measurement interval."""
    return _goodput(run, flows)


def _goodput(run: Run, flows: str = "*") -> float:
    return float(run.column("flows", "goodput_bps")[run.flows(flows)].sum()) / 1e6


@measure("Goodput over the bound of the allocation", "", "MET-2, MET-6")
def goodput_over_bound(run: Run, capacity_mbit: float, eta: float = 1.0, loss: str | float = 0.0) -> float:
    """Goodput divided by eta C (1448/1500) (1 - p), where C is `capacity_mbit`.

    `loss` is p, or the name of the factor whose value is p.
    """
    p = float(run.factors[loss]) if isinstance(loss, str) else loss
    return _goodput(run) / (eta * capacity_mbit * PAYLOAD * (1 - p))


@measure("Utilisation", "", "MET-5")
def utilisation(run: Run, link: str) -> float:
    """Throughput of the link divided by its capacity, in the measurement interval."""
    return _only(run.column("links", "utilisation")[run.links(link)], f"link {link}")


# --- fairness


@measure("Share of the goodput", "", "MET-33")
def share(run: Run, of: str, among: str = "*") -> float:
    """Goodput of the flows `of`, divided by the goodput of the flows `among`."""
    whole = _goodput(run, among)
    return _goodput(run, of) / whole if whole > 0 else math.nan


@measure("Share of the goodput at the end", "", "MET-33")
def share_at_end(run: Run, of: str, last_s: float, among: str = "*") -> float:
    """Goodput of the flows `of` in the last `last_s` seconds, divided by the goodput of the flows `among`."""
    whole = sum(_last(run, int(row), last_s) for row in run.flows(among))
    return sum(_last(run, int(row), last_s) for row in run.flows(of)) / whole if whole > 0 else math.nan


@measure("Jain's index at the end", "", "MET-30, windowed")
def jain_at_end(run: Run, last_s: float, flows: str = "*") -> float:
    """Jain's index of the goodputs in the last `last_s` seconds."""
    return metrics.jain([_last(run, int(row), last_s) for row in run.flows(flows)])


def _last(run: Run, row: int, last_s: float) -> float:
    """Mean goodput of a flow in the last `last_s` seconds of its samples, in bit/s."""
    t, goodput = run.flow_series(row, "goodput_bps")
    chosen = goodput[t > t.max(initial=0.0) - last_s]
    return float(chosen.mean()) if chosen.size else math.nan


@measure("Jain's index", "", "MET-30, whole")
def jain(run: Run, flows: str = "*") -> float:
    """Jain's index of the goodputs over the measurement interval."""
    return metrics.jain(run.column("flows", "goodput_bps")[run.flows(flows)])


@measure("Smallest Jain's index of any bin", "", "MET-30, windowed")
def jain_min(run: Run, flows: str = "*", bin_s: float = 1.0, after_s: float = 0.0) -> float:
    """Smallest Jain's index of any bin that starts at `after_s` or later."""
    starts, matrix = rate_matrix(run, flows, bin_s)
    return metrics.jain_windowed(matrix[starts >= after_s]).min


@measure("Ratio of goodputs per flow", "", "MET-34")
def rate_ratio(run: Run, of: str, to: str) -> float:
    """The mean goodput of the flows `of`, divided by the mean goodput of the flows `to`."""
    rates = run.column("flows", "goodput_bps")
    return metrics.inter_protocol_ratio(rates[run.flows(of)], rates[run.flows(to)])


# --- loss


@measure("Router drop rate", "%", "MET-20")
def drop_rate(run: Run, links: list[str]) -> float:
    """Packets dropped by the named consecutive queues, divided by the packets offered to the first queue.

    Random loss is not counted.
    """
    dropped, offered = run.column("links", "dropped_packets"), run.column("links", "offered_packets")
    rows = [int(row) for name in links for row in run.links(name)]
    if not rows:
        return math.nan
    return 100.0 * metrics.drop_rate(float(dropped[rows].sum()), float(offered[rows].max()))


@measure("Retransmission rate", "%", "MET-22")
def retransmission_rate(run: Run, flows: str = "*") -> float:
    """Retransmitted segments divided by all segments sent."""
    rows = run.flows(flows)
    sent = float(run.column("flows", "sent_packets")[rows].sum())
    return 100.0 * metrics.retransmission_rate(float(run.column("flows", "retransmits")[rows].sum()), sent)


# --- delay


@measure("RTT above the empty path's", "ms", "MET-10, MET-12")
def queueing_delay(run: Run, statistic: Statistic = "p95", flows: str = "*") -> float:
    """RTT minus the RTT of the empty network: the time in queues plus the delay of ACKs at receivers.

    Papers call this sum queueing delay. For the time in one queue, use `sojourn`. `statistic` is mean, p50,
    p95, p99 or max, over the ACKs of a flow. If there are several flows, the result is the largest of their
    values.
    """
    rows = run.flows(flows)
    rtt = run.column("flows", f"rtt_{statistic}_s")[rows]
    delays = metrics.queueing_delay(rtt, 0.0) - run.column("flows", "rtt_empty_s")[rows]
    return 1e3 * float(np.nanmax(delays)) if np.isfinite(delays).any() else math.nan


@measure("Rises of the RTT above the empty path's", "", "MET-10, over time")
def recurrences(
    run: Run,
    above_ms: float,
    below_ms: float,
    window_s: float = 1.0,
    after_s: float = 3.0,
    flows: str = "*",
) -> float:
    """Smallest number of rises of the RTT in any window of length `window_s`, from `after_s` on.

    The number is above zero only if the RTT rises in every window. A rise is a sample above `above_ms` after
    a sample below `below_ms`. An incomplete last window is ignored. If several flows match `flows`, the first
    one is used.
    """
    t, rises = _rises(run, above_ms, below_ms, after_s, flows)
    windows = math.floor((t[-1] - after_s) / window_s + 1e-9) if t.size else 0
    if windows < 1:
        return math.nan
    counts, _ = np.histogram(rises, bins=after_s + window_s * np.arange(windows + 1))
    return float(counts.min())


@measure("Time between rises of the RTT above the empty path's", "s", "MET-10, over time")
def recurrence_interval(
    run: Run, above_ms: float, below_ms: float, after_s: float = 3.0, flows: str = "*"
) -> float:
    """Median time between two consecutive rises of the RTT (see `recurrences`)."""
    _, rises = _rises(run, above_ms, below_ms, after_s, flows)
    return float(np.median(np.diff(rises))) if rises.size > 1 else math.nan


def _rises(run: Run, above_ms: float, below_ms: float, after_s: float, flows: str) -> tuple[Floats, Floats]:
    """Times of all samples after `after_s`, and the times at which the RTT has risen.

    A rise is a sample above `above_ms` after a sample below `below_ms`.
    """
    row = int(run.flows(flows)[0])
    t, rtts = run.flow_series(row, "rtt_s")
    known = ~np.isnan(rtts) & (t > after_s)
    t, delay = t[known], 1e3 * (rtts[known] - float(run.column("flows", "rtt_empty_s")[row]))
    # Ignore samples between the two limits. Among the other samples, a rise is a low sample followed by a
    # high sample.
    beyond = np.flatnonzero((delay > above_ms) | (delay < below_ms))
    high = delay[beyond] > above_ms
    return t, t[beyond[1:][high[1:] & ~high[:-1]]]


@measure("Time in the queue", "ms", "MET-11")
def sojourn(run: Run, link: str, statistic: Statistic = "p99") -> float:
    """Time that packets spent in the queue of the link."""
    return 1e3 * _only(run.column("links", f"sojourn_{statistic}_s")[run.links(link)], f"link {link}")


@measure("RTT", "ms", "MET-12")
def rtt(run: Run, statistic: Statistic = "mean", flows: str = "*") -> float:
    """A statistic of each flow's RTTs, averaged over the flows."""
    return _rtt(run, statistic, flows)


@measure("One-way delay of data", "ms", "MET-12, MET-13")
def one_way_delay(run: Run, flows: str = "*") -> float:
    """Mean time from the transmission of data until their arrival, for each flow, averaged over the flows."""
    return _one_way(run, flows)


def _one_way(run: Run, flows: str) -> float:
    values = run.column("flows", "delay_mean_s")[run.flows(flows)]
    return 1e3 * float(np.nanmean(values)) if np.isfinite(values).any() else math.nan


def _rtt(run: Run, statistic: Statistic, flows: str) -> float:
    values = run.column("flows", f"rtt_{statistic}_s")[run.flows(flows)]
    return 1e3 * float(np.nanmean(values)) if np.isfinite(values).any() else math.nan


@measure("Normalised power", "", "MET-40")
def normalised_power(run: Run, capacity_mbit: float, flows: str = "*") -> float:
    """(X/C) (D0/D): X is the sum of the flows' goodputs, and C is `capacity_mbit`.

    D is the flows' mean RTT, and D0 is their mean RTT on an empty network.
    """
    empty = float(run.column("flows", "rtt_empty_s")[run.flows(flows)].mean())
    return metrics.normalised_power(
        _goodput(run, flows), capacity_mbit, _rtt(run, "mean", flows) / 1e3, empty
    )


@measure("Power", "Mbit/s per ms", "MET-40")
def power(run: Run, flows: str = "*", delay: Literal["rtt", "one-way"] = "rtt") -> float:
    """Sum of the flows' goodputs, divided by their delay.

    This is X^a / D with a = 1, as in Table 2 of the PACEC paper. `delay` is the mean RTT ("rtt") or the mean
    one-way delay of data ("one-way").
    """
    mean = _rtt(run, "mean", flows) if delay == "rtt" else _one_way(run, flows)
    return metrics.power(_goodput(run, flows), mean)


# --- dynamics


@measure("Smoothness", "", "MET-50, MET-51")
def smoothness(run: Run, flows: str = "*", period_s: float = 0.1) -> float:
    """The mean relative change of a flow's goodput from one period to the next, averaged over the flows."""
    starts, matrix = rate_matrix(run, flows, period_s)
    begins = run.column("flows", "start_s")[run.flows(flows)]
    indices = [
        metrics.smoothness(matrix[:, i], times_s=starts - begin).index for i, begin in enumerate(begins)
    ]
    return float(np.mean(indices)) if indices else math.nan


@measure("Time until the link is full", "s", "ours")
def filling_time(
    run: Run, link: str, start_s: float = 0.0, bin_s: float = 0.1, at_least: float = 0.9
) -> Measured:
    """Time from `start_s` until the link has carried `at_least` of its capacity for a whole bin.

    If the run has no such bin, the value is a lower bound.
    """
    row = run.link(link)
    starts, carried = metrics.rebin(*run.link_series(row, "throughput_bps"), bin_s)
    capacity = _align(starts, *metrics.rebin(*run.link_series(row, "capacity_bps"), bin_s))
    ends = starts + bin_s
    later = ends > start_s + 1e-9
    if not later.any():
        return Measured(math.nan)
    full = ends[later & (carried >= at_least * capacity)]
    return Measured(float(full[0] if full.size else ends[-1]) - start_s, full.size == 0)


@measure("Convergence time", "s", "MET-61, MET-63")
def convergence(
    run: Run,
    link: str,
    flows: str = "*",
    bin_s: float = 0.1,
    statistic: Literal["mean", "max"] = "mean",
    quantity: Quantity = "goodput_bps",
) -> Measured:
    """Time until a new flow has its fair share and keeps it: mean or max over all flows except the first.

    `quantity` is the rate that is compared with the share: the goodput, or `send_bps`, the L3 rate at the
    sender. While a lost segment is missing, the goodput is zero, because only data in order count. When the
    segment arrives, the goodput jumps. The sender's rate has no such jumps.
    """
    times = join_times(run, link, flows, bin_s, quantity)
    if not times:
        return Measured(math.nan)
    if statistic == "max":
        return Measured(max(time.seconds for time in times), any(time.censored for time in times))
    mean = metrics.mean_censored(times)
    return Measured(mean.seconds, mean.censored)


@measure("Convergence time in RTTs", "", "MET-61, MET-63")
def convergence_rtts(
    run: Run,
    link: str,
    flows: str = "*",
    bin_rtts: float = 1.0,
    quantity: Quantity = "goodput_bps",
    since: Literal["SYN", "data"] = "SYN",
) -> Measured:
    """Mean convergence time of new flows in RTTs of the empty network, with bins of `bin_rtts` RTTs.

    The convergence time begins at the SYN of the new flow. With `since = "data"`, it begins at the flow's
    first data, one RTT after the SYN.
    """
    rtt = float(np.mean(run.column("flows", "rtt_empty_s")[run.flows(flows)]))
    times = join_times(run, link, flows, bin_rtts * rtt, quantity)
    if not times:
        return Measured(math.nan)
    mean = metrics.mean_censored(times)
    return Measured(mean.seconds / rtt - (1.0 if since == "data" else 0.0), mean.censored)


def join_times(
    run: Run, link: str, flows: str = "*", bin_s: float = 0.1, quantity: str = "goodput_bps"
) -> list[metrics.Censored]:
    """Convergence time of each flow that joins after the first flow (MET-61).

    The time is a lower bound if another flow joins or leaves before the flow has converged.
    """
    rows = run.flows(flows)
    begins, ends = run.column("flows", "start_s")[rows], run.column("flows", "end_s")[rows]
    starts, matrix = rate_matrix(run, flows, bin_s, quantity)
    if starts.size == 0:
        return []
    end_of_run = float(starts[-1]) + bin_s
    ends = np.where(np.isnan(ends), end_of_run, ends)
    row = run.link(link)
    t, carried = run.link_series(row, "throughput_bps")
    _, offered = run.link_series(row, "capacity_bps")
    used = _align(starts, *metrics.rebin(t, carried, bin_s))
    capacity = _align(starts, *metrics.rebin(t, offered, bin_s))
    active = (begins[None, :] < starts[:, None] + bin_s) & (ends[None, :] > starts[:, None])
    matrix = np.where(active, np.nan_to_num(matrix), np.nan)
    fair = capacity / np.maximum(active.sum(axis=1), 1)
    changes = np.unique(np.concatenate([begins, ends]))
    times = []
    for i in np.argsort(begins, kind="stable")[1:]:
        later = changes[changes > begins[i] + 1e-9]
        times.append(
            metrics.convergence_time(
                starts,
                bin_s,
                matrix,
                int(i),
                fair,
                used / capacity,
                join_s=float(begins[i]),
                until_s=float(later[0]) if later.size else end_of_run,
            )
        )
    return times


def rate_matrix(run: Run, flows: str, bin_s: float, quantity: str = "goodput_bps") -> tuple[Floats, Floats]:
    """Start of each bin, and rates in bit/s with a row per bin and a column per flow (NaN: no sample)."""
    series = [metrics.rebin(*run.flow_series(int(row), quantity), bin_s) for row in run.flows(flows)]
    if not series or all(starts.size == 0 for starts, _ in series):
        return np.empty(0), np.empty((0, len(series)))
    numbers = np.unique(np.concatenate([np.round(starts / bin_s) for starts, _ in series]))
    grid = numbers * bin_s
    return grid, np.column_stack([_align(grid, starts, values) for starts, values in series])


def _align(grid: Floats, starts: Floats, values: Floats) -> Floats:
    """The values at the bins of `grid`, NaN where they are missing."""
    if starts.size == 0:
        return np.full(grid.size, np.nan)
    position = np.clip(np.searchsorted(starts, grid - 1e-9), 0, starts.size - 1)
    return np.where(np.abs(starts[position] - grid) < 1e-6, values[position], np.nan)


def _only(values: Floats, what: str) -> float:
    if values.size != 1:
        raise NarrowsError(f"{what}: found {values.size} of that name in the results, expected one")
    return float(values[0])
