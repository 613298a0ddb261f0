"""Makes the rows of the tables that show findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from narrows import metrics
from narrows.report.encode import factor_text
from narrows.report.tables import DASH, sentence
from narrows.studies.judge import Bound, Case, Finding, Verdict
from narrows.studies.model import Reading
from narrows.studies.readings import by_reading

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class ClaimRow:
    """A row of the page's table of claims: one finding."""

    id: str
    says: str
    source: str
    paper: str
    measured: str
    interval: str
    detail: list[tuple[str, str, str]]
    """For each case, its name, measured value and reason. Empty if there is only one case."""
    verdict: str
    css: str
    why: str
    note: str
    figure: str | None
    grade: str = ""
    """The number of cases in which the claim holds. Empty if the claim has only one case."""
    real: OtherSide | None = None
    """The verdict on this claim on real stacks."""
    second: OtherSide | None = None
    """The verdict on this claim for the algorithm's second form: as printed, or repaired (`Reading`)."""


@dataclass(frozen=True)
class OtherSide:
    """The verdict on the same claim, judged on other runs."""

    measured: str
    interval: str
    difference: str
    """Difference between this measured value and the measured value in the claim's row. Empty if either value
    is missing, or if the claim has several cases."""
    detail: list[tuple[str, str, str]]
    verdict: str
    css: str
    why: str
    grade: str = ""


_CSS = {Verdict.REPRODUCED: "yes", Verdict.NOT_REPRODUCED: "no", Verdict.UNJUDGED: "open"}


def _css(finding: Finding) -> str:
    return "part" if finding.holds_in_part else _CSS[finding.verdict]


Tally = list[tuple[str, str, int]]
"""Number of findings per verdict, as tuples: the verdict in words, its CSS class, and the number."""


def tally(findings: Sequence[Finding]) -> Tally:
    """Number of findings per verdict, as tuples: the verdict in words, its CSS class, and the number."""
    return [
        (verdict.value, _CSS[verdict], sum(finding.verdict is verdict for finding in findings))
        for verdict in Verdict
    ]


def both_tallies(
    findings: Sequence[Finding], second: Sequence[Finding], readings: Sequence[Reading]
) -> list[tuple[str, Tally]]:
    """The tally of the paper's claims for each reading of the algorithms."""
    return [(words, tally(group)) for words, group in by_reading(findings, second, readings)]


def claim_rows(
    findings: Sequence[Finding],
    figures: set[str],
    real: Sequence[Finding] = (),
    second: Sequence[Finding] = (),
) -> list[ClaimRow]:
    """Rows of the table of claims. Only figures that were drawn are linked.

    Args:
        findings: findings of the simulation.
        figures: ids of the figures that were drawn.
        real: findings of the same claims on real stacks (empty: the study did not run on real stacks).
        second: findings of the same claims on the second reading (empty: there is no second reading).
    """
    seconds = {finding.claim.id: finding for finding in second}
    others = {finding.claim.id: finding for finding in real}
    rows = []
    for finding in findings:
        claim = finding.claim
        other, reread = others.get(claim.id), seconds.get(claim.id)
        rows.append(
            ClaimRow(
                claim.id,
                claim.says,
                claim.source,
                claim.value or DASH,
                _span(finding.cases, finding),
                _single_interval(finding),
                _details(finding),
                finding.words,
                _css(finding),
                sentence(finding.why),
                claim.note,
                claim.figure if claim.figure in figures else None,
                finding.grade,
                _other(finding, other) if other is not None else None,
                _other(finding, reread) if reread is not None else None,
            )
        )
    return rows


def _details(finding: Finding) -> list[tuple[str, str, str]]:
    """Case, measured value and reason of each case of a claim that has several."""
    if len(finding.cases) < 2:
        return []
    return [
        (
            _case(case),
            f"{_mean(case, finding)} {_interval(case.interval, finding)}".strip(),
            sentence(case.why),
        )
        for case in finding.cases
    ]


def _single_interval(finding: Finding) -> str:
    return _interval(finding.cases[0].interval, finding) if len(finding.cases) == 1 else ""


def _other(finding: Finding, other: Finding) -> OtherSide:
    difference = ""
    if len(finding.cases) == len(other.cases) == 1:
        a, b = finding.cases[0].interval.mean, other.cases[0].interval.mean
        if a and not math.isnan(a) and not math.isnan(b):
            difference = percent((b - a) / abs(a))
    return OtherSide(
        _span(other.cases, other),
        _single_interval(other),
        difference,
        _details(other),
        other.words,
        _css(other),
        sentence(other.why),
        other.grade,
    )


def percent(part: float) -> str:
    """A difference in percent, with its sign."""
    digits = 0 if abs(part) >= 0.1 else 1
    text = f"{abs(100 * part):,.{digits}f}"
    sign = "" if float(text.replace(",", "")) == 0 else MINUS if part < 0 else "+"
    return f"{sign}{text}\N{NO-BREAK SPACE}%"


def _case(case: Case) -> str:
    return ", ".join(factor_text(name, value) for name, value in case.factors) or "all runs"


def _span(cases: Sequence[Case], finding: Finding) -> str:
    """The measured value, or its range over the cases."""
    if not cases:
        return DASH
    if len(cases) == 1:
        return _mean(cases[0], finding)
    ordered = sorted(cases, key=lambda case: case.interval.mean)
    low, high = _mean(ordered[0], finding), _mean(ordered[-1], finding)
    return low if low == high else f"{low.removesuffix(_unit(finding))} to {high}"


def _unit(finding: Finding) -> str:
    return f"\N{NO-BREAK SPACE}{finding.unit}" if finding.unit else ""


def _signed(finding: Finding) -> bool:
    return finding.claim.compare in ("difference", "gain")


def _mean(case: Case, finding: Finding) -> str:
    if math.isnan(case.interval.mean):
        return "undefined"
    sign = f"{case.bound.value}\N{NO-BREAK SPACE}" if case.bound in (Bound.LOWER, Bound.UPPER) else ""
    return sign + number(case.interval.mean, signed=_signed(finding)) + _unit(finding)


def _interval(interval: metrics.Interval, finding: Finding) -> str:
    if interval.n < 2 or math.isnan(interval.low):
        return ""
    low, high = (number(value, signed=_signed(finding)) for value in (interval.low, interval.high))
    return f"[{low}, {high}]"


def number(value: float, *, signed: bool = False) -> str:
    """Writes a number with at most four significant digits, a real minus sign, and no exponent."""
    if value == 0 or abs(value) < 5e-5:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if abs(value) < 1000 else 0
    text = f"{abs(value):,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return (MINUS if value < 0 else "+" if signed else "") + text
