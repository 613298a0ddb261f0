"""A figure: panels with one legend and a caption. The page and the files use the same definition."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any

import altair as alt

from narrows.report.style import FAINT, GREY, INK, Look

FONT = "Inter, 'Source Sans 3', 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
VALIDATE = False
"""Whether to check charts against Vega-Lite's schema. The check makes drawing ten times as slow, so only
tests use it."""
PANEL_WIDTH, PANEL_HEIGHT = 330, 230
"""Size of a panel in files. On the page, the width of a panel follows the window."""


_LABELS = 100
"""Approximate width of the labels and titles of axes."""
_CHARACTER = 5.6
"""Mean width of a character of a caption in files, at 11 px."""
_LINE = 20
"""Height of a line of the legend in files."""
_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z0-9`])")
"""The space between two sentences of a caption."""


@dataclass(frozen=True)
class Key:
    """An entry of a legend."""

    label: str
    look: Look
    marks: bool = False
    """Whether the series has markers."""
    fill: float = 1.0
    """Opacity of the markers' fill."""
    area: bool = False


@dataclass(frozen=True)
class Panel:
    """One chart of a figure."""

    title: str
    chart: alt.Chart | alt.LayerChart | alt.FacetChart
    height: int = PANEL_HEIGHT
    width: int | None = None
    """Width on the page (None: the width of its container). In a narrower container, the panel shrinks."""


@dataclass(frozen=True)
class Figure:
    """Panels side by side, or on top of each other (columns = 1)."""

    id: str
    title: str
    caption: str
    panels: list[Panel]
    keys: list[Key] = field(default_factory=list)
    columns: int = 2

    @property
    def summary(self) -> str:
        """The first sentence of the caption, which says what the figure shows."""
        return _END.split(self.caption, maxsplit=1)[0]

    def specs(self) -> list[dict[str, Any]]:
        """The Vega-Lite specification of each panel for the page, as wide as its container."""
        # On the page, a panel is as wide as its container, which may be narrower than a panel in files.
        return [
            _spec(
                panel.chart.properties(
                    width=panel.width if panel.width and panel.width <= PANEL_WIDTH else "container",
                    height=panel.height,
                )
            )
            for panel in self.panels
        ]

    @property
    def _wide(self) -> bool:
        """Whether panels in files have double width.

        Panels have double width if they are in one column, or if there is only one panel and it has a legend.
        """
        return self.columns == 1 or (len(self.panels) == 1 and bool(self.keys))

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification of the whole figure with its legend, for PNG, SVG and PDF."""
        place = PANEL_WIDTH * (2 if self._wide else 1)
        charts = [
            panel.chart.properties(
                width=min(panel.width or place, place), height=panel.height, title=panel.title
            )
            for panel in self.panels
        ]
        parts: list[Any] = []
        if charts:
            together = alt.concat(*charts, columns=self.columns, spacing=18)
            # Panels may use different colours for one name, e.g. for a flow with a different controller in
            # each panel.
            parts.append(
                together.resolve_scale(
                    color="independent", fill="independent", strokeDash="independent", shape="independent"
                )
            )
        if self.keys:
            side_by_side = min(self.columns, max(1, len(self.panels)))
            parts.insert(0, _legend(self.keys, max(2, side_by_side) * PANEL_WIDTH + _LABELS))
        whole = alt.vconcat(*parts, spacing=10)
        if self.caption:
            side_by_side = min(self.columns, max(1, len(self.panels)))
            width = max(2, side_by_side) * PANEL_WIDTH + _LABELS
            whole = whole.properties(title=_under(self.title, self.caption, width))
        return _spec(whole)


def _spec(chart: Any) -> dict[str, Any]:
    """The specification of a chart. Vega's settings are added to this chart, so no other code may use it."""
    # chart.configure() would copy the whole chart first.
    chart.config = _config()
    made: dict[str, Any] = chart.to_dict(validate=VALIDATE)
    return made


@functools.cache
def _config() -> alt.Config:
    return alt.Config(**config())  # altair checks the settings here, only once


