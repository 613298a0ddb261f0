"""Exports the TCP flows of a run as qlog files, one per flow (qlog 0.3, JSON text sequences, RFC 7464).

A file has `recovery:metrics_updated` at each sample. If the flow's controller reacts to losses, the file also
has `recovery:congestion_state_updated` at the first sample of each new state. Windows are in bytes, RTTs in
ms. For a QUIC flow, use the qlog that the flow's own stack writes (`[capture] qlog = true`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from narrows.congestion import find
from narrows.export.run import Exported, Flow, file_names

VERSION = "0.3"
SEPARATOR = "\x1e"
"""The character that begins each record of a JSON text sequence."""
SLOW_START, AVOIDANCE = "slow_start", "congestion_avoidance"
RECOVERY = 3
"""In the column `state`, this value and all higher values mean recovery."""
_MILLIS = 1e-3
_DIGITS = 6
"""Number of decimal places of a time in ms, for a resolution of a nanosecond."""
_TIMES = (("smoothed_rtt", "srtt_s"), ("latest_rtt", "rtt_s"), ("rtt_variance", "rttvar_s"))
_WINDOWS = (("congestion_window", "cwnd"), ("bytes_in_flight", "in_flight"), ("ssthresh", "ssthresh"))


def files(exported: Exported) -> dict[str, bytes]:
    """The log of each TCP flow of a run. The keys are the names of the files."""
    logs = {}
    flows = [flow for flow in exported.flows() if flow.is_tcp]
    for flow, name in zip(flows, file_names(flow.name for flow in flows), strict=True):
        records = [_header(exported, flow), *_events(exported, flow)]
        text = "".join(f"{SEPARATOR}{json.dumps(record, allow_nan=False)}\n" for record in records)
        logs[f"run-{exported.number}-{name}.sqlog"] = text.encode()
    return logs


def _header(exported: Exported, flow: Flow) -> dict[str, Any]:
    return {
        "qlog_version": VERSION,
        "qlog_format": "JSON-SEQ",
        "title": f"{exported.name}, run {exported.number}",
        "trace": {
            "title": f"{flow.name} ({flow.cc})",
            "vantage_point": {"name": flow.name, "type": "server"},
            "common_fields": {"protocol_type": ["TCP"], "time_format": "relative", "reference_time": 0},
        },
    }


def _events(exported: Exported, flow: Flow) -> Iterator[dict[str, Any]]:
    samples = partial(exported.run.flow_samples, flow.row)
    times, states = samples("state")
    scaled = {name: samples(column)[1] / _MILLIS for name, column in _TIMES}
    scaled |= {name: samples(column)[1] * flow.segment_bytes for name, column in _WINDOWS}
    known = find(flow.cc.split("(")[0])
    has_states = known is not None and known[0].family == "loss"
    cwnd, ssthresh = scaled["congestion_window"], scaled["ssthresh"]
    last = ""
    for index, time in enumerate(times.tolist()):
        values = {name: float(column[index]) for name, column in scaled.items()}
        data = {
            name: round(value, _DIGITS) if name in dict(_TIMES) else round(value)
            for name, value in values.items()
            if math.isfinite(value)
        }
        at = round(time / _MILLIS, _DIGITS)
        if data:
            yield {"time": at, "name": "recovery:metrics_updated", "data": data}
        state = _state(int(states[index]), float(cwnd[index]), float(ssthresh[index]))
        if has_states and state != last:
            change = {"new": state} | ({"old": last} if last else {})
            yield {"time": at, "name": "recovery:congestion_state_updated", "data": change}
            last = state


def _state(state: int, cwnd: float, ssthresh: float) -> str:
    if state >= RECOVERY:
        return "recovery"
    return SLOW_START if math.isnan(ssthresh) or cwnd < ssthresh else AVOIDANCE
