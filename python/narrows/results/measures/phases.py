"""Measures of the phases of a BBR flow over time, from its traced variables.

A run has traces if the scenario sets `[probes] traces = true`. A phase that begins and ends between the same
two samples is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrows.errors import NarrowsError, choice
from narrows.packets import FULL_PACKET
from narrows.results.measures.registry import measure
from narrows.results.measures.states import Visit, time_in
from narrows.results.runs import Run

DRAFT = "draft-ietf-ccwg-bbr-06"
"""The source that defines the names of the phases and the variables."""
PROBE_BW = 2
NAMES: dict[float, str] = {0: "startup", 1: "drain", 3: "probe_rtt"}
STEPS: dict[float, str] = {0: "up", 1: "down", 2: "cruise", 3: "refill"}
"""Steps of ProbeBW. BBR v1 has no steps, and its phase is called `probe_bw`."""
PHASES = (*NAMES.values(), *STEPS.values(), "probe_bw")
Floats = NDArray[np.float64]


def traced(run: Run, of: str, key: str) -> tuple[Floats, Floats]:
    """Times (s) and values of a variable of the only flow that matches `of`. Both are empty without traces.

    Raises:
        NarrowsError: if not exactly one flow matches.
    """
    return run.traced(run.names("flows", "name")[_row(run, of)], key)


def _row(run: Run, of: str) -> int:
    """The row of the only flow that matches `of`."""
    rows = run.flows(of)
    if rows.size != 1:
        raise NarrowsError(f"flow {of}: found {rows.size} of that name in the results, expected one")
    return int(rows[0])


def phases(run: Run, of: str) -> list[Visit]:
    """The phases of the flow in order.

    The last phase ends at the last sample. The result is cached in the run.
    """
    kept = ("phases", of)
    if kept not in run.measured:
        run.measured[kept] = _phases(run, of)
    found: list[Visit] = run.measured[kept]
    return found


def _phases(run: Run, of: str) -> list[Visit]:
    t, numbers = traced(run, of, "phase")
    if not t.size:
        return []
    _, steps = traced(run, of, "step")
    if not steps.size:
        steps = np.full_like(numbers, np.nan)
    names = [_name(number, step) for number, step in zip(numbers.tolist(), steps.tolist(), strict=True)]
    begins = [0, *(index for index in range(1, len(names)) if names[index] != names[index - 1])]
    ends = [*begins[1:], len(names) - 1]
    return [
        Visit(names[first], float(t[first]), float(t[last])) for first, last in zip(begins, ends, strict=True)
    ]


def _name(number: float, step: float) -> str:
    """The name of a phase, from the traced variables `phase` and `step`."""
    if number != PROBE_BW:
        if number not in NAMES:
            raise NarrowsError(f"trace: phase: found {number:g}, expected a whole number from 0 to 3")
        return NAMES[number]
    if math.isnan(step):
        return "probe_bw"
    if step not in STEPS:
        raise NarrowsError(f"trace: step: found {step:g}, expected a whole number from 0 to 3")
    return STEPS[step]


def _check(argument: str, phase: object) -> None:
    if phase not in PHASES:
        raise NarrowsError(f"{argument}: {choice(phase, PHASES)}")


def _visits(run: Run, of: str, phase: str, after_s: float = 0.0, visit: int = 0) -> list[Visit]:
    """Visits to a phase that begin at `after_s` or later, and end before the run does.

    If `visit` is not 0, the result has only the visit of this number (1: the first visit).
    """
    _check("phase", phase)
    if visit < 0:
        raise NarrowsError(f"visit: found {visit}, expected 0 (all visits) or the number of a visit, from 1")
    found = phases(run, of)
    visits = [one for one in found if one.state == phase]
    if visit:
        visits = visits[visit - 1 : visit]
    return [one for one in visits if one is not found[-1] and one.begin_s >= after_s]


def _names(expected: object) -> list[str]:
    """The expected phases, from a name or a list of names."""
    names: list[Any] = expected if isinstance(expected, list) else [expected]
    if not names:
        raise NarrowsError("expected: found no phase, expected at least one")
    for name in names:
        _check("expected", name)
    return names


@measure("Next phase", "%", DRAFT)
def next_phase(
    run: Run,
    phase: str,
    expected: str | Sequence[str],
    of: str = "*",
    after_s: float = 0.0,
    visit: int = 0,
) -> float:
    """The share of the visits to a phase that are followed by an expected phase.

    With `visit`, only the visit of this number counts (1: the first visit).
    """
    following = _names(expected)
    visits = _visits(run, of, phase, after_s, visit)
    after = [late.state for early, late in pairwise(phases(run, of)) if early in visits]
    return 100.0 * float(np.mean([state in following for state in after])) if after else math.nan


@measure("Time in a phase", "%", DRAFT)
def time_in_phase(
    run: Run, phase: str, of: str = "*", after_s: float = 0.0, until_s: float = math.inf
) -> float:
    """Share of the time from `after_s` to `until_s` that the flow spends in a phase."""
    _check("phase", phase)
    found = phases(run, of)
    if not found:
        return math.nan
    begin, end = max(after_s, found[0].begin_s), min(until_s, found[-1].end_s)
    if begin >= end:
        return math.nan
    return 100.0 * time_in(found, phase, begin, end) / (end - begin)


@measure("Shortest phase", "s", DRAFT)
def shortest_phase(run: Run, phase: str, of: str = "*", after_s: float = 0.0, visit: int = 0) -> float:
    """Duration of the shortest visit to a phase.

    With `visit`, only the visit of this number counts (1: the first visit).
    """
    visits = _visits(run, of, phase, after_s, visit)
    return min((one.end_s - one.begin_s for one in visits), default=math.nan)


@measure("Return to a phase", "%", DRAFT)
def return_to_phase(
    run: Run, phase: str, within_s: float, of: str = "*", after_s: float = 0.0, visit: int = 0
) -> float:
    """Share of the visits to a phase that are followed by another visit to it within the time `within_s`.

    With `visit`, only the visit of this number counts (1: the first visit).
    """
    visits = _visits(run, of, phase, after_s, visit)
    begins = np.array([one.begin_s for one in phases(run, of) if one.state == phase])
    soon = [bool(((begins >= one.end_s) & (begins <= one.end_s + within_s)).any()) for one in visits]
    return 100.0 * float(np.mean(soon)) if soon else math.nan


@measure("Restored variable", "%", DRAFT)
def restored(run: Run, key: str, phase: str, of: str = "*", after_s: float = 0.0, visit: int = 0) -> float:
    """A bound at the start of the next visit to a phase, in percent of its value at the end of a visit.

    `key` is the name of a traced bound, e.g. `inflight_longterm`. A bound that is not set counts as infinite.
    The percentage is therefore 100 if the bound is set at neither time, and 0 if it is set only at the next
    visit. The result is the smallest percentage over all visits. With `visit`, only the visit of this number
    counts (1: the first visit).
    """
    t, values = traced(run, of, key)
    begins = [one.begin_s for one in phases(run, of) if one.state == phase]
    shares = []
    for one in _visits(run, of, phase, after_s, visit):
        following = next((begin for begin in begins if begin >= one.end_s), None)
        later = values[t >= following] if following is not None else values[:0]
        if not later.size:
            continue
        before, after = _last(t, values, one.end_s), float(later[0])
        if math.isnan(before):
            shares.append(100.0 if math.isnan(after) else 0.0)
        elif before > 0:
            shares.append(100.0 if math.isnan(after) else 100.0 * after / before)
    return min(shares, default=math.nan)


@measure("Rounds in a phase", "rounds", DRAFT)
def rounds_in_phase(run: Run, phase: str, of: str = "*", after_s: float = 0.0, visit: int = 0) -> float:
    """Largest number of BBR's rounds that begin during a visit to a phase.

    With `visit`, only the visit of this number counts (1: the first visit).
    """
    t, rounds = traced(run, of, "round")
    visits = _visits(run, of, phase, after_s, visit)
    inside = [rounds[(t >= one.begin_s) & (t < one.end_s)] for one in visits]
    return max((float(one[-1] - one[0]) for one in inside if one.size), default=math.nan)


@measure("Least data in flight in a phase", "segments", DRAFT)
def least_inflight(run: Run, phase: str, of: str = "*", after_s: float = 0.0, visit: int = 0) -> float:
    """Smallest number of segments in flight during the visits to a phase.

    With `visit`, only the visit of this number counts (1: the first visit).
    """
    t, in_flight = run.flow_series(_row(run, of), "in_flight")
    visits = _visits(run, of, phase, after_s, visit)
    inside = [in_flight[(t >= one.begin_s) & (t < one.end_s)] for one in visits]
    return min((float(one.min()) for one in inside if one.size), default=math.nan)


@measure("Time between phases", "s", DRAFT)
def between_phases(run: Run, phase: str, of: str = "*", after_s: float = 0.0) -> float:
    """Mean time from the end of a visit to the phase to the beginning of the next visit."""
    found = _visits(run, of, phase, after_s)
    gaps = [late.begin_s - early.end_s for early, late in pairwise(found)]
    return float(np.mean(gaps)) if gaps else math.nan


@measure("Variable in a phase", "", DRAFT)
def traced_in_phase(run: Run, key: str, phase: str, of: str = "*", after_s: float = 0.0) -> float:
    """Mean of a traced variable, e.g. `pacing_gain`, during the visits to a phase."""
    t, values = traced(run, of, key)
    visits = _visits(run, of, phase, after_s)
    inside = [values[(t >= visit.begin_s) & (t < visit.end_s)] for visit in visits]
    together = np.concatenate(inside) if inside else np.empty(0)
    return float(np.nanmean(together)) if np.isfinite(together).any() else math.nan


def _estimate(run: Run, of: str) -> tuple[Floats, Floats]:
    """Times and values of the bandwidth filter `max_bw`, in bytes/s (BBR v1: `bw`)."""
    t, values = traced(run, of, "max_bw")
    return (t, values) if t.size else traced(run, of, "bw")


@measure("Change of a variable at the end of a phase", "%", DRAFT)
def change_at_end(
    run: Run, key: str, phase: str, of: str = "*", after_s: float = 0.0, visit: int = 0
) -> float:
    """First value of a traced variable after a visit to a phase, in percent of its last value in the visit.

    The result is the smallest percentage over all visits. With `visit`, only the visit of this number counts
    (1: the first visit).
    """
    t, values = traced(run, of, key)
    shares = []
    for one in _visits(run, of, phase, after_s, visit):
        before, after = _last(t, values, one.end_s), values[t >= one.end_s]
        if math.isfinite(before) and before > 0 and after.size and math.isfinite(after[0]):
            shares.append(100.0 * float(after[0]) / before)
    return min(shares, default=math.nan)


def _last(t: Floats, values: Floats, end_s: float) -> float:
    """The value of the last sample before a time."""
    before = values[t < end_s]
    return float(before[-1]) if before.size else math.nan


@measure("Estimated bandwidth at the end of a phase", "%", DRAFT)
def estimate_at_end(run: Run, phase: str, link: str, of: str = "*", after_s: float = 0.0) -> float:
    """`max_bw` at the end of the first visit to a phase, in percent of the link's rate at that time."""
    visits = _visits(run, of, phase, after_s)
    if not visits:
        return math.nan
    end = visits[0].end_s
    return 100.0 * _last(*_estimate(run, of), end) * 8.0 / _rate(run, link, end)


