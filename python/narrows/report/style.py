"""The look of all charts: a colour, a dash and a marker per controller, the same in every figure.

Colours start from Okabe and Ito's colour-blind safe palette ("Color Universal Design", 2008). Controllers
that are usually drawn together also differ by dash and marker, so that a grey print remains legible.
"""

from __future__ import annotations

import colorsys
from dataclasses import dataclass

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


LOOKS: dict[str, Look] = {
    # Loss-based
    "cubic": Look("CUBIC", "#0072b2", "#5aaee6", _SOLID, "square"),
    "reno": Look("Reno", "#5b6f84", "#a9bccf", _DASHED, "square"),
    "cubic-hystartpp": Look("CUBIC, HyStart++", "#1f86b8", "#7cc4ef", _DOTTED, "square"),
    "reno-hystartpp": Look("Reno, HyStart++", "#6d7f92", "#b9c9d9", _DASH_DOT, "square"),
    "bic": Look("BIC", "#3f5fa8", "#8fa9e8", _DASH_DOT, "square"),
    "highspeed": Look("HighSpeed", "#2f6f8f", "#7fc0df", _DOTTED, "square"),
    "scalable": Look("Scalable", "#4b4b9b", "#9f9fe6", _DASHED, "diamond"),
    "htcp": Look("H-TCP", "#46748c", "#93c0d8", _DASH_DOT, "diamond"),
    "hybla": Look("Hybla", "#35618f", "#86b4e4", _DOTTED, "diamond"),
    # Delay-based and mixed
    "vegas": Look("Vegas", "#8f6b00", "#d9b54a", _SOLID, "triangle-down"),
    "nv": Look("NV", "#a37c1c", "#e0bf6a", _DASHED, "triangle-down"),
    "veno": Look("Veno", "#7d5f2a", "#c9a76c", _DASH_DOT, "triangle-down"),
    "westwood": Look("Westwood", "#6f6a3a", "#bdb67e", _DOTTED, "triangle-down"),
    "yeah": Look("YeAH", "#94621f", "#dba765", _DASHED, "triangle-left"),
    "illinois": Look("Illinois", "#8a4f2f", "#d6977a", _DASH_DOT, "triangle-left"),
    "cdg": Look("CDG", "#7a5a4a", "#c2a090", _DOTTED, "triangle-left"),
    "lp": Look("LP", "#777777", "#aaaaaa", _DOTTED, "triangle-left"),
    # Model-based
    "bbr": Look("BBR", "#d55e00", "#ff9248", _DASHED, "triangle-up"),
    "bbr2": Look("BBRv2", "#b8437f", "#ec8cbd", _DASH_DOT, "triangle-up"),
    "bbr3": Look("BBRv3", "#a3261a", "#f2786b", _DOTTED, "triangle-up"),
    "bbr-a": Look("BBR-A", "#c77400", "#f5b04d", _SOLID, "triangle-right"),
    "bbr-b": Look("BBR-B", "#b04a6b", "#e591ae", _DASHED, "triangle-right"),
    "bbr-c": Look("BBR-C", "#8e3b1f", "#e0886a", _DASH_DOT, "triangle-right"),
    "bbr-a-literal": Look("BBR-A, as printed", "#a8844a", "#dcbd8c", _DOTTED, "triangle-right"),
    "bbr-b-literal": Look("BBR-B, as printed", "#94747f", "#cfb0bb", _DOTTED, "triangle-right"),
    "bbr-c-literal": Look("BBR-C, as printed", "#836052", "#c7a396", _DOTTED, "triangle-right"),
    "bbr-a-recent": Look("BBR-A, last minute", "#b3903a", "#e6cb85", _DASH_DOT, "triangle-right"),
    "bbr-b-recent": Look("BBR-B, last minute", "#a06e8c", "#d9a8c4", _DASH_DOT, "triangle-right"),
    "bbr-c-recent": Look("BBR-C, last minute", "#94604a", "#d49d88", _DASH_DOT, "triangle-right"),
    "bbq": Look("BBQ", "#9a5b8c", "#d79fca", _DOTTED, "triangle-right"),
    # Marking
    "dctcp": Look("DCTCP", "#56789c", "#9cc0e6", _DASHED, "cross"),
    "prague": Look("Prague", "#3d7f9c", "#86cbe8", _SOLID, "cross"),
    # Explicit rate
    "brf": Look("BRF", "#007a57", "#2fc79a", _SOLID, "circle"),
    "brf-literal": Look("BRF, as printed", "#80852c", "#c2c860", _DOTTED, "diamond"),
    "brf-urgent": Look("BRF, urgent decrease", "#00879e", "#4cc3d9", _DASHED, "triangle-up"),
    "brf-measured": Look("BRF, measured", "#7a4fa0", "#bd94e6", _DASH_DOT, "cross"),
    "pacec": Look("PACEC", "#00838f", "#4fd0dc", _DASHED, "circle"),
    "rcp": Look("RCP", "#8e44ad", "#c893e6", _DASH_DOT, "triangle-up"),
    "xcp": Look("XCP", "#c0392b", "#ff8a7a", _DOTTED, "square"),
    "bdr": Look("BDR", "#8a6500", "#e6bf4d", _DASHED, "diamond"),
    "bdr-plain": Look("BDR, no redistribution", "#967512", "#f0d37a", _DOTTED, "diamond"),
    "bdr-literal": Look("BDR, as printed", "#6b4f1d", "#b99556", _DASH_DOT, "diamond"),
    "pacec-literal": Look("PACEC, as printed", "#3b6f9e", "#86b8e6", _DOTTED, "circle"),
    "pacec-counted": Look("PACEC, OpenFlow's counters", "#2b5c8a", "#7fb0dd", _DASH_DOT, "circle"),
    "rcp-published": Look("RCP (0.4, 0.4)", "#b07cc6", "#dcb8ec", _DOTTED, "triangle-up"),
    "obp": Look("OBP", "#5d6b1f", "#b9c96a", _DOTTED, "cross"),
    "hpcc": Look("HPCC", "#356a6a", "#84c4c4", _DASH_DOT, "diamond"),
    "abc": Look("ABC", "#6a8f5a", "#b0d8a0", _DOTTED, "stroke"),
    "rate": Look("Told rate", "#444444", "#bbbbbb", _SOLID, "stroke"),
    "udp": Look("UDP", "#888888", "#999999", _DOTTED, "stroke"),
}

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
    if name in LOOKS:
        return LOOKS[name]
    number = sum(name.encode())
    light = _SPARE[number % len(_SPARE)]
    dash = (_SOLID, _DASHED, _DOTTED, _DASH_DOT)[number % 4]
    return Look(name, light, _shift(light, 0.25), dash, ("circle", "square", "diamond", "cross")[number % 4])


def order(names: list[str]) -> list[str]:
    """The names in the order of the table, unknown names last. All legends and bars use it."""
    known = list(LOOKS)
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
    known = {entry.light: entry.dark for entry in LOOKS.values()} | DARK_OF
    known |= {colour: _shift(colour, 0.25) for colour in _SPARE}
    return {colour: known[colour] for colour in sorted(colours) if colour in known}


def _shift(colour: str, by: float) -> str:
    """The colour, lighter by `by` of the range of lightness."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    channels = colorsys.hls_to_rgb(hue, min(0.92, max(0.15, lightness + by)), saturation)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in channels)
