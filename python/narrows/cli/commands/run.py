"""`narrows run`: its parameters."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.shared import (
    LOCAL,
    Backend,
    CacheFolder,
    Executor,
    Formats,
    Jobs,
    Json,
    NoCache,
    On,
    Overrides,
    ScenarioFile,
    Seed,
    Seeds,
)


def run(
    scenario: ScenarioFile,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PLACE",
            show_default=False,
            help="Folder for the tables, or URL for a dataset, e.g. s3://bucket/folder (default: "
            "results/NAME). --on, --set and --seed extend the name, "
            "e.g. results/my-kernel or results/my-topology.rate=20mbit. If the name is long, or a value is a "
            "list or table, the folder is results/NAME-set-HASH.",
        ),
    ] = None,
    seed: Seed = None,
    seeds: Seeds = None,
    override: Overrides = None,
    jobs: Jobs = None,
    executor: Executor = LOCAL,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    on: Backend = On.SIM,
    no_sim: Annotated[
        bool, typer.Option("--no-sim", help="With --on kernel or vm: skip the simulation for comparison.")
    ] = False,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Keep the finished runs of an interrupted call.")
    ] = False,
    as_json: Json = False,
    formats: Formats = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            show_default=False,
            help="Run only the I-th of N parts of the runs, e.g. 2/8 (default: all runs). narrows merge then "
            "merges the results.",
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit",
            metavar="FILE",
            show_default=False,
            help="Write the verdicts on expectations as JUnit XML (default: no file).",
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            metavar="FILE",
            show_default=False,
            help="Write the verdicts on expectations as a Markdown table (default: no file).",
        ),
    ] = None,
) -> None:
    """Run a scenario, write its tables and print a summary.

    When all runs are complete, their results replace earlier results in the same folder. Exit codes: 1 if
    one of the scenario's expectations ([[expect]]) is not met or cannot be judged, 2 if the scenario cannot
    run.
    """
    # Without this, numpy would start a thread per core for linear algebra, but a run uses no linear algebra.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from narrows.cli import options  # noqa: PLC0415
    from narrows.cli import run as work  # noqa: PLC0415

    work.run(
        scenario,
        out,
        seed,
        seeds,
        override or [],
        jobs,
        executor,
        on,
        simulator=options.simulator(cache, no_cache=no_cache, on=on),
        no_sim=no_sim,
        reuse=reuse,
        as_json=as_json,
        outputs=work.Outputs(options.formats(formats), options.shard(shard), junit, markdown),
    )
