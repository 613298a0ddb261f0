"""The work of `narrows matrix`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.padding import Padding

from narrows import extras, sweep, units
from narrows.cli import options
from narrows.cli.commands.shared import INTERRUPTED, say
from narrows.cli.console import plain
from narrows.cli.options import checked_seed, parsed, positive, some_rate
from narrows.cli.progress import progress_of
from narrows.cli.run import say_stopped
from narrows.matrix.ask import Ask
from narrows.matrix.plan import choose, scenario
from narrows.results.datasets.urls import require_folder
from narrows.results.results import is_finished
from narrows.signals import terminable

if TYPE_CHECKING:
    from narrows.cache import Cached


def matrix(
    controllers: Sequence[str],
    *,
    everyone: bool,
    rate: str,
    rtt: str,
    buffer: Sequence[str],
    mark: str | None,
    loss: str,
    duration: str,
    seeds: int,
    seed: int,
    out: Path,
    jobs: int | None,
    executor: str,
    simulator: Cached | None,
    reuse: bool,
    figures: bool,
) -> None:
    """Run a matrix, write its page and print a summary."""
    require_folder(out, "--out", "a matrix also writes a page and figures")
    extras.require("report", "matrix")
    # Drawing libraries are slow to import.
    from narrows.matrix.cells import cells  # noqa: PLC0415
    from narrows.matrix.page import notes, summary, write  # noqa: PLC0415

    for option, value, parse in (
        ("--rate", rate, some_rate),
        ("--rtt", rtt, units.parse_duration),
        ("--duration", duration, positive),
        *(("--buffer", item, units.parse_limit) for item in buffer),
        *((("--mark", mark, units.parse_finite_limit),) if mark is not None else ()),
        ("--loss", loss, units.parse_loss),
    ):
        parsed(option, value, parse)
    known = [name for name, _ in sweep.simulator().congestion_controllers()]
    lengths: dict[str, str] = {}
    for item in buffer:
        lengths.setdefault(units.parse_limit(item), item)  # "1bdp" and "1.0bdp" are equal
    ask = Ask(
        choose(known, controllers, everyone=everyone, marks=mark is not None),
        rate,
        rtt,
        tuple(lengths.values()),
        duration,
        seeds,
        checked_seed(seed),
        units.parse_loss(loss),
        mark,
    )
    replaced = is_finished(out / "results") and not reuse
    maker = options.executor(executor, jobs)
    with progress_of("matrix", units.parse_duration(duration)) as progress, terminable():
        try:
            results = sweep.run(
                scenario(ask),
                out=out / "results",
                jobs=jobs,
                backend=simulator,
                formats=("parquet",),
                progress=progress,
                clock=progress.clock if maker is None else None,
                hosts=progress.hosts if maker is not None else None,
                executor=maker,
                resume=reuse,
            )
        except sweep.Interrupted as stopped:
            say(f"interrupted: {stopped}; to keep them, add --reuse")
            say_stopped(stopped)
            raise typer.Exit(INTERRUPTED) from None
    measured = cells(results, ask)
    page = write(measured, results, ask, out, files=figures, say=say)
    console = plain()
    for length in ask.buffers:
        console.print(f"{length}:")
        for line in summary(measured, length):
            console.print(Padding(line, (0, 0, 0, 2), expand=False))
    for note in notes(ask):
        console.print(f"note: {note}")
    print(f"tables in {out}, page in {page}{' (earlier results replaced)' if replaced else ''}")
    options.say_cached(simulator)
