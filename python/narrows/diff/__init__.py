"""Finds changes between two results of the same scenarios, with confidence intervals (`narrows diff`)."""

from narrows.diff.ask import Ask, parse_ask
from narrows.diff.changes import DIFFERENT, Compared, Diff, Outcome, Part, diff
from narrows.diff.folders import Side, read_side

__all__ = [
    "DIFFERENT",
    "Ask",
    "Compared",
    "Diff",
    "Outcome",
    "Part",
    "Side",
    "diff",
    "parse_ask",
    "read_side",
]
