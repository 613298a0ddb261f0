"""Heat maps: a value for each of a controller and a rival, in the order of the families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from narrows.report.figure import Figure, Panel, inline
from narrows.report.style import look

ROW_HEIGHT = 27
"""Height of a row of cells, px."""
HEAD_HEIGHT = 70
"""Room for the names above, px."""
_DARK_TEXT, _LIGHT_TEXT = "#000000", "#ffffff"
_NEVER = ("#7f2704", "#f7f7f7", "#08519c")
"""Bad, neutral, good: brown to blue, which most colour-blind people tell apart.

These do not change on a dark page: a cell's ground and its text belong together.
"""
_HARM = ("#c6dbef", "#fbfbfb", "#7f2704")
"""Better than alone, no harm, all taken."""


@dataclass(frozen=True)
class Scale:
    """What colours mean: the values at the ends and in the middle, and how far from it text turns white."""

    low: float
    middle: float
    high: float
    colours: tuple[str, str, str] = _NEVER

    def text(self, value: float) -> str:
        """The colour of text on the cell of a value."""
        span = self.high - self.middle if value > self.middle else self.middle - self.low
        ground = self.colours[2] if value > self.middle else self.colours[0]
        dark = ground not in ("#c6dbef",)
        return _LIGHT_TEXT if dark and abs(value - self.middle) > 0.6 * span else _DARK_TEXT


SHARE = Scale(0.0, 0.5, 1.0)
HARM = Scale(-1.0, 0.0, 1.0, _HARM)
FAIR = Scale(0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Value:
    """A cell: of `row` beside `column`, a mean with half the width of its interval, and the text in it."""

    row: str
    column: str
    mean: float
    half: float
    text: str


def heat(
    identity: str, title: str, caption: str, names: Sequence[str], values: Sequence[Value], scale: Scale
) -> Figure:
    """A heat map; rows and columns are `names` in that order, cells without a value stay empty."""
    labels = [look(name).label for name in names]
    data = [
        {
            "r": look(value.row).label,
            "c": look(value.column).label,
            "v": min(max(value.mean, scale.low), scale.high),
            "m": value.mean,
            "h": value.half if value.half == value.half else None,
            "t": value.text,
            "k": scale.text(value.mean),
        }
        for value in values
        if value.mean == value.mean
    ]
    base = alt.Chart(inline(data)).encode(
        x=alt.X(
            "c:N",
            sort=labels,
            title="beside",
            scale=alt.Scale(domain=labels),
            axis=alt.Axis(orient="top", labelAngle=-45, domain=False, ticks=False, grid=False),
        ),
        y=alt.Y(
            "r:N",
            sort=labels,
            title=None,
            scale=alt.Scale(domain=labels),
            axis=alt.Axis(domain=False, ticks=False, grid=False),
        ),
        tooltip=[
            alt.Tooltip("r:N", title="of"),
            alt.Tooltip("c:N", title="beside"),
            alt.Tooltip("m:Q", title=title, format=".3~f"),
            alt.Tooltip("h:Q", title="\N{PLUS-MINUS SIGN}", format=".2~f"),
        ],
    )
    colours = alt.Color(
        "v:Q",
        legend=None,
        scale=alt.Scale(
            domain=[scale.low, scale.middle, scale.high], range=list(scale.colours), interpolate="lab"
        ),
    )
    cells = base.mark_rect(stroke="#ffffff", strokeWidth=1).encode(color=colours)
    text = base.mark_text(fontSize=10.5).encode(
        text="t:N",
        color=alt.Color("k:N", legend=None, scale=alt.Scale(domain=_TEXTS, range=_TEXTS)),
    )
    chart = alt.layer(cells, text).resolve_scale(color="independent")
    return Figure(
        identity, title, caption, [Panel("", chart, height=ROW_HEIGHT * max(1, len(names)))], columns=1
    )


_TEXTS = [_DARK_TEXT, _LIGHT_TEXT]
