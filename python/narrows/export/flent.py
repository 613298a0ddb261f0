"""Exports a run as a `.flent.gz` for flent and flent-gui (file format 4, `flent/resultset.py`).

The file has the name of the test `tcp_nup` (TCP uploads), for which flent has plots. Each TCP or QUIC flow is
a series `TCP upload::N`, where N counts from 1. Its raw values are the goodput in Mbit/s, the window in
segments, the smoothed RTT in ms and the pacing rate in Mbit/s. A series of a UDP flow is called `UDP
upload::N`. There is no series of pings.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from narrows import metrics
from narrows.export.run import UDP, Exported, Floats, Flow

FORMAT = 4
TEST = "tcp_nup"
UPLOAD, UDP_UPLOAD = "TCP upload", "UDP upload"
_MEGABIT = 1e6
_RAW = (("tcp_cwnd", "cwnd", 1.0), ("tcp_rtt", "srtt_s", 1e-3), ("tcp_pacing_rate", "pacing_bps", 1e6))
"""For each raw value: its name in flent, its column, and flent's unit as a multiple of the column's unit."""


def files(exported: Exported) -> dict[str, bytes]:
    """The file of a run: a mapping from its name to its content."""
    name = f"run-{exported.number}.flent.gz"
    text = json.dumps(_result_set(exported, name), allow_nan=False)
    return {name: gzip.compress(text.encode(), mtime=0)}


def _result_set(exported: Exported, file: str) -> dict[str, Any]:
    flows = exported.flows()
    times = np.unique(exported.run.column("flow_samples", "t_s"))
    named = _named(flows)
    series = {name: _at(times, exported, flow) for name, flow in named.items()}
    uploads = [values for name, values in series.items() if name.startswith(UPLOAD)]
    date = datetime.fromtimestamp(exported.date_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    labels = {name: f"{flow.name} ({flow.cc})" for name, flow in named.items()}
    note = ", ".join(f"{name} = {label}" for name, label in labels.items())
    return {
        "version": FORMAT,
        "metadata": {
            "NAME": TEST,
            "TITLE": f"{exported.name}, run {exported.number}",
            "NOTE": f"narrows, seed {exported.run.seed}: {note}",
            "TIME": date,
            "T0": date,
            "HOST": "",
            "HOSTS": [],
            "LOCAL_HOST": "",
            "LENGTH": exported.duration_s(),
            "TOTAL_LENGTH": exported.duration_s(),
            "STEP_SIZE": exported.interval_s,
            "TEST_PARAMETERS": {"upload_streams": str(len(uploads))},
            "DATA_FILENAME": file,
            "SERIES_META": {name: {"UNITS": "Mbits/s", "LABEL": label} for name, label in labels.items()},
        },
        "x_values": times.tolist(),
        "results": series | _together(uploads),
        "raw_values": {name: _raw(exported, flow) for name, flow in named.items()},
    }


def _named(flows: Sequence[Flow]) -> dict[str, Flow]:
    """The flows by the names of their series in the file."""
    tcp = [flow for flow in flows if flow.cc != UDP]
    udp = [flow for flow in flows if flow.cc == UDP]
    named = {f"{UPLOAD}::{number}": flow for number, flow in enumerate(tcp, 1)}
    return named | {f"{UDP_UPLOAD}::{number}": flow for number, flow in enumerate(udp, 1)}


def _at(times: Floats, exported: Exported, flow: Flow) -> list[float | None]:
    """Goodput at the given times (None: the flow has no sample at this time)."""
    own, goodput = exported.run.flow_samples(flow.row, "goodput_bps")
    known = {
        time: value / _MEGABIT
        for time, value in zip(own.tolist(), goodput.tolist(), strict=True)
        if math.isfinite(value)
    }
    return [known.get(time) for time in times.tolist()]


def _together(uploads: Sequence[Sequence[float | None]]) -> dict[str, list[float | None]]:
    """Mean, sum and fairness of the TCP and QUIC flows (empty: there are no such flows)."""
    if not uploads:
        return {}
    return {
        f"{UPLOAD} avg": _combined(uploads, lambda values: math.fsum(values) / len(values)),
        f"{UPLOAD} sum": _combined(uploads, math.fsum),
        f"{UPLOAD} fairness": _combined(uploads, _fairness),
    }


def _combined(series: Sequence[Sequence[float | None]], of: Any) -> list[float | None]:
    """A figure at each time, computed from the flows that have a sample at this time."""
    present = [[value for value in values if value is not None] for values in zip(*series, strict=True)]
    return [of(values) if values else None for values in present]


def _fairness(values: Sequence[float]) -> float | None:
    index = metrics.jain(values)
    return None if math.isnan(index) else index


def _raw(exported: Exported, flow: Flow) -> list[dict[str, float]]:
    times, goodput = exported.run.flow_samples(flow.row, "goodput_bps")
    columns = [(name, exported.run.flow_samples(flow.row, column)[1] / unit) for name, column, unit in _RAW]
    rows = []
    for index, time in enumerate(times.tolist()):
        values = [("val", float(goodput[index]) / _MEGABIT)]
        values += [(name, float(column[index])) for name, column in columns]
        known = {name: value for name, value in values if math.isfinite(value)}
        rows.append({"t": exported.date_s + time} | known)
    return rows
