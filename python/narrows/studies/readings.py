"""Judges a claim on the algorithm as the paper prints it, next to the verdict on the repaired algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from narrows.studies.judge import Finding
from narrows.studies.model import Claim, Reading, instead

REPAIRED, AS_PRINTED = "repaired", "as printed"
"""The two readings of an algorithm in words."""


def as_printed(claim: Claim, readings: Iterable[Reading]) -> Claim | None:
    """The claim about the algorithm as printed (None: the claim names no algorithm that has two readings)."""
    if claim.group != "paper":
        return None
    other = claim
    for reading in readings:
        other = instead(other, reading.factor, reading.repaired, reading.printed)
    return None if other == claim else other


def by_reading(findings: Iterable[Finding], printed: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    """Findings on the paper's claims for each reading, or one unnamed group if no algorithm has two readings.

    A claim that names no algorithm with two readings has the same finding in both groups.
    """
    paper = [finding for finding in findings if finding.claim.group == "paper"]
    if not printed:
        return [("", paper)]
    others = {finding.claim.id: finding for finding in printed}
    return [(REPAIRED, paper), (AS_PRINTED, [others.get(finding.claim.id, finding) for finding in paper])]
