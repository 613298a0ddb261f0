"""Whether the simulator is near enough: errors of a validation against its targets. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from narrows.validate.measures import error, median
from narrows.validate.runner import Finding

TARGETS = {"goodput_bps": 0.05, "rtt_mean_s": 0.10}
"""Largest median of the errors' sizes over all cells and algorithms."""
WORST_ALGORITHM = 0.15
"""... and over the cells of any one algorithm."""
WORST_CELL = 0.30
"""Size of a single error that wants an explanation."""


@dataclass(frozen=True)
class Verdict:
    """A target, and what was found."""

    words: str
    target: float
    found: float
    """NaN: nothing was compared."""
    worst: str = ""
    """Which algorithm, where it is one's."""

    @property
    def met(self) -> bool:
        """Whether it is."""
        return self.found <= self.target


def size(findings: Iterable[Finding], figure: str) -> float:
    """Median over findings of an error's size."""
    return median(abs(finding.errors[figure]) for finding in findings)


def by_algorithm(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings of each algorithm."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.algorithm, []).append(finding)
    return dict(sorted(found.items()))


def verdicts(findings: list[Finding]) -> list[Verdict]:
    """Each target with what was found."""
    names = {"goodput_bps": "goodput", "rtt_mean_s": "mean RTT"}
    told = []
    for figure, target in TARGETS.items():
        told.append(Verdict(f"median error in {names[figure]}", target, size(findings, figure)))
    for figure in TARGETS:
        each = {name: size(rows, figure) for name, rows in by_algorithm(findings).items()}
        name = max(each, key=lambda name: -1.0 if math.isnan(each[name]) else each[name], default="")
        found = each.get(name, math.nan)
        words = f"largest median of one algorithm in {names[figure]}"
        told.append(Verdict(words, WORST_ALGORITHM, found, name))
    return told


def same_seeds(finding: Finding, figure: str) -> float:
    """Size of the error against those simulated runs that have the real ones' seeds; NaN without any."""
    return abs(error(finding.model.of(finding.real.seeds), finding.real, figure))


def within(finding: Finding, figure: str) -> bool:
    """Whether the real median is one that simulated runs may have."""
    least, most = finding.model.range(figure)
    return least <= finding.real.median(figure) <= most


def large(findings: Iterable[Finding]) -> list[tuple[Finding, str, float]]:
    """Errors of judged figures that want an explanation, largest first."""
    found = [(f, figure, f.errors[figure]) for f in findings for figure in TARGETS]
    wanting = [entry for entry in found if abs(entry[2]) > WORST_CELL]
    return sorted(wanting, key=lambda entry: -abs(entry[2]))
