"""`narrows run`: run a scenario, write its tables, print a summary."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from narrows import sweep
from narrows.results import summary
from narrows.results.results import METADATA, Results
from narrows.results.summary import Figure, Row
from narrows.scenario.load import load, parse_override

INTERRUPTED = 130
_WIDEST = 1000
"""Columns; a narrow terminal wraps lines, but no figure is cut."""
DEFAULT_FOLDER = Path("results")

_HEADINGS = {
    "goodput_bps": ("goodput", 1e6, "Mbit/s"),
    "share": ("share", 0.01, "%"),
    "rtt_mean_s": ("RTT mean", 1e-3, "ms"),
    "rtt_p95_s": ("RTT p95", 1e-3, "ms"),
    "retransmits": ("retransmits", 1, ""),
    "fct_s": ("FCT", 1e-3, "ms"),
    "utilisation": ("utilisation", 0.01, "%"),
    "sojourn_mean_s": ("queueing mean", 1e-3, "ms"),
    "sojourn_p95_s": ("queueing p95", 1e-3, "ms"),
    "dropped_packets": ("drops", 1, ""),
    "marks": ("marks", 1, ""),
}

_NOT_ALWAYS = ("share", "fct_s")
"""Only flows without end have a share, only those with an end a completion time."""


def run(
    scenario: Annotated[Path, typer.Argument(help="A scenario file (TOML).", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the tables; results/<name> if left out.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed in place of the scenario's.", show_default=False)
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds per point.", show_default=False)
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Replace a value, e.g. topology.rate=20mbit; may be repeated."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Runs at a time; one per core if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Run a scenario and print what came of it."""
    overrides = dict(parse_override(text) for text in override or [])
    if seed is not None:
        overrides["seed"] = seed
    loaded = load(scenario, overrides)
    folder = out if out is not None else DEFAULT_FOLDER / loaded.name
    replaced = (folder / METADATA).exists()
    with _progress(loaded.name) as progress:
        try:
            results = sweep.run(loaded, out=folder, seeds=seeds, jobs=jobs, progress=progress)
        except sweep.Interrupted as stopped:
            left = f"readable in {folder}" if stopped.done else "nothing is written"
            print(f"interrupted: {stopped}, {left}", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print(json.dumps(as_data(results), indent=2, allow_nan=False))
    else:
        show(results, Console(width=_WIDEST))
        print(f"tables in {folder}{' (earlier results there replaced)' if replaced else ''}")


@contextmanager
def _progress(name: str) -> Iterator[sweep.Progress]:
    """A bar on a terminal; elsewhere a line per tenth of the runs. A single run has neither."""
    if sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(name, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return

    def line(done: int, total: int) -> None:
        if total > 1 and (done == total or done * 10 // total > (done - 1) * 10 // total):
            print(f"{name}: {done} of {total} runs", file=sys.stderr)

    yield line


def show(results: Results, console: Console) -> None:
    """Print the summary as tables."""
    flows, links = summary.flows(results), summary.links(results)
    shown = [name for name in summary.FLOW_FIGURES if name not in _NOT_ALWAYS or _any(flows, name)]
    if flows:
        console.print(_table("flow", flows, tuple(shown)))
    if links:
        console.print(_table("link", links, summary.LINK_FIGURES))
    if any(row.name.endswith("(group)") for row in flows):
        console.print(
            "a group has sums of share and retransmits, and means over its flows of the rest", highlight=False
        )
    if summary.seeds_agree(results, flows + links):
        console.print("seeds differ in nothing here: all runs of a point are the same", highlight=False)
    elif len(results.runs) > 1 and any(not math.isnan(f.half) for r in flows for f in r.figures.values()):
        console.print("± is the 95 % confidence interval of the mean over seeds", highlight=False)


def _any(rows: list[Row], name: str) -> bool:
    return any(not math.isnan(row.figures[name].mean) for row in rows)


def _table(entity: str, rows: list[Row], figures: tuple[str, ...]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for factor in rows[0].factors:
        table.add_column(factor, no_wrap=True)
    table.add_column(entity, no_wrap=True)
    with_cc = any(row.cc and row.cc != row.name for row in rows)
    if with_cc:
        table.add_column("cc", no_wrap=True)
    for name in figures:
        title, _, unit = _HEADINGS[name]
        table.add_column(f"{title}\n{unit}" if unit else title, justify="right", no_wrap=True)
    for row in rows:
        cells = [_factor(value) for value in row.factors.values()] + [row.name]
        cells += [row.cc] if with_cc else []
        table.add_row(*cells, *(_cell(row.figures[name], _HEADINGS[name][1]) for name in figures))
    return table


def _factor(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cell(figure: Figure, scale: float) -> str:
    if math.isnan(figure.mean):
        return "-"
    value = figure.mean / scale
    digits = 0 if abs(value) >= 1000 or (scale == 1 and value == int(value)) else 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}"
    return text if math.isnan(figure.half) else f"{text} ± {figure.half / scale:.{digits}f}"


def as_data(results: Results) -> dict[str, Any]:
    """The summary for other programs: units of the tables, null where undefined."""
    return {
        "runs": len(results.runs),
        **summary.totals(results),
        "flows": [_plain(row) for row in summary.flows(results)],
        "links": [_plain(row) for row in summary.links(results)],
    }


def _plain(row: Row) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, figure in row.figures.items():
        figures[name] = None if math.isnan(figure.mean) else figure.mean
        if not math.isnan(figure.half):
            figures[f"{name}_ci95"] = figure.half
    return {**row.factors, "name": row.name, **({"cc": row.cc} if row.cc else {}), **figures}
