"""Compares two results, and computes the relative differences of their figures. It has no side effects."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from narrows.results.match import Pairs, match
from narrows.results.results import Results

FLOW_FIGURES = ("goodput_bps", "rtt_mean_s", "rtt_p95_s", "retransmits", "fct_s")
LINK_FIGURES = ("utilisation", "sojourn_mean_s", "dropped_packets")

TOLERANCES = {"goodput_bps": 0.05, "rtt_mean_s": 0.10}
"""For each judged figure, the largest relative difference at which two results agree."""


@dataclass(frozen=True)
class Pair:
    """A figure of a flow or link that both results have."""

    factors: dict[str, Any]
    """The factors of the sweep's point, with their values."""
    entity: str
    """Kind of the entity: ``flow`` or ``link``."""
    name: str
    """Name of the flow or link."""
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
        """Whether the figure has a tolerance and is defined in both results."""
        return self.figure in TOLERANCES and not math.isnan(self.a) and not math.isnan(self.b)

    @property
    def one_sided(self) -> bool:
        """Whether the figure has a tolerance and is defined in only one of the results."""
        return self.figure in TOLERANCES and math.isnan(self.a) != math.isnan(self.b)

    @property
    def excess(self) -> float:
        """Absolute difference of a judged figure as a multiple of its tolerance. Infinite if A is zero."""
        if math.isnan(self.difference):
            return math.inf
        return abs(self.difference) / TOLERANCES[self.figure]

    @property
    def large(self) -> bool:
        """Whether the figure is judged and its difference exceeds the tolerance."""
        return self.judged and self.excess > 1


@dataclass(frozen=True)
class Comparison:
    """All figures that both results have, and the flows and links that only one of the results has."""

    pairs: list[Pair]
    only_a: list[str]
    """Flows and links that only A has. Each entry is a point of the sweep, followed by ``NAME`` (a flow) or
    ``link NAME``."""
    only_b: list[str]

    @property
    def judged(self) -> list[Pair]:
        """The pairs whose figures are judged."""
        return [pair for pair in self.pairs if pair.judged]

    @property
    def large(self) -> list[Pair]:
        """The pairs whose difference is beyond the tolerance."""
        return [pair for pair in self.pairs if pair.large]

    @property
    def one_sided(self) -> list[Pair]:
        """The pairs whose figure has a tolerance and is defined in only one of the results."""
        return [pair for pair in self.pairs if pair.one_sided]

    @property
    def agrees(self) -> bool:
        """Whether the results agree.

        They agree if figures were judged, all are within their tolerances, and both results have the same
        flows and links.
        """
        missing = self.only_a or self.only_b or self.one_sided
        return bool(self.judged) and not self.large and not missing


def compare(a: Results, b: Results) -> Comparison:
    """Compare all flows, and all links that are a bottleneck in A or B. Figures are means over seeds."""
    matched = match(a, b)
    pairs = [*_pairs("flow", matched.flows, FLOW_FIGURES), *_pairs("link", matched.links, LINK_FIGURES)]
    return Comparison(pairs, matched.only_a, matched.only_b)


def _pairs(entity: str, rows: Pairs, figures: tuple[str, ...]) -> Iterable[Pair]:
    for a, b in rows:
        for figure in figures:
            values = (a.figures[figure].mean, b.figures[figure].mean)
            if not all(math.isnan(value) for value in values):
                yield Pair(a.factors, entity, a.name, figure, *values)
