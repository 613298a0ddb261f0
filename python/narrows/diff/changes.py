"""Decides which figures changed between two sides. All functions are pure."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from narrows import metrics
from narrows.diff.ask import Ask
from narrows.diff.folders import Side
from narrows.diff.pairing import Pairing, pairings
from narrows.diff.values import Series, of_measure, of_summary
from narrows.errors import NarrowsError
from narrows.results.figures import Heading
from narrows.results.match import match
from narrows.results.results import Results


class Outcome(StrEnum):
    """The result of a comparison."""

    CHANGED = "changed"
    UNCHANGED = "no change"
    EQUAL = "equal"
    """The figure has the same values in all runs of both sides."""
    ONE_SIDED = "undefined in one result"
    UNJUDGED = "cannot be judged"
    """At least one side has fewer than two runs that count (see `Pairing.seeds`)."""


DIFFERENT = frozenset({Outcome.CHANGED, Outcome.ONE_SIDED, Outcome.UNJUDGED})
"""Outcomes that mean a difference, or a possible difference, between the sides. A single figure with such an
outcome gives exit code 1."""


@dataclass(frozen=True)
class Compared:
    """The comparison of one figure of a flow or link between both sides."""

    series: Series
    base: metrics.Interval
    head: metrics.Interval
    difference: metrics.Difference
    """HEAD minus BASE."""
    outcome: Outcome
    p: float = math.nan
    """The p-value after the correction for the number of comparisons (NaN: not tested)."""

    @property
    def relative(self) -> float:
        """The difference divided by the figure's mean in BASE; NaN if this mean is zero."""
        return self.difference.mean / abs(self.base.mean) if self.base.mean else math.nan

    @property
    def relative_bounds(self) -> tuple[float, float]:
        """The ends of the difference's interval, divided by the figure's mean in BASE."""
        scale = abs(self.base.mean) or math.nan
        return self.difference.low / scale, self.difference.high / scale


@dataclass(frozen=True)
class Part:
    """The comparison of one scenario's results."""

    name: str
    points: list[Pairing]
    compared: list[Compared]
    only_base: list[str]
    """Flows and links that only BASE has."""
    only_head: list[str]
    warmup_s: float = 0.0
    """Warm-up time of the runs in BASE, in seconds."""


@dataclass(frozen=True)
class Diff:
    """The comparison of two sides."""

    base: str
    head: str
    confidence: float
    parts: list[Part]
    only_base: list[str]
    """Scenarios that only BASE has."""
    only_head: list[str]

    @property
    def compared(self) -> list[Compared]:
        """All comparisons."""
        return [item for part in self.parts for item in part.compared]

    @property
    def counts(self) -> Counter[Outcome]:
        """Number of comparisons by outcome."""
        return Counter(item.outcome for item in self.compared)

    @property
    def points(self) -> list[Pairing]:
        """The points of all scenarios."""
        return [pairing for part in self.parts for pairing in part.points]

    @property
    def is_identical(self) -> bool:
        """Whether all runs and all figures are equal.

        Figures are compared too, because the runs' digests do not include figures of links.
        """
        return (
            not self.has_missing
            and all(pairing.is_identical for pairing in self.points)
            and all(item.outcome is Outcome.EQUAL for item in self.compared)
        )

    @property
    def has_missing(self) -> bool:
        """Whether any scenario, point, flow or link is on one side only."""
        return bool(self.only_base or self.only_head) or any(
            part.only_base or part.only_head for part in self.parts
        )

    @property
    def is_changed(self) -> bool:
        """Whether a figure changed, or could not be judged although it differs."""
        return self.has_missing or any(item.outcome in DIFFERENT for item in self.compared)


