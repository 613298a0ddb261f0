"""Encodings, axes and captions that all kinds of figures share."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from narrows.report.figure import Key
from narrows.report.style import Look, look, order
from narrows.results.factors import Factor
from narrows.results.runs import Run, Runs

ALGORITHM = "algorithm"
"""The factor that determines the colours of series."""
FLOOR_MS = 0.01
"""Smallest queueing delay on a logarithmic axis."""
NUMBERS = ",.6~r"
"""Format of tick labels: 0.05, 12.5, 120. Without the precision of 6, Vega would write 120 as 1.2e+2."""
LEAST_FOR_A_BAND = 3
"""Smallest number of seeds for which a band is drawn. With two seeds, the half width of the 95 % interval is
12.7 times the distance of the two values from their mean.
"""


def colour(names: Sequence[str], looks: Sequence[Look], field: str = "s") -> alt.Color:
    """The encoding that gives each series its colour."""
    return alt.Color(
        f"{field}:N", scale=alt.Scale(domain=list(names), range=[item.light for item in looks]), legend=None
    )


def dash(names: Sequence[str], looks: Sequence[Look], field: str = "s") -> alt.StrokeDash:
    """The encoding that gives each series its dash pattern."""
    scale = alt.Scale(domain=list(names), range=[list(item.dash) or [1, 0] for item in looks])
    return alt.StrokeDash(f"{field}:N", scale=scale, legend=None)


def shape(names: Sequence[str], looks: Sequence[Look], field: str = "s") -> alt.Shape:
    """The encoding that gives each series its marker."""
    scale = alt.Scale(domain=list(names), range=[item.marker for item in looks])
    return alt.Shape(f"{field}:N", scale=scale, legend=None)


def axis(
    field: str, title: str, *, log: bool = False, domain: Sequence[float] | None = None, **more: Any
) -> dict[str, Any]:
    """Arguments for a channel `alt.X` or `alt.Y`."""
    scale: dict[str, Any] = {"type": "log"} if log else {"zero": False}
    if domain is not None:
        scale |= {"domain": list(domain), "nice": False}
    scale |= more.pop("scale", {})
    ticks: dict[str, Any] = {"tickCount": 5, "labelOverlap": True}
    if log:
        ticks |= {"values": log_ticks(*domain) if domain else _POWERS, "labelOverlap": False}
    ticks |= more
    if "values" in ticks:
        # If a tick count is given, Vega leaves out some explicit tick values, for example three of six.
        del ticks["tickCount"]
    return {"shorthand": f"{field}:Q", "title": title, "scale": alt.Scale(**scale), "axis": alt.Axis(**ticks)}


def factor_axis(field: str, title: str, values: Sequence[float], *, log: bool, **more: Any) -> dict[str, Any]:
    """The axis of a factor, with room for markers at both ends. If the values are few, they are the ticks."""
    ticks = sorted(set(values))
    if log:
        domain = [ticks[0] / _BESIDE_LOG, ticks[-1] * _BESIDE_LOG]
    else:
        beside = _BESIDE * (ticks[-1] - ticks[0] or abs(ticks[0]) or 1.0)
        domain = [ticks[0] - beside, ticks[-1] + beside]
    if log or len(ticks) <= _MOST_NAMED:
        more = {"values": ticks, "labelOverlap": "greedy", **more}
    return axis(field, title, log=log, domain=domain, format=NUMBERS, **more)


_BESIDE, _BESIDE_LOG = 0.035, 1.15
"""Space between the ends of a factor's axis and the factor's first and last value. On a linear axis, it is a
part of the axis' length. On a logarithmic axis, it is a ratio of values."""
_MOST_NAMED = 10
"""Largest number of values that a linear axis labels one by one."""


def bands(
    base: alt.Chart, values: Sequence[dict[str, Any]], y: dict[str, Any], **mark: Any
) -> list[alt.Chart]:
    """The layer of confidence intervals.

    The list is empty if no row has a ``band``, because a layer without rows would have no extent in Vega.
    """
    if not any(row["band"] for row in values):
        return []
    area = base.transform_filter("datum.band").mark_area(line=False, **mark)
    return [area.encode(y=alt.Y(**{**y, "shorthand": "lo:Q"}), y2="hi:Q", detail="s:N")]


NO_BANDS = " Bands need at least three seeds."
"""Sentence for captions of figures that have too few seeds for bands."""
CUT = " Lines continue outside the frame."
"""Sentence for captions of figures in which an axis ends before the largest value."""
_BURSTS = (
    " Goodput above the link's rate is data that waited behind a lost packet and reached the application "
    "when the retransmission arrived."
)