def _under(title: str, caption: str, width: float) -> alt.TitleParams:
    """Title and caption below a figure in files, in lines of this width."""
    plain = caption.replace("`", "")
    return alt.TitleParams(
        title,
        subtitle=textwrap.wrap(plain, int(width / _CHARACTER)),
        orient="bottom",
        anchor="start",
        offset=14,
        subtitleColor=GREY,
        subtitleFontSize=11,
    )


def config() -> dict[str, Any]:
    """The settings of Vega for the look of axes and text."""
    axis = {
        "labelColor": GREY,
        "titleColor": GREY,
        "domainColor": FAINT,
        "tickColor": FAINT,
        "gridColor": FAINT,
        "gridOpacity": 0.45,
        "gridWidth": 0.7,
        "titleFontWeight": "normal",
        "titleFontSize": 12,
        "labelFontSize": 11,
        "titlePadding": 8,
        "labelPadding": 4,
        "tickSize": 4,
        "labelLimit": 240,
    }
    return {
        "background": "transparent",
        "font": FONT,
        "axis": axis,
        "axisX": {"grid": False},
        "view": {"stroke": None},
        "title": {"color": INK, "fontSize": 12, "fontWeight": 600, "anchor": "start", "offset": 8},
        "legend": {"disable": True},
    }


class _Name(str):
    """A name for the rows of a chart's data, computed from their content."""

    rows: list[dict[str, Any]]


class _Rows(alt.Data):
    """Rows as a chart's data.

    altair copies and checks each value of a chart's data several times. With this class, altair sees only a
    name instead of the rows. This halved the processor time of drawing a study's figures (measured with the
    BRF study).
    """

    def to_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
        """The data for Vega-Lite, in which the rows replace their name."""
        return {"values": self["name"].rows}


def inline(values: list[dict[str, Any]]) -> alt.Data:
    """Rows as a chart's data."""
    text = json.dumps(values, default=lambda scalar: scalar.item())  # numpy's scalars
    name = _Name(hashlib.sha256(text.encode()).hexdigest())
    name.rows = json.loads(text)
    return _Rows(name=name)  # type: ignore[no-untyped-call]


def _legend(keys: list[Key], most: float) -> Any:
    """The legend as a separate chart, for files.

    Its lines are at most `most` px wide, unless one entry is wider.
    """
    # A character at 12 px is 6.6 px wide on average. The mean is exact enough to divide entries into lines.
    left, widest, line = 0.0, 60.0, 0
    data: list[dict[str, Any]] = []
    for key in keys:
        width = 22 + 8 + 6.6 * len(key.label) + 18
        if left and left + width > most:
            left, line = 0.0, line + 1
        data.append({"x": left, "x2": left + 22, "label": key.label, "c": key.look.light, "line": line})
        left += width
        widest = max(widest, left)
    layers = []
    for row, key in zip(data, keys, strict=True):
        height = alt.value(8 + _LINE * row["line"])
        base = alt.Chart(inline([row])).encode(
            x=alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, widest], nice=False)), y=height
        )
        if key.area:
            layers.append(base.mark_rect(color=key.look.light, height=10).encode(x2="x2:Q", y=height))
        else:
            layers.append(
                base.mark_rule(color=key.look.light, strokeWidth=2, strokeDash=list(key.look.dash)).encode(
                    x2="x2:Q"
                )
            )
            if key.marks:
                middle = base.transform_calculate(m="datum.x + 11").encode(x=alt.X("m:Q", axis=None))
                layers.append(
                    middle.mark_point(
                        filled=False,
                        fill=key.look.light,
                        fillOpacity=key.fill,
                        size=45,
                        shape=key.look.marker,
                        color=key.look.light,
                        opacity=1,
                    )
                )
        text = base.transform_calculate(t="datum.x2 + 7").encode(x=alt.X("t:Q", axis=None), text="label:N")
        layers.append(text.mark_text(align="left", baseline="middle", color=INK, fontSize=12))
    return alt.layer(*layers).properties(width=widest, height=16 + _LINE * line)
