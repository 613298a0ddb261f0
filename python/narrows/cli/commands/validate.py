"""`narrows validate`: its parameters."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.shared import LOCAL, CacheFolder, Executor, Jobs, NoCache
from narrows.cli.commands.values import CELL_SETS, comma_separated, congestion_controllers
from narrows.scenario.limits import MAX_SEEDS

DURATION = "30s"


class Real(StrEnum):
    """Source of the runs on real stacks."""

    KERNEL = "kernel"
    VM = "vm"
    RECORDED = "recorded"


def validate(
    on: Annotated[
        Real,
        typer.Option(
            "--on",
            show_default=False,
            help="Real stacks: kernel (this machine's, as root), vm (a guest's; see narrows vm prepare) or "
            "recorded (runs from a recording) (default: kernel).",
        ),
    ] = Real.KERNEL,
    algorithms: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            autocompletion=comma_separated(congestion_controllers),
            show_default=False,
            help="Comma-separated names (default: all that both backends support).",
        ),
    ] = None,
    cells: Annotated[
        str,
        typer.Option(
            metavar="CELLS",
            autocompletion=comma_separated(lambda: CELL_SETS),
            show_default=False,
            help="Comma-separated: full (108 cells), core (18), ci (3), names, or patterns such as "
            "'100mbit-*' (default: core).",
        ),
    ] = "core",
    repetitions: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=MAX_SEEDS, show_default=False, help="Real runs per cell (default: 3)."
        ),
    ] = 3,
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=MAX_SEEDS,
            show_default=False,
            help="Simulated runs per cell where simulator and real stacks lose different packets "
            "(default: 25).",
        ),
    ] = 25,
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            show_default=False,
            help=f"Length of a run (default: {DURATION}; with --on recorded, the recording's).",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            help="Folder for scenarios, tables and figures (default: results/validation).",
        ),
    ] = Path("results/validation"),
    kept: Annotated[
        bool, typer.Option("--kept", help="Compare the real runs of earlier calls, without new runs.")
    ] = False,
    recording: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Recording for --on recorded (default: the recording of Linux 6.1 in the package).",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Also add the real runs to this recording (default: none).",
        ),
    ] = None,
    beside: Annotated[
        bool, typer.Option("--ns3", help="Also run the cells in ns-3 (needs g++ and libns3-dev).")
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Also write the documentation's page to this file (default: none).",
        ),
    ] = None,
    figures: Annotated[
        bool, typer.Option(show_default=False, help="Also draw figures (default: figures).")
    ] = True,
    jobs: Jobs = None,
    executor: Executor = LOCAL,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
) -> None:
    """Measure the simulator's errors against Linux.

    Each algorithm runs in each cell of a grid of networks: in the simulator, and on real stacks as often as
    --repetitions says. An interrupted call continues where it stopped. Real runs that were disturbed by busy
    processors are left out. Exit codes: 0 if all cells were measured, 1 if a cell failed.
    """
    from narrows.cli import options  # noqa: PLC0415
    from narrows.cli import validate as work  # noqa: PLC0415

    work.validate(
        on=on,
        algorithms=algorithms,
        cells=cells,
        repetitions=repetitions,
        seeds=seeds,
        duration=duration,
        out=out,
        kept=kept,
        recording=recording,
        record=record,
        beside=beside,
        write=write,
        figures=figures,
        jobs=jobs,
        executor=executor,
        simulator=options.simulator(cache, no_cache=no_cache),
    )
