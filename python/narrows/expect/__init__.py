"""Judges the expectations of a scenario on its results, and writes the verdicts for other programs."""

from narrows.expect.claims import claims
from narrows.expect.verdicts import Verdicts, judge_results

__all__ = ["Verdicts", "claims", "judge_results"]
