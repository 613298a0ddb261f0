"""The work of `narrows run`."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from narrows import extras, sweep
from narrows.backends import Backend
from narrows.backends.kernel import soundness
from narrows.cli import compare as comparison
from narrows.cli import options
from narrows.cli.commands.shared import INTERRUPTED, On, say
from narrows.cli.console import plain
from narrows.cli.figures import digits, fitting, heading, number
from narrows.cli.folders import results_folder
from narrows.cli.options import overrides
from narrows.cli.progress import progress_of
from narrows.cli.table import Table
from narrows.errors import NarrowsError, ScenarioError
from narrows.executors import Executor
from narrows.results import summary
from narrows.results.compare import compare
from narrows.results.datasets.urls import require_folder, url_of
from narrows.results.figures import HEADINGS
from narrows.results.results import METADATA, SIMULATED, STOPPED, Results, holds_runs
from narrows.results.summary import Figure, Row
from narrows.results.tables import Format
from narrows.scenario.load import expand, load
from narrows.scenario.model import Scenario
from narrows.scenario.notes import notes
from narrows.signals import terminable

if TYPE_CHECKING:
    from narrows.cache import Cached
    from narrows.cli.expect import Gate
    from narrows.expect import Verdicts


@dataclass(frozen=True)
class Outputs:
    """The files that a call writes, and the part of the sweep that it runs."""

    formats: tuple[Format, ...] | None = None
    """Formats of the tables (None: the default)."""
    shard: tuple[int, int] | None = None
    """Part of the runs: (i, n) is the i-th of n."""
    junit: Path | None = None
    """File for the verdicts on expectations, as JUnit XML."""
    markdown: Path | None = None
    """File for the verdicts on expectations, as Markdown."""

    def check_verdicts(self, loaded: Scenario) -> None:
        """If a file for verdicts is given, check that there will be verdicts to write.

        Raises:
            NarrowsError: if the scenario has no expectations, or if only a shard runs.
        """
        files = (("--junit", self.junit), ("--markdown", self.markdown))
        for option in (name for name, path in files if path is not None):
            if not loaded.expect:
                raise NarrowsError(f"{option}: found no [[expect]] in {loaded.source}, expected at least one")
            if self.shard is not None:
                raise NarrowsError(
                    f"{option}: found --shard, expected all runs, because a shard has no verdicts"
                )


def run(
    scenario: Path,
    out: Path | None,
    seed: int | None,
    seeds: int | None,
    override: list[str],
    jobs: int | None,
    executor: str,
    on: On,
    *,
    simulator: Cached | None = None,
    no_sim: bool,
    reuse: bool,
    as_json: bool,
    outputs: Outputs,
) -> None:
    """Run a scenario, write its tables, print a summary and judge the expectations."""
    if no_sim and on is On.SIM:
        raise NarrowsError(f"--no-sim: found --on {on}, expected --on kernel or vm")
    changed = overrides(override, seed)
    loaded = load(scenario, changed)
    outputs.check_verdicts(loaded)
    gate = expectations(loaded)
    shard = outputs.shard
    if shard is not None:
        if not no_sim and on is not On.SIM:
            raise NarrowsError("--shard: expected --no-sim, because the comparison needs all runs")
        gate = None
    folder = out if out is not None else results_folder(loaded.name, on, changed)
    if out is None and shard is not None:
        folder = folder.with_name(f"{folder.name}-{shard[0]}-of-{shard[1]}")
    url = url_of(folder)
    place = url or folder
    if url is not None and url.startswith("memory:"):
        raise NarrowsError(f"--out: found {url}, expected a place that outlives the command")
    if url is not None and on is not On.SIM:
        require_folder(url, "--out", "runs on real stacks also write logs and a simulation")
    earlier = _metadata(folder)
    maker = options.executor(executor, jobs, on)
    backend = real_stacks(on)
    results = _results(loaded, folder, seeds, jobs, backend or simulator, outputs, maker, reuse=reuse)
    replaced = earlier is not None and not (reuse and earlier == _metadata(folder))
    simulated = None
    if backend is not None and not no_sim:
        simulated = _simulated(loaded, folder / SIMULATED, seeds, jobs, outputs, reuse=reuse)
    verdicts = gate.judge(results, outputs.junit, outputs.markdown) if gate is not None else None
    if as_json:
        data = as_data(results)
        if verdicts is not None:
            data["expectations"] = verdicts.as_data()
        if backend is not None:
            data["soundness"] = results.soundness
        if simulated is not None:
            data["comparison"] = comparison.as_data(compare(simulated, results))
        print(json.dumps(data, indent=2, allow_nan=False))
        _end(verdicts)
        return
    console = plain()
    show(results, console)
    if backend is not None:
        console.print(soundness.line(results.soundness))
        for note in soundness.notes(results.soundness):
            console.print(f"note: {note}")
    for note in notes(expand(loaded)):
        console.print(f"note: {note}")
    for note in summary.failures(results):
        console.print(f"note: {note}")
    if shard is not None and loaded.expect:
        console.print(
            "note: this is a part of the runs, so the expectations are not judged. Merge the parts with "
            f"`narrows merge`, then judge them with `narrows run {scenario} --reuse --out MERGED`"
        )
    print(f"tables in {place}{' (earlier results replaced)' if replaced else ''}")
    options.say_cached(simulator)
    if simulated is not None:
        print(f"\nthe same scenario simulated (narrows compare {folder / SIMULATED} {folder}):")
        comparison.show(compare(simulated, results), ("sim", str(on)), console)
    if gate is not None and verdicts is not None:
        gate.show(verdicts, console)
    _end(verdicts)


def expectations(loaded: Scenario) -> Gate | None:
    """The scenario's expectations (None: there are none).

    They are checked before the runs, because runs may take long.
    """
    if not loaded.expect:
        return None
    from narrows.cli.expect import Gate  # noqa: PLC0415 (imports the judge, which most scenarios do not need)

    return Gate(loaded)


def _end(verdicts: Verdicts | None) -> None:
    """End the command with exit code 1 unless all expectations are met."""
    if verdicts is not None and not verdicts.are_met:
        raise typer.Exit(1)


def _metadata(folder: Path) -> bytes | None:
    """The description of the results in a folder; None if the folder has no results."""
    try:
        return (folder / METADATA).read_bytes()
    except OSError:
        return None


def _results(
    loaded: Scenario,
    folder: Path,
    seeds: int | None,
    jobs: int | None,
    backend: Backend | None,
    outputs: Outputs,
    executor: Executor | None = None,
    *,
    reuse: bool,
) -> Results:
    """Run the sweep. An interruption prints the folder of the finished runs and ends the command."""
    with progress_of(loaded.name, loaded.duration) as progress, terminable():
        try:
            return sweep.run(
                loaded,
                out=folder,
                seeds=seeds,
                jobs=jobs,
                backend=backend,
                progress=progress,
                clock=progress.clock if executor is None else None,
                hosts=progress.hosts if executor is not None else None,
                executor=executor,
                resume=reuse,
                formats=outputs.formats,
                shard=outputs.shard,
            )
        except sweep.Interrupted as stopped:
            left = f"readable in {stopped.results.place}" if stopped.done else "nothing is written"
            earlier = url_of(folder) is None and holds_runs(folder) and stopped.results.folder != folder
            stays = f"; {folder} still has the earlier results" if earlier else ""
            rest = "; to run only the rest, add --reuse" if stopped.done else ""
            say(f"interrupted: {stopped}, {left}{stays}{rest}")
            say_stopped(stopped)
            raise typer.Exit(INTERRUPTED) from None


def say_stopped(interrupted: sweep.Interrupted) -> None:
    """If an interruption has stopped active runs, print the folder with their results."""
    if interrupted.problem is not None:
        say(f"results of the active runs are lost: {interrupted.problem}")
    if interrupted.stopped is not None:
        times = interrupted.stopped.metadata[STOPPED].values()
        at = f"{min(times):.1f} s" if len(times) == 1 else f"{min(times):.1f} to {max(times):.1f} s"
        which = "the active run was" if len(times) == 1 else f"{len(times)} active runs were"
        say(f"{which} stopped after {at} of simulated time; results so far: {interrupted.stopped.place}")


def _simulated(
    loaded: Scenario, folder: Path, seeds: int | None, jobs: int | None, outputs: Outputs, *, reuse: bool
) -> Results | None:
    """Simulate the scenario for comparison.

    If the scenario cannot be simulated, print the reason and return None.
    """
    try:
        return _results(loaded.beside_real(), folder, seeds, jobs, None, outputs, reuse=reuse)
    except ScenarioError as error:
        say(f"no simulation for comparison: {error}")
        return None


def real_stacks(on: On) -> Backend | None:
    """The backend of this name; None for the simulator.

    Raises:
        NarrowsError: if this machine or user lacks a requirement. The text is one line.
    """
    if on is On.SIM:
        return None
    try:
        from narrows.backends.kernel.backend import Kernel  # noqa: PLC0415 (needs the native module)
        from narrows.backends.vm.backend import Vm  # noqa: PLC0415
    except ImportError as error:
        raise extras.no_native_module(error) from None
    return Kernel(say) if on is On.KERNEL else Vm(say)


def show(results: Results, console: Console) -> None:
    """Print the summary as tables."""
    flows, links = summary.flows(results), summary.links(results)
    alike = summary.same_runs(results, flows + links)
    if flows:
        _table("flow", flows, summary.shown_of_flows(flows), alike).print(console)
    if links:
        _table("link", links, summary.shown_of_links(links), alike).print(console)
    if any(row.name.endswith("(group)") for row in flows):
        console.print(summary.GROUPS)
    for note in _footnotes(results, flows, links):
        console.print(note)
    apart = [row for row in flows if summary.point_of(row.factors) not in alike]
    if alike:
        console.print(summary.SAME if apart else summary.SAME_EVERYWHERE)
    if any(not math.isnan(f.half) for row in apart for f in row.figures.values()):
        console.print(summary.INTERVALS)


def _footnotes(results: Results, flows: list[Row], links: list[Row]) -> Iterator[str]:
    """If figures were measured over different times, lines that state these times."""
    whole = summary.counted_from_the_start(flows, links)
    if whole and results.warmup_s > 0:
        titles = ", ".join(HEADINGS[name].short for name in whole)
        yield f"{titles}: whole run; all other figures: after the warm-up of {results.warmup_s:g} s"
    if summary.at_different_times(results):
        yield (
            "goodput: while the flow is active; flows start or end at different times, so the sum may exceed "
            "the link's rate"
        )


def _table(entity: str, rows: list[Row], figures: list[str], alike: Collection[tuple[Any, ...]]) -> Table:
    table = Table()
    for factor in rows[0].factors:
        table.add_name(factor)
    table.add_name(entity)
    with_cc = any(row.cc and row.cc != row.name for row in rows)
    if with_cc:
        table.add_name("cc")
    headings = {name: fitting(name, (row.figures[name].mean for row in rows)) for name in figures}
    for of in headings.values():
        table.add_figure(heading(of, "\n"))
    for row in rows:
        cells = [summary.point_text(value) for value in row.factors.values()] + [row.name]
        cells += [row.cc] if with_cc else []
        same = summary.point_of(row.factors) in alike
        table.add_row(*cells, *(_cell(row.figures[name], of.size, same) for name, of in headings.items()))
    return table


def _cell(figure: Figure, scale: float, same: bool) -> str:
    if math.isnan(figure.mean):
        return "-"
    text = number(figure.mean, scale)
    if same:
        return f"{text} ="
    decimals = digits(figure.mean / scale, scale)
    return text if math.isnan(figure.half) else f"{text} ± {figure.half / scale:.{decimals}f}"


def as_data(results: Results) -> dict[str, Any]:
    """The summary as data for other programs, in the units of the results' tables.

    Undefined values are null.
    """
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