def note_cut(values: Iterable[float | None], low: float, high: float) -> str:
    """The caption's sentence about lines that leave an axis, empty if no line does."""
    slack = 1e-6 * (high - low)
    known = (value for value in values if value is not None)
    return CUT if any(not low - slack <= value <= high + slack for value in known) else ""


def note_bursts(goodputs: Iterable[float | None], rate: float) -> str:
    """The caption's sentence about goodputs above the link's rate, empty if there are none."""
    return _BURSTS if any(goodput is not None and goodput > rate for goodput in goodputs) else ""


_POWERS = [10.0**power for power in range(-4, 7)]
_STEPS = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 2, 3, 4, 5, 6, 7, 8, 9))
"""Possible sets of ticks within a decade, the set with the fewest ticks first."""
_LEAST_TICKS = 3


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis.

    An axis of two decades or more has one tick per power of ten. A shorter axis also has ticks between powers
    of ten. If this gives fewer than three ticks, the axis has ticks at round numbers.
    """
    if high >= 100 * low:
        return [power for power in _POWERS if low <= power <= high]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in _STEPS:
        ticks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= _LEAST_TICKS:
            return ticks
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    step *= next(by for by in (5, 2, 1) if by * step * 2 <= high - low or by == 1)
    return [float(f"{i * step:.6g}") for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def algorithms(runs: Runs) -> list[str]:
    """Names of the controllers in the runs, in the order of the table of looks."""
    return order([str(name) for name in runs.values(ALGORITHM)])


def keys(names: Sequence[str], **how: bool) -> list[Key]:
    """The legend's keys for these congestion controllers."""
    return [Key(look(name).label, look(name), **how) for name in names]


def panels_of(runs: Runs, by: str | Sequence[str] | None) -> list[tuple[str, Runs]]:
    """The runs grouped by the values of one or several factors, with a title per group.

    If there is no factor, there is one group without a title.
    """
    factors = [by] if isinstance(by, str) else list(by or [])
    if not factors:
        return [("", runs)]
    found: dict[tuple[Factor, ...], list[Run]] = {}
    for run in runs:
        found.setdefault(tuple(run.factors[name] for name in factors), []).append(run)

    def rank(values: tuple[Factor, ...]) -> tuple[Any, ...]:
        return tuple(order_of(name, value, runs) for name, value in zip(factors, values, strict=True))

    ordered = sorted(found, key=rank)
    titles = [
        ", ".join(factor_text(name, value) for name, value in zip(factors, values, strict=True))
        for values in ordered
    ]
    many = len(ordered) > 1
    return [
        (f"({chr(97 + i)}) {title}" if many else title, Runs(found[values]))
        for i, (title, values) in enumerate(zip(titles, ordered, strict=True))
    ]


def order_of(name: str, value: Factor, runs: Runs) -> float:
    """Rank of a factor's value: controllers by the table of looks, numbers by size, others by appearance."""
    if name == ALGORITHM:
        return float(algorithms(runs).index(str(value)))
    if isinstance(value, int | float):
        return float(value)
    return float(runs.values(name).index(value))


def factor_text(name: str, value: Factor) -> str:
    """A factor's value in words."""
    if name == ALGORITHM:
        return look(str(value)).label
    if name == "buffer" and isinstance(value, int | float):
        return f"buffer {value:,.0f} packets"
    if name == "flows" and isinstance(value, int | float):
        return f"{value:g} flow{'s' if value != 1 else ''}"
    if name == "each" and isinstance(value, int | float):
        return f"{value:g} flow{'s' if value != 1 else ''} of each kind"
    if name == "buffer" and str(value).endswith("bdp"):
        return str(value).replace("bdp", " BDP")
    if name == "rtt" and isinstance(value, int | float):
        return f"RTT {1e3 * value:g} ms"
    if name == "loss" and isinstance(value, int | float):
        return f"{100 * value:g} % loss"
    if name.endswith("rate") and isinstance(value, int | float):
        return f"{name} {value / 1e6:,.0f} Mbit/s"
    if name.startswith("start") and isinstance(value, int | float):
        return f"{name} at {value:g} s"
    if name == "trace":
        return trace_label(str(value))
    return f"{name} {value:g}" if isinstance(value, int | float) else f"{name} {value}"


def number(value: Factor) -> float:
    """A factor's value as a number. The suffix `bdp` of a queue's length is removed."""
    return float(value.removesuffix("bdp") if isinstance(value, str) else value)


def trace_label(stem: str) -> str:
    """A title made from the name of a trace's file."""
    words = re.split(r"[-_.]", stem)
    return " ".join(
        word.upper() if word in {"lte", "att", "ucc"} else word
        for word in words
        if word not in {"short", "1"}
    )


def first_seed(runs: Runs) -> list[Run]:
    """One run per case: the run with the smallest seed."""
    return [min(group, key=lambda run: run.seed) for group in runs.cases().values()]
