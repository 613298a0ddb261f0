"""Judges a claim on both forms of an algorithm: the form that the paper prints, and the repaired form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from narrows.studies.judge import Finding
from narrows.studies.model import Claim, Reading, instead


def second_reading(claim: Claim, readings: Iterable[Reading]) -> Claim | None:
    """The claim about the algorithm's other form (None: the claim names no algorithm with two forms)."""
    if claim.group != "paper":
        return None
    other = claim
    for reading in readings:
        other = instead(other, reading.factor, *reading.forms)
    return None if other == claim else other


def words_of(readings: Sequence[Reading]) -> tuple[str, str]:
    """The two readings in words.

    The reading that claims name is first. If no algorithm has two readings, both texts are empty.
    """
    return readings[0].words if readings else ("", "")


def by_reading(
    findings: Iterable[Finding], second: Sequence[Finding], readings: Sequence[Reading]
) -> list[tuple[str, list[Finding]]]:
    """Findings on the paper's claims, grouped by reading.

    If no algorithm has two readings, there is one unnamed group.

    If a claim names no algorithm with two readings, both groups contain the same finding on this claim.
    """
    paper = [finding for finding in findings if finding.claim.group == "paper"]
    if not second:
        return [("", paper)]
    others = {finding.claim.id: finding for finding in second}
    first_words, second_words = words_of(readings)
    return [
        (first_words, paper),
        (second_words, [others.get(finding.claim.id, finding) for finding in paper]),
    ]
