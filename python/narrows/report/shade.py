"""Fills that say a number, and text that can be read on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DARK_TEXT, LIGHT_TEXT = "#000000", "#ffffff"

_Triple = tuple[float, float, float]
_WHITE: _Triple = (0.95047, 1.0, 1.08883)
"""D65, sRGB's white, in XYZ."""
_TO_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
_FROM_XYZ = (
    (3.2404542, -1.5371385, -0.4985314),
    (-0.9692660, 1.8760108, 0.0415560),
    (0.0556434, -0.2040259, 1.0572252),
)
_EPSILON, _KAPPA = 216 / 24389, 24389 / 27
"""Of CIE 15: where L* turns linear."""


@dataclass(frozen=True)
class Ramp:
    """Colours between three values: bad, neutral, good, or whatever they are of.

    They meet in CIE's L*a*b*, not by hue, which white has none of. What lies beyond has the ends' colours.
    """

    low: float
    middle: float
    high: float
    colours: tuple[str, str, str]

    def fill(self, value: float) -> str:
        """The colour of a value."""
        start, end = (self.low, self.middle) if value <= self.middle else (self.middle, self.high)
        part = min(1.0, max(0.0, (value - start) / (end - start)))
        first, second = self.colours[:2] if value <= self.middle else self.colours[1:]
        a, b = _lab(first), _lab(second)
        return _hex((_mix(a[0], b[0], part), _mix(a[1], b[1], part), _mix(a[2], b[2], part)))

    def text(self, value: float) -> str:
        """The colour of text on it."""
        return text_on(self.fill(value))


def text_on(fill: str) -> str:
    """Black or white, whichever has more contrast to the fill."""
    return max((DARK_TEXT, LIGHT_TEXT), key=lambda text: contrast(text, fill))


def contrast(a: str, b: str) -> float:
    """WCAG 2.1's contrast of two colours, 1 to 21."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """WCAG 2.1's relative luminance of a colour, 0 to 1."""
    return _times(_TO_XYZ[1], _linear(colour))


def _mix(a: float, b: float, part: float) -> float:
    return a + part * (b - a)


def _times(row: Sequence[float], of: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(row, of, strict=True))


def _linear(colour: str) -> _Triple:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return _decoded(red), _decoded(green), _decoded(blue)


def _decoded(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)


def _encoded(channel: float) -> float:
    return 12.92 * channel if channel <= 0.0031308 else float(1.055 * channel ** (1 / 2.4) - 0.055)


def _lab(colour: str) -> _Triple:
    linear = _linear(colour)
    x, y, z = (_curve(_times(row, linear) / white) for row, white in zip(_TO_XYZ, _WHITE, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _curve(t: float) -> float:
    return float(t ** (1 / 3)) if t > _EPSILON else (_KAPPA * t + 16) / 116


def _hex(lab: _Triple) -> str:
    y = (lab[0] + 16) / 116
    straight = (y + lab[1] / 500, y, y - lab[2] / 200)
    xyz = [
        white * (t**3 if t**3 > _EPSILON else (116 * t - 16) / _KAPPA)
        for t, white in zip(straight, _WHITE, strict=True)
    ]
    channels = (_encoded(min(1.0, max(0.0, _times(row, xyz)))) for row in _FROM_XYZ)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in channels)