@measure("Estimated bandwidth", "%", DRAFT)
def estimate_after(run: Run, link: str, after_s: float, of: str = "*") -> float:
    """Mean of `max_bw` after the time `after_s`, in percent of the link's rate at the end of the run."""
    t, values = _estimate(run, of)
    later = values[t >= after_s]
    if not later.size:
        return math.nan
    return 100.0 * float(np.mean(later)) * 8.0 / _rate(run, link, float(t[-1]))


def _rate(run: Run, link: str, at_s: float) -> float:
    t, capacity = run.link_series(run.link(link), "capacity_bps")
    return _last(t, capacity, at_s)


@measure("Data in flight at the end of a phase", "BDP", DRAFT)
def inflight_at_end(
    run: Run, phase: str, of: str = "*", after_s: float = 0.0, followed_by: str = ""
) -> float:
    """Largest number of segments in flight at the first sample after a visit to a phase, in BDPs.

    A BDP is `bw` times `min_rtt`, in full packets. With `followed_by`, a visit counts only if this phase
    follows it.
    """
    if followed_by:
        _check("followed_by", followed_by)
    t, in_flight = run.flow_series(_row(run, of), "in_flight")
    visits = _visits(run, of, phase, after_s)
    following = {early.end_s: late.state for early, late in pairwise(phases(run, of))}
    ends = [visit.end_s for visit in visits if followed_by in ("", following[visit.end_s])]
    return max((float(in_flight[t >= end][0]) / _bdp(run, of, end) for end in ends), default=math.nan)


