"""The work of `narrows validate`."""

from __future__ import annotations

from os import cpu_count
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from narrows import extras, sweep
from narrows.backends import Backend
from narrows.cli import options
from narrows.cli.commands.shared import INTERRUPTED, On, say
from narrows.cli.commands.validate import DURATION, Real
from narrows.cli.console import plain
from narrows.cli.options import parsed, positive
from narrows.cli.run import real_stacks
from narrows.cli.table import Table
from narrows.errors import NarrowsError
from narrows.results.datasets.urls import require_folder
from narrows.signals import terminable
from narrows.validate import causes, grid, judge, ns3, page, runner, store
from narrows.validate import recording as recordings
from narrows.validate.grid import Cell
from narrows.validate.judge import percent
from narrows.validate.kept import Kept
from narrows.validate.measures import Side
from narrows.validate.recording import Recording
from narrows.validate.runner import Ask, Finding, Outcome
from narrows.version import release

if TYPE_CHECKING:
    from narrows.cache import Cached

_FEW = 60
"""Maximum number of flows that are printed one by one."""


def validate(
    *,
    on: Real,
    algorithms: str | None,
    cells: str,
    repetitions: int,
    seeds: int,
    duration: str | None,
    out: Path,
    kept: bool,
    recording: Path | None,
    record: Path | None,
    beside: bool,
    write: Path | None,
    figures: bool,
    jobs: int | None,
    executor: str,
    simulator: Cached | None,
) -> None:
    """Run a validation, write its tables and print errors and verdicts; exit with 1 if a cell failed."""
    require_folder(out, "--out", "a validation also writes pages and figures")
    if figures or write is not None:
        extras.require("report", "validate (or try --no-figures)" if write is None else "validate --write")
    chosen = tuple(grid.choose(word for word in cells.split(",") if word))
    for option, file in (("--write", write), ("--record", record)):
        if file is not None and (file.is_dir() or not file.parent.is_dir()):
            raise NarrowsError(f"{option}: found {str(file)!r}, expected a file in an existing folder")
    if duration is not None:
        parsed("--duration", duration, positive)
    source = _recording(on, recording, record)
    if source is not None:
        duration = duration or source.durations[0]
        if duration not in source.durations:
            expected = f"{' or '.join(source.durations)}, the duration of the runs in {source.path.name}"
            raise NarrowsError(f"--duration: found {duration!r}, expected {expected}")
    maker = options.executor(executor, jobs)
    model = simulator or sweep.simulator()
    real = None if kept or source is not None else real_stacks(On(on))
    names = _algorithms(algorithms, real, model)
    ask = Ask(out, names, chosen, repetitions, seeds, duration or DURATION)
    backend = on.value if source is None else source.backend
    try:
        with terminable():
            other = _ns3(ask, jobs) if beside else None
            outcome = runner.run(
                ask,
                real,
                backend,
                source=source,
                simulator=model,
                jobs=jobs,
                executor=maker,
                other=other,
                say=say,
            )
    except KeyboardInterrupt:
        say(f"interrupted; run the same command again to continue ({out})")
        raise typer.Exit(INTERRUPTED) from None
    if not outcome.findings:
        raise NarrowsError(f"{out if source is None else source.path}: {_nothing(outcome)}")
    if source is not None and outcome.absent:
        asked = len(runner.places(ask))
        there = f"{asked - len(outcome.absent)} of the {asked} requested pairs of algorithm and cell"
        say(f"{source.path.name} has {there}")
    if record is not None:
        print(f"{record}: {recordings.add(record, Kept(out, backend), runner.places(ask), backend)} rows")
    show(outcome, plain())
    store.write(outcome.findings, out)
    if figures:
        from narrows.validate import charts  # noqa: PLC0415 (drawing libraries are slow to import)

        charts.write(outcome.findings, out / "figures")
    if write is not None:
        _write(write, outcome, ns3.version() if beside else "")
    print(f"tables in {out}")
    options.say_cached(simulator)
    # Disturbed runs in a recording do not make this command fail.
    if outcome.failed and source is None:
        raise typer.Exit(1)


def _recording(on: Real, file: Path | None, record: Path | None) -> Recording | None:
    """The recording to compare with, or None without --on recorded.

    Raises:
        NarrowsError: if the file cannot be read or contradicts an option.
    """
    if on is not Real.RECORDED:
        if file is not None:
            raise NarrowsError(
                f"--recording: found --on {on.value}, expected --on recorded (--record writes a recording)"
            )
        return None
    if record is not None:
        raise NarrowsError("--record: found --on recorded, expected --on kernel or --on vm")
    return Recording(file or recordings.FILE)


