"""Verdicts on expectations."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from narrows.expect.claims import EXPERIMENT, claims
from narrows.results.by_run import read_runs
from narrows.results.factors import Factor, factor, point_in_words
from narrows.results.results import Results
from narrows.scenario.model import Scenario
from narrows.studies.judge import Bound, Case, Finding, Verdict, judge


@dataclass(frozen=True)
class Judged:
    """One expectation at one point of the sweep."""

    says: str
    factors: dict[str, Any]
    """The point of the sweep, with values as the scenario writes them (empty: there is only one point)."""
    verdict: Verdict
    word: str
    """The verdict in words."""
    measured: str
    """The mean over seeds, half the width of the mean's confidence interval, and the unit."""
    why: str

    @property
    def name(self) -> str:
        """The expectation with its point of the sweep, in words."""
        return f"{self.says} [{point_in_words(self.factors)}]" if self.factors else self.says


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on all expectations of a scenario."""

    scenario: str
    """Name of the scenario."""
    judged: tuple[Judged, ...]

    @property
    def are_met(self) -> bool:
        """Whether all expectations are met. The result is false if an expectation cannot be judged."""
        return all(item.verdict is Verdict.REPRODUCED for item in self.judged)

    @property
    def line(self) -> str:
        """The counts in one line."""
        counts = Counter(item.verdict for item in self.judged)
        words = {item.verdict: item.word for item in self.judged}
        parts = [f"{counts[verdict]} {words[verdict]}" for verdict in Verdict if verdict in words]
        return f"expectations: {', '.join(parts)}"

    @property
    def lines(self) -> list[str]:
        """A line for each expectation that is not met or cannot be judged."""
        return [
            f"{item.name}: {item.word}: measured {item.measured}; {item.why}"
            for item in self.judged
            if item.verdict is not Verdict.REPRODUCED
        ]

    def as_data(self) -> list[dict[str, Any]]:
        """The verdicts for other programs."""
        return [
            {
                "says": item.says,
                "factors": item.factors,
                "verdict": item.word,
                "measured": item.measured,
                "why": item.why,
            }
            for item in self.judged
        ]


def judge_results(scenario: Scenario, results: Results) -> Verdicts:
    """Judge the scenario's expectations on its results.

    Raises:
        ScenarioError: for an expectation that is not valid.
    """
    wanted = claims(scenario)
    if not wanted:
        return Verdicts(scenario.name, ())
    runs = read_runs(results)
    written = {
        (name, factor(row[name])): row[name] for row in results.runs.to_pylist() for name in results.factors
    }
    judged: list[Judged] = []
    for claim in wanted:
        finding = judge(claim, {EXPERIMENT: runs})
        judged += [_judged(finding, case, written) for case in finding.cases] or [
            Judged(claim.says, {}, finding.verdict, finding.words, "-", finding.why)
        ]
    return Verdicts(scenario.name, tuple(judged))


def _judged(finding: Finding, case: Case, written: dict[tuple[str, Factor], Any]) -> Judged:
    factors = {name: written.get((name, value), value) for name, value in case.factors}
    words = finding.words_of(case.verdict)
    return Judged(finding.claim.says, factors, case.verdict, words, _measured(case, finding.unit), case.why)


def _measured(case: Case, unit: str) -> str:
    interval = case.interval
    if math.isnan(interval.mean):
        return "-"
    bound = f"{case.bound.value} " if case.bound in (Bound.LOWER, Bound.UPPER) else ""
    half = interval.half_width
    spread = "" if math.isnan(half) else f" \N{PLUS-MINUS SIGN} {half:.2g}"
    return f"{bound}{interval.mean:.4g}{spread}{f' {unit}' if unit else ''}"
