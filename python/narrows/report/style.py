"""The look of all charts: a colour, a dash and a marker per controller, the same in every figure.

Colours start from Okabe and Ito's colour-blind safe palette ("Color Universal Design", 2008). Controllers
that are usually drawn together also differ by dash and marker, so that a grey print remains legible.
"""

from __future__ import annotations

import colorsys
import contextlib
import functools
import zlib
from collections.abc import Iterator, Mapping
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
    """Colour on a white page."""
    dark: str
    """Colour on a dark page."""
    dash: Dash = _SOLID
    marker: str = "circle"


_OTHERS: dict[str, tuple[str, Look]] = {
    "nv": ("vegas", Look("NV", "#a37c1c", "#e0bf6a", _DASHED, "triangle-down")),
    "cdg": ("illinois", Look("CDG", "#7a5a4a", "#c2a090", _DOTTED, "triangle-left")),
    "prague": ("dctcp", Look("Prague", "#3d7f9c", "#86cbe8", _SOLID, "cross")),
    "brf-gated": ("brf-literal", Look("BRF, gated", "#00879e", "#4cc3d9", _DASHED, "triangle-up")),
    "brf-measured": ("brf-gated", Look("BRF, measured", "#7a4fa0", "#bd94e6", _DASH_DOT, "cross")),
    "brf-silent": ("brf-measured", Look("BRF, no controller", "#4a6f5f", "#9cc9b5", _DOTTED, "square")),
    "layers": ("brf-silent", Look("Layers", "#006b52", "#4fd1ac", _SOLID, "triangle-right")),
    "one-layer": ("layers", Look("One layer", "#5f7f2f", "#b5d67f", _DASHED, "triangle-right")),
    "printed-layers": (
        "one-layer",
        Look("Layers, as printed", "#8a6a1f", "#d9ba72", _DOTTED, "triangle-right"),
    ),
    "printed-one-layer": (
        "printed-layers",
        Look("One layer, as printed", "#a0522d", "#e0a080", _DASH_DOT, "triangle-right"),
    ),
    "controller": ("printed-one-layer", Look("Controller", "#0f6f5a", "#5fcab0", _SOLID, "wedge")),
    "switch": ("controller", Look("Switch", "#55792b", "#acd07a", _DASHED, "wedge")),
    "undetected": ("switch", Look("None", "#5b5b8f", "#b0b0e0", _DASH_DOT, "wedge")),
    "printed-controller": (
        "undetected",
        Look("Controller, as printed", "#826318", "#d2b46c", _DOTTED, "arrow"),
    ),
    "printed-switch": (
        "printed-controller",
        Look("Switch, as printed", "#984c28", "#da9a7a", _DASHED, "arrow"),
    ),
    "printed-undetected": (
        "printed-switch",
        Look("None, as printed", "#7f3f6f", "#d297c4", _DASH_DOT, "arrow"),
    ),
    "bdr-plain": ("bdr", Look("BDR, no redistribution", "#b57b00", "#fff0a8", _DOTTED, "diamond")),
    "bdr-paper": ("bdr-plain", Look("BDR, as in the paper", "#4f7a00", "#a8d64a", _SOLID, "diamond")),
    "reno-10": ("reno", Look("Reno, initial window 10", "#8a94a0", "#dfe7ee", _DOTTED, "circle")),
    "xcp-10": ("xcp", Look("XCP, initial window 10", "#7d1f4a", "#ffc0d4", _DASH_DOT, "square")),
    "pacec-literal": ("pacec", Look("PACEC, as printed", "#1d3a8a", "#6f8cff", _DOTTED, "circle")),
    "pacec-equal": ("pacec", Look("PACEC, equal shares", "#3f9e6b", "#b4f0cf", _DASHED, "circle")),
    "pacec-in-band": ("pacec", Look("PACEC, rates in ACKs", "#2a6f5b", "#8fd9c2", _DASH_DOT, "circle")),
    "pacec-counted": (
        "pacec-literal",
        Look("PACEC, OpenFlow's counters", "#3c2f8f", "#8f7dff", _DASH_DOT, "circle"),
    ),
    "rcp-published": ("rcp", Look("RCP, beta 0.4", "#b07cc6", "#dcb8ec", _DOTTED, "triangle-up")),
    "xcp-paced": ("xcp", Look("XCP, paced", "#e07020", "#ffc7a6", _DASHED, "square")),
    "hpcc": ("obp", Look("HPCC", "#356a6a", "#84c4c4", _DASH_DOT, "diamond")),
    "abc": ("hpcc", Look("ABC", "#6a8f5a", "#b0d8a0", _DOTTED, "stroke")),
    "rate": ("abc", Look("Told rate", "#444444", "#bbbbbb", _SOLID, "stroke")),
    "udp": ("rate", Look("UDP", "#888888", "#999999", _DOTTED, "stroke")),
}
"""Names that are not in the catalogue: other traffic, variants in studies, and algorithms that figures of
other programs show. Each has the name that it follows in legends, and its look."""
_DASHES: dict[str, Dash] = {"solid": _SOLID, "dashed": _DASHED, "dotted": _DOTTED, "dash-dot": _DASH_DOT}


