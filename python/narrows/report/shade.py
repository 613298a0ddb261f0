"""Fill colours of numbers, and legible text colours on them."""

from __future__ import annotations

from dataclasses import dataclass

DARK_TEXT, LIGHT_TEXT = "#000000", "#ffffff"


@dataclass(frozen=True)
class Ramp:
    """Colours between three values, e.g. bad, neutral and good.

    The colours are mixed by channel, because white has no hue. Values beyond the ends have the colours of the
    ends.
    """

    low: float
    middle: float
    high: float
    colours: tuple[str, str, str]

    def fill(self, value: float) -> str:
        """The colour of the cell of a value."""
        start, end = (self.low, self.middle) if value <= self.middle else (self.middle, self.high)
        part = min(1.0, max(0.0, (value - start) / (end - start)))
        first, second = self.colours[:2] if value <= self.middle else self.colours[1:]
        mixed = (a + part * (b - a) for a, b in zip(_channels(first), _channels(second), strict=True))
        return "#" + "".join(f"{round(255 * channel):02x}" for channel in mixed)

    def text(self, value: float) -> str:
        """The colour of text in the cell of a value."""
        return text_on(self.fill(value))


def text_on(fill: str) -> str:
    """Black or white: the colour with more contrast to the fill."""
    return max((DARK_TEXT, LIGHT_TEXT), key=lambda text: contrast(text, fill))


def contrast(a: str, b: str) -> float:
    """Contrast of two colours by WCAG 2.1, 1 to 21."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of a colour by WCAG 2.1, 0 to 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour)]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])


def _channels(colour: str) -> list[float]:
    """Red, green and blue of ``#rrggbb``, 0 to 1."""
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
