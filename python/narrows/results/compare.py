"""Compares two results: the differing figures and their relative differences. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from narrows.results import summary
from narrows.results.results import Results
from narrows.results.summary import Row

FLOW_FIGURES = ("goodput_bps", "rtt_mean_s", "rtt_p95_s", "retransmits", "fct_s")
LINK_FIGURES = ("utilisation", "sojourn_mean_s", "dropped_packets")

TOLERANCES = {"goodput_bps": 0.05, "rtt_mean_s": 0.10}
"""Largest relative differences of results that agree. Other figures are not judged."""


@dataclass(frozen=True)
class Pair:
    """A figure of a flow or link in both results."""

    factors: dict[str, Any]
    """The point of the sweep."""
    entity: str
    """``flow`` or ``link``."""
    name: str
    """Its name."""
    figure: str
    """Name of the figure in the tables."""
    a: float
    b: float

    @property
    def difference(self) -> float:
        """(B - A) / A; NaN if A is zero or a figure is undefined."""
        if self.a == self.b:
            return 0.0
        return (self.b - self.a) / self.a if self.a else math.nan

    @property
    def judged(self) -> bool:
        """Whether the figure has a tolerance and both results have the figure."""
        return self.figure in TOLERANCES and not math.isnan(self.difference)

    @property
    def large(self) -> bool:
        """Whether it is judged and beyond its tolerance."""
        return self.judged and abs(self.difference) > TOLERANCES[self.figure]


@dataclass(frozen=True)
class Comparison:
    """All figures that two results share, and the rows that only one of them has."""

    pairs: list[Pair]
    only_a: list[str]
    only_b: list[str]

    @property
    def large(self) -> list[Pair]:
        """Figures beyond their tolerance."""
        return [pair for pair in self.pairs if pair.large]


def compare(a: Results, b: Results) -> Comparison:
    """Compare flows, and links that are tight in one of the results. Figures are means over seeds."""
    pairs: list[Pair] = []
    only: tuple[list[str], list[str]] = ([], [])
    for entity, figures, rows in (
        ("flow", FLOW_FIGURES, summary.flows),
        ("link", LINK_FIGURES, summary.links),
    ):
        rows_a, rows_b = _by_name(rows(a)), _by_name(rows(b))
        for key, row in rows_a.items():
            other = rows_b.get(key)
            if other is not None:
                pairs += _pairs(entity, row, other, figures)
            elif entity == "flow":  # a link may be tight in one result only
                only[0].append(_words(row))
        if entity == "flow":
            only[1].extend(_words(row) for key, row in rows_b.items() if key not in rows_a)
    return Comparison(pairs, *only)


def _by_name(rows: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    return {(*sorted((key, str(value)) for key, value in row.factors.items()), row.name): row for row in rows}


def _pairs(entity: str, a: Row, b: Row, figures: tuple[str, ...]) -> Iterable[Pair]:
    for figure in figures:
        values = (a.figures[figure].mean, b.figures[figure].mean)
        if not all(math.isnan(value) for value in values):
            yield Pair(a.factors, entity, a.name, figure, *values)


def _words(row: Row) -> str:
    return " ".join([*(f"{key}={value}" for key, value in row.factors.items()), row.name])
