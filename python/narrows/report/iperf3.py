"""iperf3's JSON as a figure: what its sender reports of each interval (`iperf3 --json`, its client's side).

As in Rozinov and Dimitrov's study of Linux's algorithms: data sent, congestion window, retransmissions, RTT
and its variance, throughput. iperf3 has them from Linux's `tcp_info`, in bytes and microseconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import altair as alt

from narrows.errors import OutputError, found, one_line
from narrows.report.encode import colour, dash
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.style import look

_LOOKS = ("cubic", "bbr", "brf", "reno", "rcp", "bdr", "xcp", "pacec")
"""Whose colours the streams have: eight that can be told apart."""
MOST_STREAMS = len(_LOOKS)
PANEL_HEIGHT = 150
MOST = 1e18
"""What is larger is no bytes, bit/s or microseconds of any run."""


@dataclass(frozen=True)
class Quantity:
    """What a panel shows."""

    title: str
    key: str
    """In a stream's interval."""
    scale: float
    """From iperf3's unit to the title's."""
    summed: bool = False
    """Added up over time."""


QUANTITIES = (
    Quantity("Throughput, Mbit/s", "bits_per_second", 1e-6),
    Quantity("Data sent, MB", "bytes", 1e-6, summed=True),
    Quantity("Congestion window, kB", "snd_cwnd", 1e-3),
    Quantity("Retransmissions, segments per interval", "retransmits", 1.0),
    Quantity("RTT, ms", "rtt", 1e-3),
    Quantity("RTT variance, ms", "rttvar", 1e-3),
)


@dataclass(frozen=True)
class Trace:
    """A run as iperf3 reports it."""

    title: str
    streams: dict[str, list[dict[str, Any]]]
    """By name, the intervals in order."""


def read(path: Path) -> Trace:
    """A file of iperf3's.

    Raises:
        OutputError: one line, if it cannot be read or is not iperf3's.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise OutputError(one_line(f"{path}: not JSON: {error}")) from None
    intervals = data.get("intervals") if isinstance(data, dict) else None
    if not isinstance(intervals, list):
        why = f": iperf3 says {data['error']!r}" if isinstance(data, dict) and "error" in data else ""
        raise OutputError(one_line(f"{path}: found no intervals, expected the output of iperf3 --json{why}"))
    streams: dict[str, list[dict[str, Any]]] = {}
    for number, interval in enumerate(intervals):
        for stream in _list(interval, "streams"):
            if not isinstance(stream, dict) or not all(_is_number(stream.get(k)) for k in ("start", "end")):
                raise OutputError(f"{path}: intervals.{number}: found a stream without start and end")
            if not stream.get("omitted"):
                name = _drawable(f"stream {stream.get('socket', '?')}")
                streams.setdefault(name, []).append(stream)
    if not streams:
        raise OutputError(f"{path}: found no interval with a stream, expected at least one")
    if len(streams) > MOST_STREAMS:
        raise OutputError(f"{path}: found {len(streams)} streams, expected at most {MOST_STREAMS}")
    if len(streams) == 1:
        streams = {"": next(iter(streams.values()))}
    return Trace(_title(data, path), streams)


def draw(trace: Trace) -> Figure:
    """A panel for each quantity that the trace has.

    Raises:
        OutputError: one line without the file, for a value that is none.
    """
    looks = {name: look(like) for name, like in zip(trace.streams, _LOOKS, strict=False)}
    panels = []
    for quantity in QUANTITIES:
        values = [row for name, of in trace.streams.items() for row in _rows(quantity, name, of)]
        if not values:
            continue  # UDP has no window, and who only receives sees no RTT.
        chart = (
            alt.Chart(inline(values))
            .mark_line(strokeWidth=1.4, interpolate="linear")
            .encode(
                x=alt.X("t:Q", title="Time, s"),
                y=alt.Y("v:Q", title=None, scale=_from_zero(values)),
                color=colour(list(looks), list(looks.values())),
                strokeDash=dash(list(looks), list(looks.values())),
            )
        )
        panels.append(Panel(quantity.title, chart, PANEL_HEIGHT))
    keys = [Key(name, of) for name, of in looks.items() if name]
    return Figure("iperf3", trace.title, "", panels, keys)


def _from_zero(values: list[dict[str, Any]]) -> alt.Scale:
    """Of nothing but zeros the axis would have no direction."""
    return alt.Scale(domain=[0, 1]) if all(row["v"] == 0 for row in values) else alt.Scale(zero=True)


def _rows(quantity: Quantity, name: str, intervals: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows, total = [], 0.0
    for interval in intervals:
        value = interval.get(quantity.key, -1)
        if value == -1:
            continue  # iperf3's word for what it could not read.
        if not _is_number(value) or value < 0:
            where = f"in the interval that ends at {interval['end']:g} s"
            raise OutputError(
                one_line(
                    f"{quantity.key}: found {found(value)} {where}, expected a number from 0 to {MOST:g}"
                )
            )
        total = total + value if quantity.summed else value
        rows.append({"t": round(float(interval["end"]), 6), "v": total * quantity.scale, "s": name})
    return rows


def _title(data: dict[str, Any], path: Path) -> str:
    algorithm = _get(data, "end", "sender_tcp_congestion")
    host = _get(data, "start", "connecting_to", "host")
    parts = [path.name, str(algorithm or ""), f"to {host}" if host else ""]
    return _drawable(", ".join(filter(None, parts)))


def _drawable(text: str) -> str:
    """Without halves of surrogate pairs, which JSON may hold and a picture may not."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _get(of: Any, *keys: str) -> Any:
    """What is under the keys, one in another; None where there is nothing."""
    for key in keys:
        of = of.get(key) if isinstance(of, dict) else None
    return of


def _list(of: Any, key: str) -> list[Any]:
    found = of.get(key) if isinstance(of, dict) else None
    return found if isinstance(found, list) else []


def _is_number(value: object) -> TypeGuard[float]:
    """Whether it can be drawn; a whole number of JSON may be too long for a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MOST