@measure("Largest window in a phase", "BDP", DRAFT)
def largest_window(run: Run, phase: str, of: str = "*", after_s: float = 0.0) -> float:
    """Largest congestion window during the visits to a phase, in BDPs.

    The BDP is `bw` times `min_rtt` at the end of the first visit.
    """
    t, window = run.flow_series(_row(run, of), "cwnd")
    visits = _visits(run, of, phase, after_s)
    if not visits:
        return math.nan
    inside = np.logical_or.reduce([(t >= visit.begin_s) & (t < visit.end_s) for visit in visits])
    return float(window[inside].max()) / _bdp(run, of, visits[0].end_s) if inside.any() else math.nan


def _bdp(run: Run, of: str, at_s: float) -> float:
    """The BDP just before a time, in full packets. It is `bw` times `min_rtt`."""
    bandwidth, rtt = traced(run, of, "bw"), traced(run, of, "min_rtt")
    return _last(*bandwidth, at_s) * _last(*rtt, at_s) / FULL_PACKET


@measure("Rounds without growth", "rounds", DRAFT)
def rounds_without_growth(run: Run, phase: str = "startup", of: str = "*", growth: float = 1.25) -> float:
    """Number of BBR's rounds between the last growth of `max_bw` and the end of the first visit to a phase.

    `max_bw` grows if it reaches `growth` times its value at the previous growth.
    """
    visits = _visits(run, of, phase)
    (t, rounds), (_, rates) = traced(run, of, "round"), _estimate(run, of)
    if not visits or not t.size:
        return math.nan
    inside = (t >= visits[0].begin_s) & (t < visits[0].end_s)
    reference, since, last = 0.0, 0.0, 0.0
    for number in np.unique(rounds[inside]):
        rate = float(rates[inside & (rounds == number)].max())
        last = float(number)
        if rate >= growth * reference:
            reference, since = rate, last
    return last - since


@measure("Smallest window", "segments", DRAFT)
def smallest_window(run: Run, of: str = "*", after_s: float = 0.0) -> float:
    """Smallest congestion window in the samples after the time `after_s`."""
    t, window = run.flow_series(_row(run, of), "cwnd")
    later: Any = window[t >= after_s]
    return float(np.nanmin(later)) if np.isfinite(later).any() else math.nan
