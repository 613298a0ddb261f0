"""Figures of iperf3's JSON, as `narrows.results.iperf3` reads it.

The figures show the quantities of Rozinov and Dimitrov's study of Linux's algorithms: data sent, congestion
window, retransmissions, RTT and its variance, throughput, MTU. iperf3 reads them from Linux's `tcp_info`, in
bytes and microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import altair as alt

from narrows.errors import OutputError, found, one_line
from narrows.report.encode import colour, dash
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.style import look
from narrows.results.iperf3 import MOST, Trace, is_number

_LOOKS = ("cubic", "bbr", "brf", "reno", "rcp", "bdr", "xcp", "pacec")
"""Controllers whose colours the streams use. These eight are easy to distinguish."""
PANEL_HEIGHT = 150


class Of(Enum):
    """The part of the time to which a value refers. It determines where the value is on the time axis."""

    INTERVAL = auto()
    """The whole interval: the value is drawn in the middle of the interval."""
    END = auto()
    """The end of the interval."""
    SO_FAR = auto()
    """The time from the start of the first interval to the end of this interval: the value is a sum."""


@dataclass(frozen=True)
class Quantity:
    """The quantity of a panel."""

    title: str
    key: str
    """Key in a stream's interval."""
    scale: float
    """Factor from iperf3's unit to the unit in the title."""
    file: str
    """Part of the file name of the quantity's own PDF."""
    of: Of = Of.END
    whole: bool = False
    """Whether the quantity is a whole number."""

    @property
    def name(self) -> str:
        """The title without its unit."""
        return self.title.rpartition(" (")[0]


_DATA = Quantity("Data sent (MB)", "bytes", 1e-6, "data", Of.SO_FAR)
QUANTITIES = (
    Quantity("Throughput (Mbit/s)", "bits_per_second", 1e-6, "throughput", Of.INTERVAL),
    _DATA,
    Quantity("Congestion window (kB)", "snd_cwnd", 1e-3, "cwnd"),
    Quantity(
        "Retransmissions (segments per interval)", "retransmits", 1.0, "retransmissions", Of.INTERVAL, True
    ),
    Quantity("RTT (ms)", "rtt", 1e-3, "rtt"),
    # Linux's rttvar, which iperf3 and the study call the variance.
    Quantity("RTT variance (mean deviation, ms)", "rttvar", 1e-3, "rtt-variance"),
    # The path MTU that Linux has discovered.
    Quantity("MTU (bytes)", "pmtu", 1.0, "mtu", whole=True),
)


def missing(trace: Trace) -> str:
    """A sentence about the quantities that the trace lacks, empty if it has all."""
    names = [quantity.name for quantity in QUANTITIES if not _values(quantity, trace)]
    if not names:
        return ""
    if trace.udp:
        why = "UDP does not have them"
    elif all(_received(of) for of in trace.streams.values()):
        why = "only the sender measures them; this file is from a receiver (-R)"
    else:
        why = "the file does not contain them"
    return f"no {', '.join(names)}: {why}"


@dataclass(frozen=True)
class Drawn:
    """The figures of one run of iperf3."""

    whole: Figure
    """A panel for each quantity that the trace has."""
    each: dict[str, Figure]
    """Figures with one panel each, by `Quantity.file`."""


def draw(trace: Trace) -> Drawn:
    """Draw the quantities that the trace has.

    Raises:
        OutputError: for a value that is not a number. The message does not name the file.
    """
    panels, keys = _panels(trace)
    each = {file: Figure(f"iperf3-{file}", trace.title, "", [of], keys) for file, of in panels.items()}
    return Drawn(Figure("iperf3", trace.title, "", list(panels.values()), keys), each)


def _panels(trace: Trace) -> tuple[dict[str, Panel], list[Key]]:
    """A panel for each quantity that the trace has, by `Quantity.file`, and the legend."""
    every = [interval for of in trace.streams.values() for interval in of]
    first, last = (pick(float(of[key]) for of in every) for pick, key in ((min, "start"), (max, "end")))
    time = alt.Scale(domain=[first, last], nice=False) if first < last else alt.Undefined
    looks = {name: look(like) for name, like in zip(trace.streams, _LOOKS, strict=False)}
    panels: dict[str, Panel] = {}
    for quantity in QUANTITIES:
        values = _values(quantity, trace)
        if not values:
            continue
        counted: dict[str, Any] = {"tickMinStep": 1, "format": ",d"} if quantity.whole else {}
        chart = (
            alt.Chart(inline(values))
            # A single point has no line.
            .mark_line(strokeWidth=1.4, interpolate="linear", point=len(values) <= len(looks))
            .encode(
                x=alt.X("t:Q", title="Time (s)", scale=time),
                y=alt.Y("v:Q", title=None, scale=_from_zero(values), axis=alt.Axis(**counted)),
                color=colour(list(looks), list(looks.values())),
                strokeDash=dash(list(looks), list(looks.values())),
            )
        )
        panels[quantity.file] = Panel(_titled(quantity, trace), chart, PANEL_HEIGHT)
    return panels, [Key(name, of) for name, of in looks.items() if name]


def _titled(quantity: Quantity, trace: Trace) -> str:
    """The quantity's title.

    For data, the title says whether the host that wrote the file sent or received the data.
    """
    if quantity is not _DATA:
        return quantity.title
    received = {_received(of) for of in trace.streams.values()}
    words = "sent and received" if len(received) > 1 else "received" if True in received else "sent"
    return f"Data {words} (MB)"


def _received(intervals: list[dict[str, Any]]) -> bool:
    """Whether the host that wrote the file received the stream."""
    return any(interval.get("sender") is False for interval in intervals)


def _from_zero(values: list[dict[str, Any]]) -> alt.Scale:
    """A scale from zero. It ends at 1 if all values are zero, because an axis must have a length."""
    return alt.Scale(domain=[0, 1]) if all(row["v"] == 0 for row in values) else alt.Scale(zero=True)


def _values(quantity: Quantity, trace: Trace) -> list[dict[str, Any]]:
    return [row for name, of in trace.streams.items() for row in _rows(quantity, name, of)]


def _rows(quantity: Quantity, name: str, intervals: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    total = 0.0
    for interval in intervals:
        value = interval.get(quantity.key, -1)
        if value == -1:
            continue  # iperf3 writes -1 for a value that it could not read.
        if not is_number(value) or value < 0:
            where = f"in the interval that ends at {interval['end']:g} s"
            raise OutputError(
                one_line(
                    f"{quantity.key}: found {found(value)} {where}, expected a number from 0 to {MOST:g}"
                )
            )
        start, end = float(interval["start"]), float(interval["end"])
        if quantity.of is Of.SO_FAR and not rows:
            rows.append({"t": round(start, 6), "v": 0.0, "s": name})
        total = total + value if quantity.of is Of.SO_FAR else value
        at = (start + end) / 2 if quantity.of is Of.INTERVAL else end
        rows.append({"t": round(at, 6), "v": total * quantity.scale, "s": name})
    return rows
