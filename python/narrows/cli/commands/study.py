"""`narrows study`: its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.shared import (
    LOCAL,
    ON_HELP,
    CacheFolder,
    Executor,
    Figures,
    Jobs,
    NoCache,
    On,
)
from narrows.cli.commands.values import beginning, studies


def study(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=beginning(studies),
            show_default=False,
            help="Study, e.g. brf, or a folder with one (default: list the studies).",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            help="Folder for tables and report (default: results/NAME; --on and --quick extend the name).",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds, shorter runs, fewer points.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", show_default=False, help="Experiment, e.g. E1 (default: all). May be repeated."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=1000,
            show_default=False,
            help="Seeds per point, also with --quick and on real stacks (default: the study's).",
        ),
    ] = None,
    jobs: Jobs = None,
    executor: Executor = LOCAL,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    on: Annotated[
        On,
        typer.Option(
            "--on",
            show_default=False,
            help=f"{ON_HELP}. kernel and vm run shorter experiments, and also simulate them (default: sim).",
        ),
    ] = On.SIM,
    reuse: Annotated[bool, typer.Option("--reuse", help="Keep the tables of an earlier call.")] = False,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="Run the paper's own experiments with iperf3 and ping instead (only for survey; needs "
            "--on kernel or vm).",
        ),
    ] = False,
    replace: Annotated[
        str | None,
        typer.Option(
            metavar="OLD=NEW",
            show_default=False,
            help="Run and judge another algorithm instead of one of the study's, e.g. bbr3=mine.py:Bbr "
            "(default: the study's algorithms).",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            help="Data folder of recorded traces, with --on sim only (default: NARROWS_DATA if set, else the "
            "user data folder; see narrows data).",
        ),
    ] = None,
    figures: Figures = True,
) -> None:
    """Run the experiments of a paper and judge its claims.

    The result is one HTML report.
    """
    from narrows.cli import options  # noqa: PLC0415
    from narrows.cli import study as work  # noqa: PLC0415

    work.study(
        name,
        out,
        only or [],
        seeds,
        jobs,
        executor,
        on,
        data,
        simulator=options.simulator(cache, no_cache=no_cache, on=on),
        quick=quick,
        reuse=reuse,
        figures=figures,
        as_published=as_published,
        replace=replace,
    )
