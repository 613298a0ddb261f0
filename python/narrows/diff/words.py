"""The words and numbers of a comparison, for the terminal, for Markdown and for the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from narrows.diff.changes import Compared, Diff, Outcome, Part
from narrows.diff.pairing import Pairing
from narrows.results import summary

_MOST_NAMES = 20
"""Largest number of names in a line about flows and links that only one side has."""
CORRECTION = "Benjamini and Hochberg"


def title(item: Compared) -> str:
    """The figure with its unit. Counts have no unit."""
    heading = item.series.heading
    name = heading.short or heading.title
    return f"{name} ({heading.unit})" if heading.unit and heading.unit != "packets" else name


def place(part: Part, item: Compared) -> list[str]:
    """The scenario, the values of the factors, and the flow or link."""
    scenario = [part.name] if part.name else []
    return [*scenario, *map(summary.point_text, item.series.factors.values()), entity(item)]


def entity(item: Compared) -> str:
    """The flow or link."""
    return item.series.name if item.series.entity == "flow" else f"link {item.series.name}"


def cells(item: Compared) -> list[str]:
    """The row of a table: figure, both means, relative difference and its interval, p-value and outcome."""
    return [
        title(item),
        mean(item, "base"),
        mean(item, "head"),
        relative(item),
        bounds(item),
        probability(item),
        str(item.outcome),
    ]


def factor_text(factors: Mapping[str, Any], name: str) -> str:
    """The value of a factor at a point, or an empty text if the point does not have this factor."""
    return summary.point_text(factors[name]) if name in factors else ""


def value(number: float) -> str:
    """A figure with four significant digits."""
    if math.isnan(number):
        return "-"
    return f"{number:,.0f}" if abs(number) >= 1e4 else f"{number:.4g}"


def mean(item: Compared, side: str) -> str:
    """The mean of a side in the unit of the heading."""
    found = item.base if side == "base" else item.head
    return value(found.mean * item.series.heading.scale)


def relative(item: Compared) -> str:
    """The difference in percent of BASE."""
    if item.outcome is Outcome.EQUAL:
        return "0"
    if math.isnan(item.difference.mean):
        return "-"
    return "from 0" if math.isnan(item.relative) else f"{100 * item.relative:+.3g}"


def bounds(item: Compared) -> str:
    """The interval of the difference in percent of BASE, or in the unit of the heading if BASE is zero.

    A difference that is zero in all runs has no interval.
    """
    if math.isnan(item.difference.low) or item.difference.low == item.difference.high == 0:
        return "-"
    if math.isnan(item.relative):
        heading = item.series.heading
        low, high = item.difference.low * heading.scale, item.difference.high * heading.scale
        return f"{low:+.3g} to {high:+.3g} {heading.unit}".rstrip()
    low, high = item.relative_bounds
    return f"{100 * low:+.3g} to {100 * high:+.3g}"


def probability(item: Compared) -> str:
    """The adjusted p-value."""
    if math.isnan(item.p):
        return "-"
    return f"{item.p:.2g}" if item.p >= 1e-4 else "<0.0001"


def percent(part: float) -> str:
    """A share as text, e.g. ``99.9 %``."""
    return f"{100 * part:g} %"


def headline(diff: Diff) -> str:
    """The result in one line."""
    if diff.is_identical:
        count = sum(pairing.pairs for pairing in diff.points)
        return f"identical: {_count(count, 'pair of runs is', 'pairs of runs are')} bit-for-bit equal"
    counts = diff.counts
    total = sum(counts.values())
    parts = [f"{counts[outcome]} {_COUNTED.get(outcome, outcome)}" for outcome in Outcome if counts[outcome]]
    return f"{_count(total, 'figure', 'figures')} compared: {', '.join(parts)}"


_COUNTED = {Outcome.UNCHANGED: "without a significant change", Outcome.EQUAL: "equal in all runs"}
"""The words that follow the number of figures with this outcome. For all other outcomes, the outcome's own
text follows the number."""


def notes(diff: Diff) -> Iterator[str]:
    """Lines about the runs, the statistics, and what only one side has."""
    if not diff.is_identical:
        yield from _about_runs(diff.points)
    if any(not math.isnan(item.p) for item in diff.compared):
        level = percent(1 - diff.confidence)
        yield (
            f"changed: p below {1 - diff.confidence:.3g} after the correction of {CORRECTION}; if nothing "
            f"changed, the probability that any figure is reported is at most {level}"
        )
    if not diff.is_changed and not diff.is_identical and any(pairing.paired for pairing in diff.points):
        yield "runs differ, but no figure changed significantly; --exact counts this as a change"
    for label, names in (("BASE", diff.only_base), ("HEAD", diff.only_head)):
        if names:
            yield _only(label, "scenario ", names)
    for part in diff.parts:
        for label, names in (("BASE", part.only_base), ("HEAD", part.only_head)):
            if names:
                yield _only(label, f"{part.name}: " if part.name else "", names)


def _only(label: str, before: str, names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"only in {label}: {before}{', '.join(names[:_MOST_NAMES])}{more}"


def _about_runs(points: list[Pairing]) -> Iterator[str]:
    paired = [pairing for pairing in points if pairing.paired]
    apart = [pairing for pairing in points if not pairing.paired]
    if paired:
        pairs, same = sum(item.pairs for item in paired), sum(item.identical for item in paired)
        yield f"runs: {_count(pairs, 'pair', 'pairs')} by seed, of which {same} are bit-for-bit equal"
    if apart:
        counts = [sum(len(item.seeds[side]) for item in apart) for side in (0, 1)]
        yield f"runs: {counts[0]} in BASE and {counts[1]} in HEAD with different seeds, not paired"
    if repeats := sum(item.repeats for item in points):
        yield f"{_count(repeats, 'run repeats', 'runs repeat')} the run of another seed (not counted)"
    if unsound := sum(item.unsound for item in points):
        yield f"{_count(unsound, 'run was', 'runs were')} disturbed (not counted)"


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
