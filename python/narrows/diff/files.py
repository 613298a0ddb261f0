"""A comparison as JSON and as Markdown."""

from __future__ import annotations

import math
from typing import Any

from narrows.diff import words
from narrows.diff.changes import DIFFERENT, Compared, Diff
from narrows.diff.pairing import Pairing
from narrows.markdown import table


def as_data(diff: Diff) -> dict[str, Any]:
    """The comparison for other programs, in the units of the tables. Undefined values are null."""
    return {
        "base": diff.base,
        "head": diff.head,
        "confidence": diff.confidence,
        "correction": words.CORRECTION,
        "identical": diff.is_identical,
        "changed": diff.is_changed,
        "only_base": diff.only_base,
        "only_head": diff.only_head,
        "scenarios": [
            {
                "name": part.name,
                "only_base": part.only_base,
                "only_head": part.only_head,
                "points": [_point(pairing) for pairing in part.points],
                "figures": [_figure(item) for item in part.compared],
            }
            for part in diff.parts
        ],
    }


def _point(pairing: Pairing) -> dict[str, Any]:
    return {
        "factors": pairing.factors,
        "paired": pairing.paired,
        "pairs": pairing.pairs,
        "identical": pairing.identical,
        "seeds": [list(seeds) for seeds in pairing.seeds],
        "repeats": pairing.repeats,
        "unsound": pairing.unsound,
    }


def _figure(item: Compared) -> dict[str, Any]:
    difference = item.difference
    return {
        "factors": item.series.factors,
        item.series.entity: item.series.name,
        "figure": item.series.figure,
        "title": item.series.heading.title,
        "base": _plain(item.base.mean),
        "head": _plain(item.head.mean),
        "difference": _plain(difference.mean),
        "interval": [_plain(difference.low), _plain(difference.high)],
        "relative": _plain(item.relative),
        "n": difference.n,
        "p": _plain(difference.p),
        "p_adjusted": _plain(item.p),
        "outcome": str(item.outcome),
    }


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def markdown(diff: Diff) -> str:
    """The changed figures as a Markdown table, for a comment on a pull request."""
    lines = [f"**{_escaped(diff.base)} → {_escaped(diff.head)}**: {words.headline(diff)}", ""]
    rows = [
        [", ".join(words.place(part, item)), *words.cells(item)]
        for part in diff.parts
        for item in part.compared
        if item.outcome in DIFFERENT
    ]
    if rows:
        heads = ["flow or link", "figure", "base", "head", "change %", "interval %", "p", "outcome"]
        lines += [table(heads, [[_escaped(cell) for cell in row] for row in rows], "llrrrrrl"), ""]
    return "\n".join(lines + [f"- {_escaped(note)}" for note in words.notes(diff)]) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
