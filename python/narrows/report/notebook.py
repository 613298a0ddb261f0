"""Results in a notebook: tables as HTML, and figures of the report as altair charts."""

from __future__ import annotations

import html
from typing import Any

import altair as alt
import numpy as np

from narrows.errors import NarrowsError, choice, found
from narrows.report import tables
from narrows.report.encode import axis, colour, dash
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.kinds.time import single_run
from narrows.report.series import rows
from narrows.report.style import looks_of
from narrows.results import summary
from narrows.results.by_run import read_runs
from narrows.results.factors import factor, same
from narrows.results.results import Results
from narrows.results.runs import Run

CDFS = {"rtt": ("flow", "RTT"), "sojourn": ("link", "Time in the queue")}
"""Quantities with a distribution: the entity that has it, and its title."""


class Plots:
    """Figures of results, as altair charts in the style of the report.

    Each method takes factors of the sweep, e.g. `results.plot.time(case="brf")`. If the key of a factor has
    dots, pass a dictionary: `results.plot.time(**{"topology.rate": "20mbit"})`.
    """

    def __init__(self, results: Results) -> None:
        self._results = results

    def time(self, *, flows: bool = True, **factors: Any) -> Any:
        """Goodput, window and RTT of each flow over time, of the run with the smallest seed.

        Args:
            flows: whether to draw the flows (True) or the busiest links (False).
            factors: the point of the sweep (default: the first point).

        Raises:
            NarrowsError: if no run has these factors, or nothing was sampled.
        """
        drawn = {figure.id: figure for figure in single_run(self._runs(factors)[0])}
        wanted = "flows" if flows else "links"
        if wanted not in drawn:
            raise NarrowsError(f"found no samples of {wanted}, expected probes.interval above 0")
        return _chart(drawn[wanted])

    def share(self, **factors: Any) -> Any:
        """The share of each flow in the goodput, as the mean over seeds with its 95 % confidence interval.

        Args:
            factors: the point of the sweep (default: the first point).

        Raises:
            NarrowsError: if no run has these factors.
        """
        wanted = self._runs(factors)[0].factors
        point = [
            row
            for row in summary.flows(self._results)
            if all(same(factor(row.factors[name]), wanted[name]) for name in wanted if name in row.factors)
        ]
        names, looks = [row.name for row in point], looks_of([row.cc for row in point])
        values: list[dict[str, Any]] = []
        for row in point:
            share = row.figures["share"]
            mean, half = 100 * share.mean, 0.0 if np.isnan(share.half) else 100 * share.half
            values.append({"s": row.name, "y": mean, "low": mean - half, "high": mean + half})
        base = alt.Chart(inline(values)).encode(y=alt.Y("s:N", title=None, sort=names))
        bars = base.mark_bar(height=12).encode(
            x=alt.X("y:Q", title="Share of the goodput, %", scale=alt.Scale(domainMin=0)),
            color=colour(names, looks),
        )
        spread = base.mark_rule().encode(x="low:Q", x2="high:Q")
        panel = Panel("", alt.layer(bars, spread), height=24 * max(1, len(names)))
        return _chart(Figure("share", "Share of the goodput", "", [panel], columns=1))

    def cdf(self, quantity: str = "rtt", **factors: Any) -> Any:
        """The distribution of a quantity in the run with the smallest seed. Each flow or link has a line.

        Args:
            quantity: `rtt` (of flows), or `sojourn`, the time in the queue (of links).
            factors: the point of the sweep (default: the first point).

        Raises:
            NarrowsError: for an unknown quantity, or if no run has these factors.
        """
        if quantity not in CDFS:
            raise NarrowsError(f"quantity: {choice(quantity, CDFS)}")
        entity, title = CDFS[quantity]
        run = self._runs(factors)[0]
        table = f"{entity}s"
        names, kinds, values = [], [], []
        for row, name in enumerate(run.names(table, "name")):
            levels, at = run.distribution(entity, int(run.column(table, entity)[row]), quantity)
            by_level = np.argsort(levels, kind="stable")
            levels, at = levels[by_level], at[by_level]
            if at.size and np.isfinite(at).any() and float(np.nanmax(at)) > 0:
                values += rows(x=1e3 * at, y=levels, s=name)
                names.append(name)
                kinds.append(str(run.tables[table]["cc"][row]) if entity == "flow" else f"link-{len(names)}")
        if not names:
            raise NarrowsError(f"found no distribution of {quantity} in these results, expected at least one")
        looks = looks_of(kinds)
        lines = (
            alt.Chart(inline(values))
            .mark_line(clip=True)
            .encode(
                x=alt.X(**axis("x", f"{title}, ms")),
                y=alt.Y(**axis("y", "Share of packets", domain=[0, 1])),
                color=colour(names, looks),
                strokeDash=dash(names, looks),
            )
        )
        keys = [Key(name, item) for name, item in zip(names, looks, strict=True)]
        return _chart(Figure("cdf", f"Distribution: {title}", "", [Panel("", lines)], keys, columns=1))

    def _runs(self, factors: dict[str, Any]) -> list[Run]:
        """The runs of a point of the sweep, in the order of seeds."""
        runs = list(read_runs(self._results))
        known = self._results.factors
        for name, value in factors.items():
            if name not in known:
                expected = choice(name, known) if known else f"found {found(name)}, expected no factor"
                raise NarrowsError(f"factor: {expected}")
            wanted = factor(value)
            runs = [run for run in runs if name not in run.factors or same(run.factors[name], wanted)]
        if not runs:
            raise NarrowsError(f"found no run with {', '.join(f'{k} = {v}' for k, v in factors.items())}")
        first = runs[0].factors
        return sorted((run for run in runs if run.factors == first), key=lambda run: run.seed)


def _chart(figure: Figure) -> Any:
    return alt.VConcatChart.from_dict(figure.spec(), validate=False)


def as_html(results: Results) -> str:
    """The summary of results as HTML tables."""
    flows, links = summary.flows(results), summary.links(results)
    alike = summary.same_runs(results, flows + links)
    parts = [f"<p><b>{html.escape(str(results.metadata.get('scenario', {}).get('name', '')))}</b></p>"]
    for table in (tables.flow_table(flows, alike), tables.link_table(links, alike)):
        if table.rows:
            parts.append(_table(table))
    return "\n".join(parts)


def _table(table: tables.Table) -> str:
    heads = "".join(
        f"<th>{html.escape(column.title)}{f' ({html.escape(column.unit)})' if column.unit else ''}</th>"
        for column in table.columns
    )
    body = []
    for row in table.rows:
        cells = (f"{cell.text}{f' {tables.PLUS_MINUS} {cell.half}' if cell.half else ''}" for cell in row)
        body.append(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>")
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"
