"""Compares the errors of a validation with its targets. All functions are pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from narrows.validate.measures import error, median
from narrows.validate.runner import Finding

TARGETS = {"goodput_bps": 0.05, "rtt_mean_s": 0.10}
"""Largest accepted median of the absolute errors over all cells and algorithms."""
TITLES = {
    "goodput_bps": "goodput",
    "rtt_mean_s": "mean RTT",
    "rtt_p95_s": "p95 RTT",
    "cwnd_mean": "mean cwnd",
    "resent": "resent, points",
    "window": "cwnd distance",
    "period_s": "cwnd period",
}
"""Titles of a finding's errors, in the order of the tables' columns. An error is in percent, or in percentage
points for a figure that is itself in percent."""
WORST_ALGORITHM = 0.15
"""Largest accepted median of one algorithm's absolute errors over its cells."""
WORST_CELL = 0.30
"""Absolute error above which an explanation is required."""
BEYOND = f"{100 * WORST_CELL:.0f} %"
"""`WORST_CELL` as text, in percent."""


@dataclass(frozen=True)
class Verdict:
    """A target and the measured value."""

    words: str
    target: float
    found: float
    """The measured value (NaN: nothing was compared)."""
    worst: str = ""
    """Name of the algorithm with this value, if the value belongs to a single algorithm."""

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.found <= self.target


def percent(value: float, *, sign: bool = False, unit: str = " %") -> str:
    """A fraction as text, in percent."""
    if math.isnan(value):
        return "-"
    return f"{100 * value:+.1f}{unit}" if sign else f"{100 * value:.1f}{unit}"


def size(findings: Iterable[Finding], figure: str) -> float:
    """The median of the absolute errors of a figure, over the findings."""
    return median(abs(finding.errors[figure]) for finding in findings)


def by_algorithm(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """The findings grouped by algorithm."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.algorithm, []).append(finding)
    return dict(sorted(found.items()))


def verdicts(findings: list[Finding]) -> list[Verdict]:
    """A verdict for each target, with its measured value."""
    told = []
    for figure, target in TARGETS.items():
        told.append(Verdict(f"median error in {TITLES[figure]}", target, size(findings, figure)))
    for figure in TARGETS:
        each = {name: size(rows, figure) for name, rows in by_algorithm(findings).items()}
        name = max(each, key=lambda name: -1.0 if math.isnan(each[name]) else each[name], default="")
        found = each.get(name, math.nan)
        words = f"largest median error of any algorithm in {TITLES[figure]}"
        told.append(Verdict(words, WORST_ALGORITHM, found, name))
    return told


def same_seeds(finding: Finding, figure: str) -> float:
    """Absolute error of a figure. Only simulated runs with the seeds of the real runs are used.

    NaN if there are no such runs.
    """
    return abs(error(finding.model.of(finding.real.seeds), finding.real, figure))


def within(finding: Finding, figure: str) -> bool:
    """Whether the median of the real runs is in the range of the simulated runs."""
    least, most = finding.model.range(figure)
    return least <= finding.real.median(figure) <= most


def large(findings: Iterable[Finding]) -> list[tuple[Finding, str, float]]:
    """Errors in judged figures that are large enough to require an explanation, largest first."""
    found = [(f, figure, f.errors[figure]) for f in findings for figure in TARGETS]
    wanting = [entry for entry in found if abs(entry[2]) > WORST_CELL]
    return sorted(wanting, key=lambda entry: -abs(entry[2]))
