"""The work of `narrows compare`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from narrows.cli.console import plain
from narrows.cli.figures import heading, number
from narrows.cli.table import Table
from narrows.errors import NarrowsError
from narrows.results.compare import TOLERANCES, Comparison, Pair
from narrows.results.compare import compare as compare_results
from narrows.results.datasets.urls import url_of
from narrows.results.figures import HEADINGS
from narrows.results.results import Results

MARK = "<"
"""The sign after a difference that exceeds its tolerance."""
FROM_ZERO = "from 0"
"""Printed instead of the percentage if a judged figure is zero in A and not zero in B."""
DIFFERENT = 1
"""Exit code if the results do not agree."""
_MOST_NAMES = 20
"""Largest number of names in a line about flows and links that only one result has."""


def compare(a: Path, b: Path, *, as_json: bool) -> None:
    """Print the comparison; exit with 1 if the results do not agree, or nothing could be judged."""
    first, second = Results.read(a), Results.read(b)
    comparison = compare_results(first, second)
    if not comparison.pairs:
        raise NarrowsError(f"{a}, {b}: found no flow or bottleneck link in common")
    if as_json:
        print(json.dumps(as_data(comparison), indent=2, allow_nan=False))
    else:
        _print(a, b, first, second, comparison)
    if not comparison.agrees:
        raise typer.Exit(DIFFERENT)


def _print(a: Path, b: Path, first: Results, second: Results, comparison: Comparison) -> None:
    sides = [
        f"{label}: {url_of(place) or place} ({side.metadata.get('backend')})"
        for label, place, side in (("A", a, first), ("B", b, second))
    ]
    print(", ".join(sides))
    show(comparison, ("A", "B"), plain())


def show(comparison: Comparison, labels: tuple[str, str], console: Console) -> None:
    """Print both results' figures and differences, and count the differences beyond their tolerances."""
    for entity in ("flow", "link"):
        pairs = [pair for pair in comparison.pairs if pair.entity == entity]
        if pairs:
            _table(entity, pairs, labels).print(console)
    for label, names in zip(labels, (comparison.only_a, comparison.only_b), strict=True):
        if names:
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            text = f"only in {label}: {', '.join(names[:_MOST_NAMES])}{more}"
            console.print(text)
    if not comparison.pairs:
        console.print("no flow or bottleneck link in common")
        return
    bounds = ", ".join(f"{HEADINGS[name].short} {100 * part:g} %" for name, part in TOLERANCES.items())
    console.print(f"tolerances: {bounds}; {'; '.join(_findings(comparison))}")


def _findings(comparison: Comparison) -> list[str]:
    """Statements about the figures that were judged, and about figures that could not be judged."""
    large, judged = len(comparison.large), len(comparison.judged)
    if large:
        findings = [f"{large} of {judged} judged figures differ by more ({MARK})"]
    elif judged:
        findings = ["all judged figures are within them"]
    elif any(pair.entity == "flow" for pair in comparison.pairs):
        findings = ["none of these figures is defined in both results, so nothing was judged"]
    else:
        findings = ["no flow in common, so nothing was judged"]
    if one_sided := len(comparison.one_sided):
        findings.append(f"{_count(one_sided, 'figure is', 'figures are')} undefined in one result")
    if only := len(comparison.only_a) + len(comparison.only_b):
        findings.append(f"{_count(only, 'flow or link is', 'flows or links are')} in one result only")
    return findings


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _table(entity: str, pairs: list[Pair], labels: tuple[str, str]) -> Table:
    """A table with a row per flow or link. Each row has both values of each figure, and their difference."""
    figures = list(dict.fromkeys(pair.figure for pair in pairs))
    table = Table()
    for factor in pairs[0].factors:
        table.add_name(factor)
    table.add_name(entity)
    for figure in figures:
        table.add_figure(f"{heading(HEADINGS[figure])}\n{labels[0]}", figure)
        table.add_figure(f"\n{labels[1]}", figure)
        table.add_figure("\n%", figure)
    rows: dict[tuple[str, ...], dict[str, Pair]] = {}
    for pair in pairs:
        rows.setdefault((*map(str, pair.factors.values()), pair.name), {})[pair.figure] = pair
    for key, found in rows.items():
        cells: list[str] = []
        for figure in figures:
            cells += _cells(found.get(figure), HEADINGS[figure].size)
        table.add_row(*key, *cells)
    return table


def _cells(pair: Pair | None, scale: float) -> list[str]:
    if pair is None:
        return ["-", "-", ""]
    if math.isnan(pair.difference):
        difference = FROM_ZERO if pair.judged else ""
    else:
        difference = f"{100 * pair.difference:+.1f}"
    return [number(pair.a, scale), number(pair.b, scale), difference + (MARK if pair.large else "")]


def as_data(comparison: Comparison) -> dict[str, Any]:
    """The comparison as data for other programs, in the units of the results' tables.

    Undefined values are null.
    """

    def plain(value: float) -> float | None:
        return None if math.isnan(value) else value

    return {
        "tolerances": TOLERANCES,
        "agrees": comparison.agrees,
        "figures": [
            {
                **pair.factors,
                pair.entity: pair.name,
                "figure": pair.figure,
                "a": plain(pair.a),
                "b": plain(pair.b),
                "difference": plain(pair.difference),
                "beyond_tolerance": pair.large,
            }
            for pair in comparison.pairs
        ],
        "only_a": comparison.only_a,
        "only_b": comparison.only_b,
    }