def _nothing(outcome: Outcome) -> str:
    """The message that says why there is nothing to compare."""
    if not outcome.failed:
        return "found no finished run of these cells"
    name, why = next(iter(outcome.failed.items()))
    more = f" (and {len(outcome.failed) - 1} more)" if len(outcome.failed) > 1 else ""
    remedy = (
        "; --on vm is not disturbed by other work"
        if outcome.unsound and outcome.backend == Real.KERNEL
        else ""
    )
    return f"nothing to compare: {name}: {why}{more}{remedy}"


def _write(page_file: Path, outcome: Outcome, other: str) -> None:
    """Write the page, and its figures into img/ in the same folder."""
    from narrows.report import export  # noqa: PLC0415 (slow to import)
    from narrows.validate import charts  # noqa: PLC0415

    drawn = {"": charts.same_losses(outcome.findings), "-errors": charts.errors_map(outcome.findings)}
    pictures = {
        name: page.Picture(f"img/{page_file.stem}{name}.svg", figure.caption)
        for name, figure in drawn.items()
        if figure is not None
    }
    overview = pictures["-errors"]
    text = page.render(outcome, causes.read(), release(), other, pictures.get(""), overview)
    for name, picture in pictures.items():
        (page_file.parent / "img").mkdir(exist_ok=True)
        if (figure := drawn[name]) is not None:
            (page_file.parent / picture.file).write_text(export.svg(figure), encoding="utf-8")
    page_file.write_text(text, encoding="utf-8")


def _ns3(ask: Ask, jobs: int | None) -> runner.Other:
    """A function that runs cells in ns-3."""
    program = ns3.build(ask.out / "ns3")
    most = jobs or cpu_count() or 1

    def run(algorithm: str, cell: Cell, warmup_s: float) -> dict[str, Side]:
        seeds = min(ask.seeds, ns3.MOST_SEEDS)
        return ns3.sides(program, cell, algorithm, ask.duration, warmup_s, seeds, most)

    return run


def _algorithms(asked: str | None, real: Backend | None, simulator: Backend) -> tuple[str, ...]:
    """The names to validate.

    Raises:
        NarrowsError: if one side lacks one of these algorithms.
    """
    have = runner.available(real or simulator, simulator)
    if asked is None:
        return have
    names = tuple(dict.fromkeys(name for name in asked.split(",") if name))
    for name in names or ("",):
        if name not in have:
            raise NarrowsError(
                f"--algorithms: found {name!r}, expected an algorithm of Linux that both sides have: "
                f"{', '.join(have)}"
            )
    return names


def show(outcome: Outcome, console: Console) -> None:
    """Print errors, medians and verdicts."""
    if len(outcome.findings) <= _FEW:
        _flows(outcome.findings).print(console)
    _medians(outcome.findings).print(console)
    for verdict in judge.verdicts(outcome.findings):
        who = f" ({verdict.worst})" if verdict.worst else ""
        met = "met" if verdict.met else "missed"
        console.print(
            f"{verdict.words}{who}: {percent(verdict.found)}, target {percent(verdict.target)}: {met}"
        )
    for finding, figure, error in judge.large(outcome.findings):
        console.print(f"beyond {judge.BEYOND}: {finding.name} {figure} {percent(error, sign=True)}")
    for name, why in outcome.failed.items():
        console.print(f"failed: {name}: {why}")


def _table(names: tuple[str, ...], figures: tuple[str, ...]) -> Table:
    table = Table()
    for name in names:
        table.add_name(name)
    for heading in figures:
        table.add_figure(heading)
    for title in judge.TITLES.values():
        name, _, unit = title.partition(", ")
        table.add_figure(f"{name}\n{unit or '%'}")
    return table


def _flows(findings: list[Finding]) -> Table:
    """A table with a row per flow: its goodput and RTT on real stacks, and the simulator's errors."""
    table = _table(("algorithm", "cell", "flow"), ("real\nMbit/s", "real RTT\nms"))
    for finding in findings:
        errors = finding.errors
        figures = (finding.real.median("goodput_bps") / 1e6, finding.real.median("rtt_mean_s") * 1e3)
        table.add_row(
            finding.algorithm,
            finding.cell.name,
            finding.flow,
            *(f"{value:.1f}" for value in figures),
            *(percent(errors[figure], sign=figure != "window", unit="") for figure in judge.TITLES),
        )
    return table


def _medians(findings: list[Finding]) -> Table:
    """A table with a row per algorithm: the medians of the simulator's absolute errors."""
    table = _table(("median absolute error",), ("flows",))
    groups = {**judge.by_algorithm(findings), "all": findings}
    for name, rows in groups.items():
        table.add_row(
            name, str(len(rows)), *(percent(judge.size(rows, figure), unit="") for figure in judge.TITLES)
        )
    return table
