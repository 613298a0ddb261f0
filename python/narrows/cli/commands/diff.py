"""`narrows diff`: its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.shared import Jobs, Json, Overrides, Seed, Seeds


def diff(
    base: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="Folder of results, its URL, or a folder with several of them. With --scenario: a git "
            "revision.",
            show_default=False,
        ),
    ],
    head: Annotated[
        str,
        typer.Argument(
            metavar="HEAD", help="Folder, URL or git revision to compare with BASE.", show_default=False
        ),
    ],
    scenario: Annotated[
        list[Path] | None,
        typer.Option(
            "--scenario",
            metavar="FILE",
            show_default=False,
            help="Scenario to run with the engines of the two git revisions, in a clone of Narrows. May be "
            "repeated.",
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            metavar="NAME",
            show_default=False,
            help="Measure to compare, with arguments if needed, e.g. rtt:statistic=p95 (default: the figures "
            "of the summary). narrows list measures prints all names. May be repeated.",
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            metavar="LEVEL",
            show_default=False,
            help="Level of the intervals. A figure has changed if its adjusted p-value is below 1 - LEVEL "
            "(default: 0.95).",
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also exit with 1 if runs are not bit-for-bit equal.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Also print the figures without a change.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", show_default=False, help="Write a page with a figure (default: no page)."
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            metavar="FILE",
            show_default=False,
            help="Write the changes as a Markdown table (default: no file).",
        ),
    ] = None,
    as_json: Json = False,
    seed: Seed = None,
    seeds: Seeds = None,
    override: Overrides = None,
    jobs: Jobs = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="FOLDER",
            show_default=False,
            help="With --scenario: keep the results of both revisions here (default: not kept).",
        ),
    ] = None,
) -> None:
    """Find what changed between two results, with confidence intervals.

    Runs are paired by point of the sweep and seed. Exit codes: 0 if no change was found, 1 if a change was
    found or a figure that differs cannot be judged, 2 if the sides cannot be compared.
    """
    from narrows.cli import diff as work  # noqa: PLC0415

    work.diff(
        base,
        head,
        work.Request(scenario or [], override or [], seed, seeds, jobs, keep),
        measure or [],
        confidence,
        work.Outputs(as_json, every, markdown, out),
        exact=exact,
    )
