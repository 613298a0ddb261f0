"""Fills the template: style, charts, data and the chart library become one file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from altair.utils.schemapi import debug_mode
from markupsafe import Markup

from narrows.report.claims import ClaimRow, Tally
from narrows.report.figure import VALIDATE, Figure, Key
from narrows.report.style import dark_of, looks, shades
from narrows.report.tables import Table

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Section:
    """An experiment."""

    id: str
    title: str
    reference: str
    text: str
    figures: list[Figure]
    tables: list[Table] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)
    """Title and text of each part that the reader can unfold."""
    remarks: list[str] = field(default_factory=list)
    """Sentences below the tables."""


@dataclass(frozen=True)
class Page:
    """The content of a report."""

    title: str
    lead: str
    source: str
    sections: list[Section]
    tallies: list[tuple[str, Tally]] = field(default_factory=list)
    """For each reading of the algorithms: its name, and the tally of the paper's claims."""
    readings: list[tuple[str, str]] = field(default_factory=list)
    """For each algorithm with two readings: the reading that claims name, and the other reading."""
    reading_words: tuple[str, str] = ("", "")
    """The two readings in words."""
    claims: list[ClaimRow] = field(default_factory=list)
    own: list[ClaimRow] = field(default_factory=list)
    real: Table | None = None
    """Table of the agreement of real stacks with the simulation. If it is set, each claim also has a verdict
    on real stacks."""
    side: str = ""
    """Name of the real stacks in headings."""
    tally_real: Tally = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    resolutions: list[str] = field(default_factory=list)
    scenarios: list[tuple[str, str]] = field(default_factory=list)
    measures: list[tuple[str, str, str, str]] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    play: tuple[str, str] | None = None
    """The command that opens the scenario in the playground, and the playground's address (may be empty)."""
    numbers: dict[str, int] = field(default_factory=dict)
    warmup_s: float | None = None
    """Length of the warm-up, the same for all runs (None: the warm-up is a tenth of each run)."""

    @property
    def twofold(self) -> bool:
        """Whether claims have verdicts on two readings."""
        return len(self.tallies) > 1

    @property
    def warmup(self) -> str:
        """The warm-up in words that can be a part of a sentence."""
        part = "tenth" if self.warmup_s is None else f"{self.warmup_s:g} s"
        return f"first {part} of a run (the warm-up)"


def render(page: Page) -> str:
    """The page as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["code"] = _code
    charts: dict[str, Any] = {}
    colours: set[str] = set()
    for section in page.sections:
        for figure in section.figures:
            with debug_mode(VALIDATE):
                charts[figure.id] = [_without_schema(spec) for spec in figure.specs()]
    text = json.dumps(charts, separators=(",", ":"), allow_nan=False)
    colours |= set(re.findall(r"#[0-9a-f]{6}", text))
    numbers = page.numbers or {
        figure.id: i + 1 for i, figure in enumerate(f for s in page.sections for f in s.figures)
    }
    return environment.get_template("page.html.j2").render(
        page=page,
        numbers=numbers,
        css=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup((_HERE / "page.js").read_text(encoding="utf-8")),
        library=Markup(_library()),
        charts=Markup(_safe(text)),
        swap=Markup(_safe(json.dumps(_dark(colours)))),
        swatch=_swatch,
    )


def _without_schema(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification without the address of its schema, because the page must not refer to other hosts."""
    return {key: value for key, value in spec.items() if key != "$schema"}


def _dark(colours: set[str]) -> dict[str, str]:
    """For each colour that the charts use on a white page, the colour that replaces it on a dark page."""
    swap = dark_of(colours)
    for name in _names():
        for count in range(2, 13):
            for item in shades(name, count):
                if item.light in colours:
                    swap.setdefault(item.light, item.dark)
    return swap


def _names() -> list[str]:
    return list(looks())


@lru_cache(maxsize=1)
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, as vl-convert ships them."""
    return _safe(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _safe(script: str) -> str:
    """The script, escaped so that its text cannot close the `script` element (HTML, section 4.12.1.3)."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


_MARKS = {
    "circle": '<circle cx="13" cy="7" r="3.6"/>',
    "square": '<rect x="9.8" y="3.8" width="6.4" height="6.4"/>',
    "diamond": '<path d="M13 2.4l4.2 4.6l-4.2 4.6l-4.2-4.6z"/>',
    "triangle-up": '<path d="M13 2.8l4.2 7.6h-8.4z"/>',
    "triangle-down": '<path d="M13 11.2l4.2-7.6h-8.4z"/>',
    "triangle-left": '<path d="M8.8 7l7.6-4.2v8.4z"/>',
    "triangle-right": '<path d="M17.2 7l-7.6-4.2v8.4z"/>',
    "cross": '<path d="M11.6 3h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6v-2.8h2.6z"/>',
    "stroke": '<rect x="8.5" y="6" width="9" height="2"/>',
}


def _swatch(key: Key) -> Markup:
    """A legend's sample of a series."""
    look = key.look
    style = f"--l:{look.light};--d:{look.dark or look.light}"
    if key.area:
        inside = '<rect x="3" y="2" width="20" height="10" rx="1.5"/>'
    else:
        dash = f' stroke-dasharray="{" ".join(map(str, look.dash))}"' if look.dash else ""
        inside = f'<line x1="0" y1="7" x2="26" y2="7" stroke-width="2"{dash}/>'
        if key.marks:
            outline = 1.2 if key.fill < 1 else 0
            mark = _MARKS.get(look.marker, "")
            inside += f'<g fill-opacity="{key.fill:g}" stroke-width="{outline:g}">{mark}</g>'
    return Markup(
        f'<svg class="swatch" style="{style}" viewBox="0 0 26 14" aria-hidden="true">{inside}</svg>'
    )


def _code(text: str) -> Markup:
    """The text as HTML, with the words in backticks as code."""
    escaped = str(Markup.escape(text))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))
