"""Finds the flows and links that two results have in common. The functions have no side effects."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from narrows.results import summary
from narrows.results.results import Results
from narrows.results.summary import Row

Pairs = list[tuple[Row, Row]]
"""Pairs of rows with the same point and name: one row from the first results, one from the second."""
Key = tuple[Any, ...]
"""Key of a point of the sweep, or of a flow or link at a point."""
_Rows = dict[Key, Row]


@dataclass(frozen=True)
class Matched:
    """The flows and bottleneck links that both results have, and the names that only one result has."""

    flows: Pairs
    links: Pairs
    """Links that are a bottleneck in at least one of the results."""
    only_a: list[str]
    """Flows and links that only A has. Each entry is a point of the sweep, followed by ``NAME`` (a flow) or
    ``link NAME``."""
    only_b: list[str]


def match(a: Results, b: Results) -> Matched:
    """Match the rows of two results by point of the sweep and name."""
    flows = [_by_name(summary.flows(results, most=sys.maxsize)) for results in (a, b)]
    (links_a, bottlenecks_a), (links_b, bottlenecks_b) = summary.all_links(a), summary.all_links(b)
    links = [_by_name(links_a), _by_name(links_b)]
    bottlenecks = bottlenecks_a | bottlenecks_b
    return Matched(
        _in_both(*flows),
        [pair for pair in _in_both(*links) if pair[0].name in bottlenecks],
        _missing("", *flows) + _missing("link ", *links),
        _missing("", *reversed(flows)) + _missing("link ", *reversed(links)),
    )


def point_key(factors: Mapping[str, Any]) -> Key:
    """The key of a point of the sweep. It does not depend on the order of the factors."""
    return tuple(sorted((name, str(value)) for name, value in factors.items()))


def _by_name(rows: Iterable[Row]) -> _Rows:
    return {(*point_key(row.factors), row.name): row for row in rows}


def _in_both(rows: _Rows, others: _Rows) -> Pairs:
    return [(row, others[key]) for key, row in rows.items() if key in others]


def _missing(prefix: str, rows: _Rows, others: _Rows) -> list[str]:
    """The rows that the other results lack, as text."""
    return [_words(row, prefix) for key, row in rows.items() if key not in others]


def _words(row: Row, prefix: str) -> str:
    return " ".join([*(f"{key}={value}" for key, value in row.factors.items()), f"{prefix}{row.name}"])
