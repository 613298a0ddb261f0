"""`narrows run`: run a scenario, write its tables, print a summary."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from narrows import sweep
from narrows.backends import Backend
from narrows.backends.kernel import soundness
from narrows.cli import compare as comparison
from narrows.cli.figures import HEADINGS, WIDEST, digits, number
from narrows.cli.options import checked_seed
from narrows.errors import NarrowsError, ScenarioError
from narrows.results import summary
from narrows.results.compare import compare
from narrows.results.results import METADATA, SIMULATED, Results, holds_runs
from narrows.results.summary import Figure, Row
from narrows.scenario.load import expand, load, parse_override
from narrows.scenario.model import Scenario
from narrows.scenario.served import notes
from narrows.signals import terminable

INTERRUPTED = 130


class On(StrEnum):
    """What runs a scenario."""

    SIM = "sim"
    KERNEL = "kernel"
    VM = "vm"


DEFAULT_FOLDER = Path("results")


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
    on: Annotated[
        On,
        typer.Option(
            "--on",
            help="sim: simulate; kernel: real Linux TCP stacks, in real time, as root; vm: those of Debian's "
            "kernel in a guest, in virtual time (narrows vm prepare).",
        ),
    ] = On.SIM,
    no_sim: Annotated[
        bool, typer.Option("--no-sim", help="With --on kernel or vm: do not simulate and compare afterwards.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Run a scenario and print what came of it."""
    if no_sim and on is On.SIM:
        raise NarrowsError(f"--no-sim: found --on {on}, expected --on kernel or vm")
    overrides = dict(parse_override(text) for text in override or [])
    if seed is not None:
        overrides["seed"] = checked_seed(seed)
    loaded = load(scenario, overrides)
    folder = out if out is not None else DEFAULT_FOLDER / loaded.name
    replaced = (folder / METADATA).exists()
    backend = real_stacks(on)
    results = _results(loaded, folder, seeds, jobs, backend)
    simulated = None
    if backend is not None and not no_sim:
        simulated = _simulated(loaded, folder / SIMULATED, seeds, jobs)
    if as_json:
        data = as_data(results)
        if backend is not None:
            data["soundness"] = results.soundness
        if simulated is not None:
            data["comparison"] = comparison.as_data(compare(simulated, results))
        print(json.dumps(data, indent=2, allow_nan=False))
        return
    console = Console(width=WIDEST)
    show(results, console)
    if backend is not None:
        print(soundness.line(results.soundness))
        for note in soundness.notes(results.soundness):
            print(f"note: {note}")
    for note in notes(expand(loaded)):
        print(f"note: {note}")
    print(f"tables in {folder}{' (earlier results there replaced)' if replaced else ''}")
    if simulated is not None:
        print(f"\nthe same scenario simulated (narrows compare {folder / SIMULATED} {folder}):")
        comparison.show(compare(simulated, results), ("sim", str(on)), console)


def _results(
    loaded: Scenario, folder: Path, seeds: int | None, jobs: int | None, backend: Backend | None
) -> Results:
    """Run all; an interruption says what is left of it and ends the command."""
    with progress_of(loaded.name) as progress, terminable():
        try:
            return sweep.run(loaded, out=folder, seeds=seeds, jobs=jobs, backend=backend, progress=progress)
        except sweep.Interrupted as stopped:
            left = f"readable in {stopped.results.folder}" if stopped.done else "nothing is written"
            earlier = holds_runs(folder) and stopped.results.folder != folder
            stays = f"; {folder} still has the earlier results" if earlier else ""
            print(f"interrupted: {stopped}, {left}{stays}", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None


def _simulated(loaded: Scenario, folder: Path, seeds: int | None, jobs: int | None) -> Results | None:
    """The same in the simulator, to compare; None, and a line that says why, if it has no such controller."""
    try:
        return _results(loaded.beside_real(), folder, seeds, jobs, None)
    except ScenarioError as error:
        print(f"no simulation to compare with: {error}", file=sys.stderr)
        return None


def real_stacks(on: On) -> Backend | None:
    """The backend of this name, if it is not the simulator.

    Raises:
        NarrowsError: one line, if this machine or user lacks something.
    """
    if on is On.SIM:
        return None
    try:
        from narrows.backends.kernel.backend import Kernel  # noqa: PLC0415 (needs the native module)
        from narrows.backends.vm.backend import Vm  # noqa: PLC0415
    except ImportError as error:
        raise NarrowsError(f"the native module is not built ({error}): pip install -e .") from None

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    return Kernel(say) if on is On.KERNEL else Vm(say)


@contextmanager
def progress_of(name: str) -> Iterator[sweep.Progress]:
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
    alike = summary.same_runs(results, flows + links)
    if flows:
        console.print(_table("flow", flows, summary.shown_of_flows(flows), alike))
    if links:
        console.print(_table("link", links, summary.shown_of_links(links), alike))
    if any(row.name.endswith("(group)") for row in flows):
        console.print(
            "a group has sums of share and retransmits, and means over its flows of the rest", highlight=False
        )
    for note in _footnotes(results, flows, links):
        console.print(note, highlight=False)
    apart = [row for row in flows if summary.point_of(row.factors) not in alike]
    if alike and not apart:
        console.print("seeds differ in nothing here: all runs of a point are the same (=)", highlight=False)
    elif alike:
        console.print("= where seeds differ in nothing: all runs of the point are the same", highlight=False)
    if any(not math.isnan(f.half) for row in apart for f in row.figures.values()):
        console.print("± is the 95 % confidence interval of the mean over seeds", highlight=False)


def _footnotes(results: Results, flows: list[Row], links: list[Row]) -> Iterator[str]:
    """What time the figures are of, where one might take them to be of another."""
    warmup = float(results.metadata.get("warmup_s", 0.0))
    whole = summary.counted_from_the_start(flows, links)
    if whole and warmup > 0:
        titles = ", ".join(HEADINGS[name][0] for name in whole)
        yield f"{titles}: of the whole run; the rest: after the warm-up of {warmup:g} s"
    if summary.at_different_times(results):
        yield "flows begin or end at different times: each goodput is over its own: they need not add up"


def _table(entity: str, rows: list[Row], figures: list[str], alike: Collection[tuple[Any, ...]]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for factor in rows[0].factors:
        table.add_column(factor, no_wrap=True)
    table.add_column(entity, no_wrap=True)
    with_cc = any(row.cc and row.cc != row.name for row in rows)
    if with_cc:
        table.add_column("cc", no_wrap=True)
    for name in figures:
        title, _, unit = HEADINGS[name]
        table.add_column(f"{title}\n{unit}" if unit else title, justify="right", no_wrap=True)
    for row in rows:
        cells = [_factor(value) for value in row.factors.values()] + [row.name]
        cells += [row.cc] if with_cc else []
        same = summary.point_of(row.factors) in alike
        table.add_row(*cells, *(_cell(row.figures[name], HEADINGS[name][1], same) for name in figures))
    return table


def _factor(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cell(figure: Figure, scale: float, same: bool) -> str:
    if math.isnan(figure.mean):
        return "-"
    text = number(figure.mean, scale)
    if same:
        return f"{text} ="
    decimals = digits(figure.mean / scale, scale)
    return text if math.isnan(figure.half) else f"{text} ± {figure.half / scale:.{decimals}f}"


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
