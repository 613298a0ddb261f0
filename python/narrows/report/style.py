"""The look of all charts: a colour, a dash and a marker per controller, the same in every figure.

Colours start from Okabe and Ito's colour-blind safe palette ("Color Universal Design", 2008). Controllers
that are usually drawn together also differ by dash and marker, so that a grey print remains legible.
"""

from __future__ import annotations

import colorsys
import functools
from collections.abc import Mapping
from dataclasses import dataclass

from narrows import congestion

Dash = tuple[int, ...]
_SOLID: Dash = ()
_DASHED: Dash = (7, 3)
_DOTTED: Dash = (2, 2)
_DASH_DOT: Dash = (7, 2, 2, 2)


@dataclass(frozen=True, slots=True)
class Look:
    """How a series is drawn."""

    label: str
    light: str
    """Colour on white."""
    dark: str
    """Colour on a dark page."""
    dash: Dash = _SOLID
    marker: str = "circle"


_OTHERS: dict[str, tuple[str, Look]] = {
    "nv": ("vegas", Look("NV", "#a37c1c", "#e0bf6a", _DASHED, "triangle-down")),
    "cdg": ("illinois", Look("CDG", "#7a5a4a", "#c2a090", _DOTTED, "triangle-left")),
    "prague": ("dctcp", Look("Prague", "#3d7f9c", "#86cbe8", _SOLID, "cross")),
    "brf-urgent": ("brf-literal", Look("BRF, urgent decrease", "#00879e", "#4cc3d9", _DASHED, "triangle-up")),
    "brf-measured": ("brf-urgent", Look("BRF, measured", "#7a4fa0", "#bd94e6", _DASH_DOT, "cross")),
    "bdr-plain": ("bdr", Look("BDR, no redistribution", "#967512", "#f0d37a", _DOTTED, "diamond")),
    "pacec-literal": ("pacec", Look("PACEC, as printed", "#3b6f9e", "#86b8e6", _DOTTED, "circle")),
    "pacec-counted": (
        "pacec-literal",
        Look("PACEC, OpenFlow's counters", "#2b5c8a", "#7fb0dd", _DASH_DOT, "circle"),
    ),
    "rcp-published": ("rcp", Look("RCP (0.4, 0.4)", "#b07cc6", "#dcb8ec", _DOTTED, "triangle-up")),
    "hpcc": ("obp", Look("HPCC", "#356a6a", "#84c4c4", _DASH_DOT, "diamond")),
    "abc": ("hpcc", Look("ABC", "#6a8f5a", "#b0d8a0", _DOTTED, "stroke")),
    "rate": ("abc", Look("Told rate", "#444444", "#bbbbbb", _SOLID, "stroke")),
    "udp": ("rate", Look("UDP", "#888888", "#999999", _DOTTED, "stroke")),
}
"""Names that are not in the catalogue: other traffic, variants in studies, and algorithms that figures
of other programs show. Each has its look, and the name that it follows in legends."""
_DASHES: dict[str, Dash] = {"solid": _SOLID, "dashed": _DASHED, "dotted": _DOTTED, "dash-dot": _DASH_DOT}


@functools.cache
def looks() -> Mapping[str, Look]:
    """Looks by name, in the order of legends: those of the catalogue, and others."""
    found: dict[str, Look] = {}
    for name, row, preset in congestion.names():
        drawn = preset.look if preset else row.look
        if drawn is not None:
            found[name] = Look(drawn.label, drawn.light, drawn.dark, _DASHES[drawn.dash], drawn.marker)
    for name, (after, drawn_like) in _OTHERS.items():
        at = list(found).index(after) + 1
        found = dict([*list(found.items())[:at], (name, drawn_like), *list(found.items())[at:]])
    return found


INK, GREY, FAINT, PAPER = "#1c1e21", "#6b7280", "#c9cdd3", "#fefefe"
"""Text, secondary text and rules of charts on white, and the page itself (#ffffff is never swapped). On a
dark page these colours are replaced by their dark counterparts.
"""
DARK_OF = {INK: "#e8e6e1", GREY: "#9aa3ad", FAINT: "#3d444d", PAPER: "#16181b"}


def neutral(colour: str, dash: Dash = _SOLID) -> Look:
    """A look for a series without a controller, in `INK`, `GREY` or `FAINT`."""
    return Look("", colour, DARK_OF[colour], dash)


_SPARE = ("#6f5b8c", "#8c5b6f", "#5b8c7a", "#8c7a5b", "#5b6f8c", "#7a8c5b")


def look(name: str) -> Look:
    """The look of a controller. For an unknown name it depends on the name only."""
    if name in looks():
        return looks()[name]
    number = sum(name.encode())
    light = _SPARE[number % len(_SPARE)]
    dash = (_SOLID, _DASHED, _DOTTED, _DASH_DOT)[number % 4]
    return Look(name, light, _shift(light, 0.25), dash, ("circle", "square", "diamond", "cross")[number % 4])


def order(names: list[str]) -> list[str]:
    """The names in the order of the table, unknown names last. All legends and bars use it."""
    known = list(looks())
    return sorted(
        dict.fromkeys(names), key=lambda name: (known.index(name) if name in known else len(known), name)
    )


def shades(name: str, count: int) -> list[Look]:
    """Looks for several flows of one controller.

    They range from its own colour to a paler one. Two or three flows also differ by dash.
    """
    base = look(name)
    if count == 1:
        return [base]
    steps = [0.3 * i / (count - 1) for i in range(count)]
    apart: list[Dash] = [_SOLID, _DASHED, _DOTTED]
    dashes = apart[:count] if count <= len(apart) else [_SOLID] * count
    return [
        Look(
            f"{base.label} {i + 1}",
            _shift(base.light, step),
            _shift(base.dark, -step * 0.8),
            dash,
            base.marker,
        )
        for i, (step, dash) in enumerate(zip(steps, dashes, strict=True))
    ]


def looks_of(kinds: list[str]) -> list[Look]:
    """The look of each series: its controller's, or a shade of it if several series have that controller."""
    ramps = {kind: iter(shades(kind, kinds.count(kind))) for kind in set(kinds)}
    return [next(ramps[kind]) for kind in kinds]


def dark_of(colours: set[str]) -> dict[str, str]:
    """The colour on the dark page for each colour."""
    known = {entry.light: entry.dark for entry in looks().values()} | DARK_OF
    known |= {colour: _shift(colour, 0.25) for colour in _SPARE}
    return {colour: known[colour] for colour in sorted(colours) if colour in known}


def _shift(colour: str, by: float) -> str:
    """The colour, lighter by `by` of the range of lightness."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    channels = colorsys.hls_to_rgb(hue, min(0.92, max(0.15, lightness + by)), saturation)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in channels)
