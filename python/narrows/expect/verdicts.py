"""Verdicts on expectations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from narrows.expect.claims import EXPERIMENT, claims
from narrows.metrics import Interval
from narrows.results.by_run import read_runs
from narrows.results.factors import Factor, factor
from narrows.results.results import Results
from narrows.results.summary import point_text
from narrows.scenario.model import Scenario
from narrows.studies.judge import Case, Finding, Verdict, judge


@dataclass(frozen=True)
class Judged:
    """One expectation at one point of the sweep."""

    says: str
    factors: dict[str, Any]
    """The point of the sweep, written as in the scenario (empty: there is only one point)."""
    verdict: Verdict
    measured: str
    """The mean over seeds with its unit, and half of the width of its confidence interval."""
    why: str

    @property
    def word(self) -> str:
        """The verdict in one or two words."""
        return _WORDS[self.verdict]

    @property
    def name(self) -> str:
        """The expectation with its point of the sweep, in words."""
        point = ", ".join(f"{name} {point_text(value)}" for name, value in self.factors.items())
        return f"{self.says} [{point}]" if point else self.says


_WORDS = {Verdict.REPRODUCED: "met", Verdict.NOT_REPRODUCED: "not met", Verdict.UNJUDGED: "cannot be judged"}


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on all expectations of a scenario."""

    scenario: str
    """Name of the scenario."""
    judged: tuple[Judged, ...]

    @property
    def are_met(self) -> bool:
        """Whether each expectation is met. One that cannot be judged is not."""
        return all(item.verdict is Verdict.REPRODUCED for item in self.judged)

    @property
    def line(self) -> str:
        """The counts in one line."""
        counts = {verdict: sum(item.verdict is verdict for item in self.judged) for verdict in Verdict}
        parts = [f"{n} {_WORDS[verdict]}" for verdict, n in counts.items() if n]
        return f"expectations: {', '.join(parts)}"

    @property
    def lines(self) -> list[str]:
        """Each expectation that is not met or cannot be judged, in one line."""
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
            Judged(claim.says, {}, finding.verdict, "-", finding.why)
        ]
    return Verdicts(scenario.name, tuple(judged))


def _judged(finding: Finding, case: Case, written: dict[tuple[str, Factor], Any]) -> Judged:
    factors = {name: written.get((name, value), value) for name, value in case.factors}
    return Judged(finding.claim.says, factors, case.verdict, _measured(case.interval, finding.unit), case.why)


def _measured(interval: Interval, unit: str) -> str:
    if math.isnan(interval.mean):
        return "-"
    half = interval.half_width
    spread = "" if math.isnan(half) else f" \N{PLUS-MINUS SIGN} {half:.2g}"
    return f"{interval.mean:.4g}{spread}{f' {unit}' if unit else ''}"
