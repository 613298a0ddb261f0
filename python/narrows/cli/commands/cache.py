"""`narrows cache`: its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

cache = typer.Typer(
    help="Show or prune the runs that --cache keeps.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Folder = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="FOLDER",
        show_default=False,
        help="The cache (default: the folder in NARROWS_CACHE).",
    ),
]


@cache.command()
def show(folder: Folder = None) -> None:
    """Print the number of runs in the cache, their size, and when they were used."""
    from narrows.cli import cache as work  # noqa: PLC0415

    work.show(folder)


@cache.command()
def prune(
    folder: Folder = None,
    most: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            show_default=False,
            help="Keep the most recently used runs up to this total size, e.g. 5GB (default: no limit).",
        ),
    ] = None,
    unused: Annotated[
        str | None,
        typer.Option(
            metavar="DAYS",
            show_default=False,
            help="Remove runs that were not used for this number of days (default: no limit).",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all runs.")] = False,
) -> None:
    """Remove runs from the cache. Sweeps may use the cache at the same time."""
    from narrows.cli import cache as work  # noqa: PLC0415

    work.prune(folder, most, unused, everything=everything)
