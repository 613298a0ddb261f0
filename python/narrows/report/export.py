"""Figures as files for papers and slides."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import vl_convert
from altair.utils.schemapi import debug_mode

from narrows.report.figure import VALIDATE, Figure

SUFFIXES = ("svg", "pdf", "png", "vl.json")
"""Suffixes of the files of a figure."""
PNG_SCALE = 3.0
"""Pixels per point: 216 dpi."""
_CLIP = re.compile(r'(id="clip|url\(#clip)(\d+)')


def svg(figure: Figure) -> str:
    """The figure as SVG, with its legend."""
    return _drawn(_spec(figure))


def pdf(figure: Figure) -> bytes:
    """The figure as PDF, with its legend."""
    return bytes(vl_convert.svg_to_pdf(svg(figure)))


def _spec(figure: Figure) -> dict[str, Any]:
    with debug_mode(VALIDATE):
        return figure.spec() | {"background": "white"}


def _drawn(spec: dict[str, Any]) -> str:
    """The SVG of a specification.

    In a process, Vega continues the numbers of clip paths from one figure to the next. Here the numbers of
    each figure start at 1, so that the text does not depend on earlier figures.
    """
    drawn = str(vl_convert.vegalite_to_svg(spec))
    before = min((int(match[2]) for match in _CLIP.finditer(drawn)), default=1) - 1
    return _CLIP.sub(lambda match: f"{match[1]}{int(match[2]) - before}", drawn)


def write(figure: Figure, folder: Path, name: str = "") -> list[Path]:
    """Write `<id>.svg`, `<id>.pdf`, `<id>.png` and the specification `<id>.vl.json`.

    `name` replaces the id.
    """
    folder.mkdir(parents=True, exist_ok=True)
    spec = _spec(figure)
    drawn = _drawn(spec)
    contents = {
        "svg": drawn.encode(),
        "pdf": vl_convert.svg_to_pdf(drawn),
        "png": vl_convert.svg_to_png(drawn, scale=PNG_SCALE),
        "vl.json": json.dumps(spec, separators=(",", ":")).encode(),
    }
    written = []
    for suffix, content in contents.items():
        target = folder / f"{name or figure.id}.{suffix}"
        target.write_bytes(content)
        written.append(target)
    return written
