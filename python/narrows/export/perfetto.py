"""Exports a run as a trace for the Perfetto UI (https://ui.perfetto.dev).

The format is Trace Event JSON, compressed with gzip. Each flow and each link is a process of the trace. The
columns of the flow's or link's samples are counters. A flow's lifetime and its TCP states (recovery, loss)
are slices. The events of the run are instants. Time 0 is the start of the run. Times in the file are
microseconds.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from narrows.export.run import Exported, Floats, Flow, finite, starts

Event = dict[str, Any]
"""An event of the trace, with the keys of Trace Event JSON."""

RUN = 1
"""Process ID of events that belong to no sampled flow or link. The process IDs of flows and links are
higher."""
LIFETIME, STATE = 1, 2
"""In a flow's process, the IDs of the threads with the flow's lifetime and with its TCP states."""
STATES = ("open", "disorder", "CWR", "recovery", "loss")
"""Names of the values of the column `state`."""


@dataclass(frozen=True)
class _Counter:
    column: str
    title: str
    unit: float = 1.0
    of_interval: bool = False
    """Whether a value describes the interval that ends at the value's time."""
    is_count: bool = False
    """Whether the column counts from the start of the run. In this case, the trace's counter shows the
    increase in each interval."""


FLOW = (
    _Counter("goodput_bps", "goodput, Mbit/s", 1e6, of_interval=True),
    _Counter("send_bps", "sent, Mbit/s", 1e6, of_interval=True),
    _Counter("pacing_bps", "pacing rate, Mbit/s", 1e6),
    _Counter("allocation_bps", "allocated rate, Mbit/s", 1e6),
    _Counter("cwnd", "cwnd, segments"),
    _Counter("ssthresh", "ssthresh, segments"),
    _Counter("in_flight", "in flight, segments"),
    _Counter("srtt_s", "smoothed RTT, ms", 1e-3),
    _Counter("rtt_s", "latest RTT, ms", 1e-3),
    _Counter("retransmits", "retransmits", of_interval=True, is_count=True),
)
"""The counters of a flow's process."""
LINK = (
    _Counter("throughput_bps", "throughput, Mbit/s", 1e6, of_interval=True),
    _Counter("capacity_bps", "capacity, Mbit/s", 1e6, of_interval=True),
    _Counter("queue_packets", "queue, packets"),
    _Counter("queue_bytes", "queue, bytes"),
    _Counter("drops", "drops", of_interval=True, is_count=True),
    _Counter("marks", "marks", of_interval=True, is_count=True),
    _Counter("random_losses", "random losses", of_interval=True, is_count=True),
)
"""The counters of a link's process."""


def files(exported: Exported) -> dict[str, bytes]:
    """The trace of a run: a mapping from the file's name to its content."""
    trace = {"displayTimeUnit": "ms", "traceEvents": list(events(exported))}
    text = json.dumps(trace, separators=(",", ":"), allow_nan=False)
    # Write a fixed time into gzip's header, so that equal runs give equal files.
    return {f"run-{exported.number}.json.gz": gzip.compress(text.encode(), mtime=0)}


def events(exported: Exported) -> Iterator[Event]:
    """The events of the trace."""
    run, flows, links = exported.run, exported.flows(), exported.links()
    places = {RUN: f"run {exported.number}, seed {run.seed}"}
    flow_places, link_places = {}, {}
    for flow in flows:
        place = len(places) + RUN
        flow_places[flow.name], places[place] = place, f"flow {flow.name}, {flow.cc}"
    for _, name in links:
        place = len(places) + RUN
        link_places[name], places[place] = place, f"link {name}"
    entities = link_places | flow_places
    for place, title in places.items():
        yield _name("process_name", place, title)
        yield {"ph": "M", "name": "process_sort_index", "pid": place, "args": {"sort_index": place}}
    for flow in flows:
        place = flow_places[flow.name]
        yield _name("thread_name", place, "lifetime", LIFETIME)
        yield _name("thread_name", place, "TCP state", STATE)
        yield _lifetime(exported, flow, place)
        yield from _states(exported, flow, place)
        for counter in FLOW:
            series = exported.run.flow_samples(flow.row, counter.column)
            yield from _values(place, counter, *series, exported.interval_s, flow.end_s)
    for row, name in links:
        for counter in LINK:
            series = run.link_series(row, counter.column)
            yield from _values(link_places[name], counter, *series, exported.interval_s)
    yield from _instants(exported, entities)
    yield from _traces(exported, entities)


