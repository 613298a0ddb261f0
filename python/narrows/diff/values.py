"""The values of each figure by seed, on both sides. All functions are pure."""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from narrows.diff.ask import Ask
from narrows.diff.pairing import Pairing
from narrows.results import summary
from narrows.results.figures import HEADINGS, Heading
from narrows.results.match import Key, Matched, Pairs, point_key
from narrows.results.measures import measure_run
from narrows.results.runs import Run

Values = Mapping[int, float]
"""The values of a figure by seed. An undefined value is NaN."""
ALL = "all"
"""This text replaces the name of a flow in rows about all flows together."""


@dataclass(frozen=True)
class Series:
    """A figure of a flow, of a link or of all flows, on both sides."""

    point: Key
    factors: dict[str, Any]
    entity: str
    """``flow`` or ``link``."""
    name: str
    figure: str
    """Name of a column of the results' tables, or name of a measure."""
    heading: Heading
    base: Values
    head: Values


def of_summary(matched: Matched) -> Iterator[Series]:
    """The figures of the summary that `narrows run` prints."""
    yield from _rows("flow", matched.flows, summary.FLOW_FIGURES)
    yield from _rows("link", matched.links, summary.LINK_FIGURES)


def _rows(entity: str, rows: Pairs, figures: tuple[str, ...]) -> Iterator[Series]:
    for a, b in rows:
        for name in figures:
            heading = HEADINGS[name]
            yield Series(
                point_key(a.factors),
                a.factors,
                entity,
                a.name,
                name,
                heading,
                a.by_seed[name],
                b.by_seed[name],
            )


def of_measure(ask: Ask, matched: Matched, points: Mapping[Key, Pairing]) -> Iterator[Series]:
    """A measure of each link, or of all flows together and of each flow.

    If the arguments name flows or a link, only the named ones are measured.
    """
    title = ask.title
    heading = Heading(title, ask.measure.unit, 1.0, title)
    for point, pairing in points.items():
        rows: list[tuple[str, str, Callable[[Run], float]]] = []
        if ask.of_each == "link":
            names = [a.name for a, _ in matched.links if point_key(a.factors) == point]
            rows += [("link", name, _measure(ask, link=glob.escape(name))) for name in names]
        else:
            rows.append(("flow", ALL, _measure(ask)))
            names = [a.name for a, _ in matched.flows if point_key(a.factors) == point]
            if ask.of_each == "flows" and len(names) > 1:
                rows += [("flow", name, _of_flow(ask, name)) for name in names]
        for entity, name, measure in rows:
            sides = [
                {seed: measure(run) for seed, run in side.items()} for side in (pairing.base, pairing.head)
            ]
            yield Series(point, pairing.factors, entity, name, ask.measure.name, heading, sides[0], sides[1])


def _measure(ask: Ask, **more: str) -> Callable[[Run], float]:
    def value(run: Run) -> float:
        measured = measure_run(ask.measure.name, run, **ask.args, **more)
        # A censored time is only a lower bound, so differences cannot be computed.
        return math.nan if measured.censored else measured.value

    return value


def _of_flow(ask: Ask, name: str) -> Callable[[Run], float]:
    """The measure of one flow or group. The run's other flows are left out."""
    measure = _measure(ask)

    def value(run: Run) -> float:
        names, sources = run.names("flows", "name"), run.names("flows", "source")
        rows = [i for i, known in enumerate(names) if known == name]
        rows = rows or [i for i, source in enumerate(sources) if summary.group_name(source) == name]
        if not rows:
            return math.nan
        flows = {column: _chosen(values, rows) for column, values in run.tables["flows"].items()}
        return measure(replace(run, tables={**run.tables, "flows": flows}))

    return value


def _chosen(values: Any, rows: list[int]) -> Any:
    return values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]
