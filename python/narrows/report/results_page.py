"""The report of any results: tables, overview of a sweep, completion times, and figures over time."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from narrows import playground
from narrows.errors import ScenarioError
from narrows.playground.text import scenario_text
from narrows.report import folder, page, tables
from narrows.report.figure import Figure
from narrows.report.kinds.completion import completion
from narrows.report.kinds.points import overview
from narrows.report.kinds.time import single_run
from narrows.report.spread import spread
from narrows.results import summary
from narrows.results.by_run import read_runs
from narrows.results.results import Results
from narrows.results.runs import Run

MOST_POINTS = 16
"""Largest number of points of a sweep that are drawn over time, enough for Linux's fifteen algorithms. The
tables have all points.
"""


def single(results: Results, title: str | None = None, files: Path | None = None) -> str:
    """A report of any results, as one HTML file.

    Args:
        results: the results to show.
        title: title of the page (None: the scenario's name).
        files: folder that also gets each figure as SVG, PDF and PNG, with an index. Figures that an earlier
            report wrote there are removed.
    """
    points = _points(results)
    drawn_points = spread([point for point, _ in points], MOST_POINTS)
    flows, links = summary.flows(results), summary.links(results)
    alike = summary.same_runs(results, flows + links)
    first = page.Section(
        "summary",
        "Summary" if len(points) == 1 else "All points",
        "",
        "",
        overview(flows, links) if len(points) > 1 else [],
        tables=[
            table
            for table in (tables.flow_table(flows, alike), tables.link_table(links, alike))
            if table.rows
        ],
    )
    sections = [first] if first.figures or first.tables else []
    shown = [(figure, "") for figure in first.figures]
    for i, (point, runs) in enumerate([points[k] for k in drawn_points]):
        name = ", ".join(f"{key} {summary.point_text(value)}" for key, value in point.items())
        run = min(runs, key=lambda run: run.seed)
        drawn = [replace(figure, id=f"{figure.id}-{i}") for figure in _figures(run, runs)]
        if drawn:
            text = _ALIKE if summary.point_of(point) in alike else ""
            sections.append(page.Section(f"run-{i}", name or "Over time", "", text, drawn))
            shown += [(figure, name) for figure in drawn]
    if files is not None:
        folder.replace(shown, files, "report")
    sections.append(
        page.Section("provenance", "Provenance", "", _PROVENANCE, [], files=tables.files(results))
    )
    name = title or str(results.metadata.get("scenario", {}).get("name", "Results"))
    facts, warmup = tables.facts(results), results.metadata.get("warmup_s")
    play = _play(results)
    return page.render(
        page.Page(name, _lead(results, points), "", sections, facts=facts, warmup_s=warmup, play=play)
    )


_ALIKE = "All seeds gave the same run."
_PROVENANCE = (
    "The same scenario, seeds and version of Narrows give bit-for-bit identical tables. "
    "`metadata.json` in the folder of the tables contains this section."
)


def _lead(results: Results, points: Sequence[Any]) -> str:
    runs = len(results.runs)
    text = f"{runs:,} run{'' if runs == 1 else 's'}"
    if len(points) > 1:
        text += f", {len(points):,} points of a sweep over {' and '.join(results.factors)}"
    text += "."
    if len(points) > MOST_POINTS:
        text += f" {MOST_POINTS} of the points are drawn over time; the tables have all of them."
    return text


def _play(results: Results) -> tuple[str, str] | None:
    """The command that opens the scenario in the playground, and the playground's address on this machine.

    The address is empty if the playground is not installed. None if the playground cannot run the scenario.
    """
    text = scenario_text(results.metadata)
    if text is None or not isinstance(results.place, Path):
        return None
    try:
        playground.check(text, str(results.place))
    except ScenarioError:
        return None
    return f"narrows play {shlex.quote(str(results.place))}", playground.address(text) or ""


def _points(results: Results) -> list[tuple[dict[str, Any], list[Run]]]:
    """The runs of each point of the sweep, with the point's factors written as in the scenario."""
    # Treat the name of a case as the algorithm, as studies do.
    runs = read_runs(results, {"algorithm": "case"})
    points: dict[tuple[Any, ...], list[Run]] = {}
    for row, run in zip(results.runs.to_pylist(), runs, strict=True):
        points.setdefault(tuple(row.get(name) for name in results.factors), []).append(run)
    return [(dict(zip(results.factors, values, strict=True)), group) for values, group in points.items()]


def _figures(run: Run, runs: Sequence[Run]) -> list[Figure]:
    """The completion times of all seeds, and figures over time of the run with the smallest seed."""
    done = completion(runs)
    return [*([done] if done else []), *single_run(run)]