def _name(kind: str, place: int, title: str, thread: int | None = None) -> Event:
    event: Event = {"ph": "M", "name": kind, "pid": place, "args": {"name": title}}
    return event if thread is None else event | {"tid": thread}


def _slice(place: int, thread: int, name: str, start_s: float, end_s: float) -> Event:
    ts, dur = _micros(start_s), _micros(end_s - start_s)
    return {"ph": "X", "name": name, "pid": place, "tid": thread, "ts": ts, "dur": dur}


def _micros(seconds: float) -> float:
    return round(seconds * 1e6, 3)  # rounded to a nanosecond


def _lifetime(exported: Exported, flow: Flow, place: int) -> Event:
    end = flow.end(exported.duration_s())
    return _slice(place, LIFETIME, flow.name, flow.start_s, max(end, flow.start_s))


def _states(exported: Exported, flow: Flow, place: int) -> Iterator[Event]:
    """Yield a slice for each period in which consecutive samples have the same state.

    The state `open` is the normal state and has no slices.
    """
    times, states = exported.run.flow_samples(flow.row, "state")
    changes = np.flatnonzero(np.diff(states)) + 1
    borders = [0, *changes.tolist(), states.size]
    for first, last in pairwise(borders):
        if first < last and states[first] > 0:
            end = times[last] if last < times.size else flow.end(exported.duration_s())
            yield _slice(place, STATE, STATES[int(states[first])], float(times[first]), float(end))


def _values(
    place: int, counter: _Counter, times: Floats, values: Floats, interval_s: float, end_s: float = math.nan
) -> Iterator[Event]:
    """The values of a counter.

    At the end of a flow, a value of 0 is added. Without it, the viewer would continue the last value.
    """
    if counter.is_count:
        values = np.diff(values, prepend=0.0)
        if not values.any():
            return
    last = -math.inf
    for time, value in finite(starts(times, interval_s) if counter.of_interval else times, values):
        last = time
        yield _counter(place, counter.title, time, value / counter.unit)
    if not math.isnan(end_s) and last > -math.inf:
        yield _counter(place, counter.title, max(end_s, last), 0.0)


def _counter(place: int, title: str, time_s: float, value: float) -> Event:
    return {"ph": "C", "name": title, "pid": place, "ts": _micros(time_s), "args": {"value": value}}


def _instants(exported: Exported, entities: dict[str, int]) -> Iterator[Event]:
    run = exported.run
    kinds, names = run.names("events", "kind"), run.names("events", "entity")
    times, values = run.column("events", "t_s").tolist(), run.column("events", "value").tolist()
    for time, kind, entity, value in zip(times, kinds, names, values, strict=True):
        place = entities.get(entity, RUN)
        arguments = {"entity": entity} | ({"value": value} if math.isfinite(value) else {})
        instant = {"ph": "i", "s": "p", "name": kind, "pid": place, "ts": _micros(time)}
        yield instant | {"args": arguments}


def _traces(exported: Exported, entities: dict[str, int]) -> Iterator[Event]:
    """The traced variables of controllers, which a run has if the scenario sets `[probes] traces = true`."""
    run = exported.run
    names, keys = run.names("traces", "entity"), run.names("traces", "key")
    times, values = run.column("traces", "t_s"), run.column("traces", "value")
    for entity, key, time, value in zip(names, keys, times.tolist(), values.tolist(), strict=True):
        if math.isfinite(value):
            yield _counter(entities.get(entity, RUN), key, time, value)
