"""`narrows export`: its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.shared import ResultsFolder
from narrows.cli.commands.values import EXPORTS, beginning


def export(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            autocompletion=beginning(lambda: EXPORTS),
            show_default=False,
            help="perfetto (flows and links as tracks in the Perfetto UI), flent (.flent.gz for flent-gui) "
            "or qlog (TCP flows).",
        ),
    ],
    results: ResultsFolder,
    run: Annotated[
        list[int] | None,
        typer.Option("--run", metavar="N", min=0, show_default=False, help="Only this run. May be repeated."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            show_default=False,
            help="Output folder (default: RESULTS/FORMAT).",
        ),
    ] = None,
) -> None:
    """Write results for Perfetto and flent, or as qlog.

    Writes one or more files per run.
    """
    from narrows.cli import export as work  # noqa: PLC0415

    work.export(form, results, run or (), out)