@functools.cache
def looks() -> Mapping[str, Look]:
    """Looks by name, in the order of legends: the catalogue's looks, and the looks of names outside it."""
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
"""Colours of text, secondary text and rules of charts on a white page, and of the page itself. On a dark
page, they are replaced by their dark counterparts. `PAPER` is not #ffffff, because #ffffff is never replaced.
"""
DARK_OF = {INK: "#e8e6e1", GREY: "#9aa3ad", FAINT: "#3d444d", PAPER: "#16181b"}


def neutral(colour: str, dash: Dash = _SOLID) -> Look:
    """A look for a series without a controller, in `INK`, `GREY` or `FAINT`."""
    return Look("", colour, DARK_OF[colour], dash)


_HUES, _MARKERS = 12, ("circle", "square", "diamond", "cross", "triangle-up", "triangle-down")
_given: dict[str, int] = {}
"""For each name that is not in `looks`, the number of its look. Two names never have the same number."""


def look(name: str) -> Look:
    """The look of a controller, or of a controller with parameters such as ``cubic(beta=0.5)``.

    A name that is not in `looks` gets a look that no other name has. This look depends only on the name,
    unless an earlier name already has the look.
    """
    if name in looks():
        return looks()[name]
    if name not in _given:
        number = zlib.crc32(name.encode()) % _DIFFERENT
        while not _is_free(number):
            number += 1
        _given[name] = number
    light, dark = _spare_colours(_given[name])
    turn = _given[name] // _HUES
    base, params = _parts(name)
    label = f"{looks()[base].label}, {params}" if params and base in looks() else name
    dashes = tuple(_DASHES.values())
    return Look(label, light, dark, dashes[turn % len(dashes)], _MARKERS[turn // len(dashes) % len(_MARKERS)])


@contextlib.contextmanager
def own_looks() -> Iterator[None]:
    """In this context, names have the looks that they would have if no figure had been drawn before."""
    earlier = dict(_given)
    _given.clear()
    try:
        yield
    finally:
        _given.clear()
        _given.update(earlier)


def _is_free(number: int) -> bool:
    """Whether no name has this look.

    Because bars show only the colour, a free look must also have an unused hue. If all hues are in use, any
    hue is accepted.
    """
    hues = {given % _HUES for given in _given.values()}
    return number not in _given.values() and (number % _HUES not in hues or len(hues) == _HUES)


_DIFFERENT = _HUES * len(_DASHES) * len(_MARKERS)
"""Number of combinations of hue, dash and marker. Looks with larger numbers have hues between the `_HUES`
regular hues."""


def _spare_colours(number: int) -> tuple[str, str]:
    """The colours of a spare look, on white and on a dark page."""
    hue = (number % _HUES + 0.31 * (number // _DIFFERENT)) / _HUES % 1
    lightness = (0.39, 0.31, 0.43)[number // _HUES % 3]
    channels = [colorsys.hls_to_rgb(hue, value, 0.36) for value in (lightness, lightness + 0.25)]
    light, dark = ("#" + "".join(f"{round(255 * part):02x}" for part in rgb) for rgb in channels)
    return light, dark


def _parts(name: str) -> tuple[str, str]:
    """A name and its parameters, as in ``cubic(beta=0.5)``."""
    base, _, rest = name.partition("(")
    return (base, rest.removesuffix(")")) if rest.endswith(")") else (name, "")


def order(names: list[str]) -> list[str]:
    """The names in the order of `looks`, unknown names last. All legends and bars use this order.

    A controller with parameters comes right after the same controller without parameters.
    """
    known = list(looks())

    def place(name: str) -> tuple[int, str]:
        base, _ = _parts(name)
        return known.index(base) if base in known else len(known), name

    ordered = sorted(dict.fromkeys(names), key=place)
    for name in ordered:
        look(name)  # gives looks to unknown names in this order, not in the order of drawing
    return ordered


def shades(name: str, count: int) -> list[Look]:
    """Looks for several flows of one controller.

    The looks range from the controller's colour to a paler colour. Two or three flows also differ by dash.
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
    """The look of each series: its controller's look, or a shade of it if several share the controller."""
    ramps = {kind: iter(shades(kind, kinds.count(kind))) for kind in set(kinds)}
    return [next(ramps[kind]) for kind in kinds]


def dark_of(colours: set[str]) -> dict[str, str]:
    """The colour on the dark page for each colour."""
    known = {entry.light: entry.dark for entry in looks().values()} | DARK_OF
    known |= dict(map(_spare_colours, _given.values()))
    return {colour: known[colour] for colour in sorted(colours) if colour in known}


def _shift(colour: str, by: float) -> str:
    """The colour with its lightness increased by `by`. Lightness is between 0 and 1."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    channels = colorsys.hls_to_rgb(hue, min(0.92, max(0.15, lightness + by)), saturation)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in channels)