def diff(base: Side, head: Side, asks: Sequence[Ask] = (), confidence: float = metrics.CONFIDENCE) -> Diff:
    """Compare two sides.

    Args:
        base: results by scenario.
        head: results by scenario.
        asks: the measures to compare (default: the figures of the summary).
        confidence: level of the intervals. A figure has changed if its adjusted p-value is below one minus
            this level.

    Raises:
        NarrowsError: if the sides have nothing in common.
    """
    parts = [
        _part(name, results, head.results[name], asks, confidence)
        for name, results in base.results.items()
        if name in head.results
    ]
    if not any(part.compared for part in parts):
        raise NarrowsError(f"{base.label}, {head.label}: found no flow or bottleneck link in common")
    return Diff(
        base.label,
        head.label,
        confidence,
        _adjusted(parts, 1 - confidence),
        [name for name in base.results if name not in head.results],
        [name for name in head.results if name not in base.results],
    )


def _part(name: str, base: Results, head: Results, asks: Sequence[Ask], confidence: float) -> Part:
    matched, points = match(base, head), pairings(base, head)
    if asks:
        found: Iterable[Series] = (series for ask in asks for series in of_measure(ask, matched, points))
    else:
        found = of_summary(matched)
    both = itertools.chain.from_iterable(_with_definedness(series) for series in found)
    compared = [_compare(series, points[series.point], confidence) for series in both]
    return Part(
        name,
        list(points.values()),
        [item for item in compared if item is not None],
        matched.only_a,
        matched.only_b,
        base.warmup_s,
    )


def _with_definedness(series: Series) -> Iterator[Series]:
    """Yields a figure.

    If the sides have values for different seeds, also yields the share of runs with a value.

    The mean alone does not show, for example, that fewer flows finished.
    """
    yield series
    base, head = (
        {seed: float(not math.isnan(value)) for seed, value in side.items()}
        for side in (series.base, series.head)
    )
    kinds = {*base.values(), *head.values()}
    if len(kinds) == 2 and any(base.values()) and any(head.values()) and base != head:
        title = f"{series.heading.short or series.heading.title}: runs with a value"
        heading = Heading(title, "share", 1.0, title)
        yield replace(series, figure=f"{series.figure}_defined", heading=heading, base=base, head=head)


def _compare(series: Series, pairing: Pairing, confidence: float) -> Compared | None:
    """Compare a figure between the sides; None if the figure is undefined on both sides."""
    base, head = (
        [values.get(seed, math.nan) for seed in seeds]
        for values, seeds in zip((series.base, series.head), pairing.seeds, strict=True)
    )
    means = [metrics.mean_ci(values, confidence) for values in (base, head)]
    if pairing.paired:
        difference = metrics.paired_difference(head, base, confidence)
    else:
        difference = metrics.unpaired_difference(head, base, confidence)
    if all(math.isnan(value) for value in (*series.base.values(), *series.head.values())):
        return None
    if not all(pairing.seeds):
        return Compared(series, means[0], means[1], difference, Outcome.UNJUDGED)
    defined = [mean.n > 0 for mean in means]
    if not any(defined):
        return None
    values = {value for value in (*base, *head) if not math.isnan(value)}
    if not all(defined):
        outcome = Outcome.ONE_SIDED
    elif (len(values) == 1 and not any(map(math.isnan, (*base, *head)))) or (
        pairing.paired and _are_equal(base, head)
    ):
        outcome = Outcome.EQUAL
    else:
        outcome = Outcome.UNJUDGED if math.isnan(difference.p) else Outcome.UNCHANGED
    return Compared(series, means[0], means[1], difference, outcome)


def _are_equal(base: Sequence[float], head: Sequence[float]) -> bool:
    """Whether the two values of each pair are equal, or are both undefined."""
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(base, head, strict=True))


def _adjusted(parts: Sequence[Part], limit: float) -> list[Part]:
    """Correct the p-values for the number of all tests, and find the changed figures."""
    tested = [item for part in parts for item in part.compared if item.outcome is Outcome.UNCHANGED]
    corrected = metrics.adjusted([item.difference.p for item in tested])
    judged = {
        id(item): replace(item, p=p, outcome=Outcome.CHANGED if p < limit else Outcome.UNCHANGED)
        for item, p in zip(tested, corrected, strict=True)
    }
    return [replace(part, compared=[judged.get(id(item), item) for item in part.compared]) for part in parts]
