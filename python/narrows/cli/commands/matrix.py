"""`narrows matrix`: its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.shared import LOCAL, CacheFolder, Executor, Figures, Jobs, NoCache
from narrows.cli.commands.values import beginning, congestion_controllers
from narrows.matrix.ask import Ask


def matrix(
    controllers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            autocompletion=beginning(congestion_controllers),
            show_default=False,
            help="Congestion controllers (default: all that work without support from the network, except "
            "presets). Without --mark, the default also omits controllers that react to ECN marks.",
        ),
    ] = None,
    everyone: Annotated[
        bool,
        typer.Option(
            "--all", help="All congestion controllers. Those that need support from the network get it."
        ),
    ] = False,
    rate: Annotated[
        str,
        typer.Option(
            metavar="RATE", show_default=False, help=f"L3 rate of the bottleneck (default: {Ask.rate})."
        ),
    ] = Ask.rate,
    rtt: Annotated[
        str,
        typer.Option(
            metavar="TIME", show_default=False, help=f"Two-way propagation delay (default: {Ask.rtt})."
        ),
    ] = Ask.rtt,
    buffer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LENGTH",
            show_default=False,
            help=f"Queue of the bottleneck (default: {', '.join(Ask.buffers)}). May be repeated.",
        ),
    ] = None,
    mark: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            show_default=False,
            help="Queue length above which packets are marked, e.g. 0.17bdp (default: no marks).",
        ),
    ] = None,
    loss: Annotated[
        str,
        typer.Option(
            metavar="PERCENT", show_default=False, help="Random loss after the queue (default: 0%)."
        ),
    ] = "0%",
    duration: Annotated[
        str,
        typer.Option(metavar="TIME", show_default=False, help=f"Length of a run (default: {Ask.duration})."),
    ] = Ask.duration,
    seeds: Annotated[
        int,
        typer.Option(metavar="N", min=1, show_default=False, help=f"Seeds per cell (default: {Ask.seeds})."),
    ] = Ask.seeds,
    seed: Annotated[
        int, typer.Option(metavar="N", show_default=False, help=f"First seed (default: {Ask.seed}).")
    ] = Ask.seed,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            help="Folder for tables, page and figures (default: results/matrix).",
        ),
    ] = Path("results/matrix"),
    jobs: Jobs = None,
    executor: Executor = LOCAL,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Keep the finished runs of an interrupted call.")
    ] = False,
    figures: Figures = True,
) -> None:
    """Run each pair of congestion controllers in one queue.

    The page has heat maps with the shares and the fairness of each pair.
    """
    from narrows.cli import matrix as work  # noqa: PLC0415
    from narrows.cli import options  # noqa: PLC0415

    work.matrix(
        controllers or [],
        everyone=everyone,
        rate=rate,
        rtt=rtt,
        buffer=buffer or Ask.buffers,
        mark=mark,
        loss=loss,
        duration=duration,
        seeds=seeds,
        seed=seed,
        out=out,
        jobs=jobs,
        executor=executor,
        simulator=options.simulator(cache, no_cache=no_cache),
        reuse=reuse,
        figures=figures,
    )
