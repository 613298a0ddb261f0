"""The tables of a page: the summary that `narrows run` prints, and the facts of the run."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from narrows.report.style import look
from narrows.results import summary
from narrows.results.figures import HEADINGS
from narrows.results.results import Results

PLUS_MINUS, DASH = "\N{PLUS-MINUS SIGN}", "\N{EN DASH}"
MOST_ROWS = 2000
"""Largest number of rows of a table on a page. The tables of the results have all rows."""
_SEEDS_IN_FULL = 8


@dataclass(frozen=True)
class Column:
    """A column of a table on a page."""

    title: str
    unit: str = ""
    number: bool = True


@dataclass(frozen=True)
class Cell:
    """A cell of a table, with its text and the half width of its confidence interval."""

    text: str
    half: str = ""
    css: str = ""
    """CSS class."""


@dataclass(frozen=True)
class Table:
    """A table on a page."""

    title: str
    columns: list[Column]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list)


Points = Collection[tuple[Any, ...]]
"""Points of a sweep, each as the values of its factors."""


def flow_table(rows: Sequence[summary.Row], alike: Points = ()) -> Table:
    """A row per flow and point of the sweep. At the points in `alike`, all seeds gave the same run."""
    shown = summary.shown_of_flows(rows)
    notes = []
    if "share" in shown and any(row.figures["fct_s"].mean > 0 for row in rows):
        notes.append("Flows that finish have no share.")
    if any(row.name.endswith("(group)") for row in rows):
        notes.append(sentence(summary.GROUPS))
    return _table("Flows", rows, shown, notes, alike)


def link_table(rows: Sequence[summary.Row], alike: Points = ()) -> Table:
    """A row per bottleneck link and point of the sweep."""
    notes = ["Links with at least 50 % utilisation, or with drops, losses or marks."]
    return _table("Links", rows, summary.shown_of_links(rows), notes, alike)


def _table(
    title: str, rows: Sequence[summary.Row], figures: Sequence[str], notes: list[str], alike: Points
) -> Table:
    factors = list(rows[0].factors) if rows else []
    with_cc = any(row.cc for row in rows)
    columns = [Column(name, number=False) for name in factors]
    columns.append(Column(title.removesuffix("s"), number=False))
    columns += [Column("Congestion controller", number=False)] if with_cc else []
    columns += [Column(HEADINGS[name].title, HEADINGS[name].unit) for name in figures]
    cells = []
    for row in rows[:MOST_ROWS]:
        line = [Cell(summary.point_text(value)) for value in row.factors.values()] + [Cell(row.name)]
        line += [Cell(look(row.cc).label)] if with_cc else []
        same = summary.point_of(row.factors) in alike
        cells.append(line + [_cell(row.figures[name], HEADINGS[name].size, same) for name in figures])
    apart = [row for row in rows if summary.point_of(row.factors) not in alike]
    if len(apart) < len(rows):
        notes = [sentence(summary.SAME), *notes]
    if any(not math.isnan(figure.half) for row in apart for figure in row.figures.values()):
        notes = [sentence(summary.INTERVALS), *notes]
    if len(rows) > MOST_ROWS:
        notes = [
            *notes,
            f"The first {MOST_ROWS:,} of {len(rows):,} rows. The tables of the results have all rows.",
        ]
    return Table(title, columns, cells, notes)


def sentence(text: str) -> str:
    """The text as a sentence, with a capital letter and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") or not text else ".")


def _cell(figure: summary.Figure, unit: float, same: bool) -> Cell:
    """A value with three significant digits, and its interval with the same number of decimals.

    If `same` is set, the cell has no interval.
    """
    if math.isnan(figure.mean):
        return Cell(DASH)
    value = figure.mean / unit
    whole = abs(value) >= 100 or (unit == 1.0 and value == int(value))
    digits = 0 if whole else 1 if abs(value) >= 10 else 2
    half = (
        "" if math.isnan(figure.half) else f"{PLUS_MINUS}\N{NO-BREAK SPACE}{figure.half / unit:,.{digits}f}"
    )
    return Cell(f"{value:,.{digits}f}", "=" if same else half)


def facts(results: Results) -> list[tuple[str, str]]:
    """Facts of the run: version, duration, warm-up, points and seeds."""
    meta = results.metadata
    scenario = meta.get("scenario", {})
    seeds = sorted({int(row["seed"]) for row in results.runs.to_pylist()})
    planned = len(meta.get("runs", []))
    found: list[tuple[str, str]] = [
        ("Narrows", f"{meta.get('narrows', 'unknown')} ({meta.get('backend', 'unknown')})"),
        ("Duration", str(scenario.get("duration", "unknown"))),
        ("Warm-up", f"{meta['warmup_s']:g} s" if "warmup_s" in meta else "unknown"),
        ("Runs", f"{len(results.runs):,}" + (f" of {planned:,}" if planned > len(results.runs) else "")),
        ("Seeds" if len(seeds) > 1 else "Seed", _seeds(seeds)),
    ]
    events = summary.totals(results).get("events", 0)
    return found + ([("Events", f"{events:,}")] if events else [])


def _seeds(seeds: list[int]) -> str:
    if len(seeds) > _SEEDS_IN_FULL:
        return f"{len(seeds)} from {seeds[0]} to {seeds[-1]}"
    return ", ".join(str(seed) for seed in seeds) or "none"


def files(results: Results) -> list[tuple[str, str]]:
    """Title and text of the scenario as it ran, the varied values, and the digests of the traces."""
    meta = results.metadata
    listing = [
        (
            "The scenario as it ran, with all defaults and all values that were set for the run",
            _json(meta.get("scenario", {})),
        )
    ]
    if meta.get("overrides"):
        listing.append(("Values set for the run", _json(meta["overrides"])))
    if meta.get("runs"):
        listing.append(("Seed and factors of each run", _lines(meta["runs"])))
    if meta.get("traces"):
        listing.append(("Trace files and their SHA-256", _json(meta["traces"])))
    return listing


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _lines(items: Sequence[Any]) -> str:
    """The items as JSON, one item per line."""
    return "\n".join(json.dumps(item, ensure_ascii=False) for item in items)
