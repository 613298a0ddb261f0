"""Figures as files for papers and slides."""

from __future__ import annotations

import json
from pathlib import Path

import vl_convert
from altair.utils.schemapi import debug_mode

from narrows.report.figure import VALIDATE, Figure

PNG_SCALE = 3.0
"""Pixels per point: 216 dpi."""


def write(figure: Figure, folder: Path, name: str = "") -> list[Path]:
    """Write `<id>.svg`, `<id>.pdf`, `<id>.png` and the specification `<id>.vl.json`; or by this name."""
    folder.mkdir(parents=True, exist_ok=True)
    with debug_mode(VALIDATE):
        spec = figure.spec() | {"background": "white"}
    svg = vl_convert.vegalite_to_svg(spec)
    contents = {
        "svg": svg.encode(),
        "pdf": vl_convert.svg_to_pdf(svg),
        "png": vl_convert.svg_to_png(svg, scale=PNG_SCALE),
        "vl.json": json.dumps(spec, separators=(",", ":")).encode(),
    }
    written = []
    for suffix, content in contents.items():
        target = folder / f"{name or figure.id}.{suffix}"
        target.write_bytes(content)
        written.append(target)
    return written
