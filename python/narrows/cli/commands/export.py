"""`narrows export`: its parameters."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.shared import ResultsFolder


class Format(StrEnum):
    """Format of the files."""

    PERFETTO = "perfetto"
    FLENT = "flent"
    QLOG = "qlog"


def export(
    format_: Annotated[
        Format,
        typer.Argument(
            metavar="FORMAT",
            show_default=False,
            help="perfetto (flows and links as tracks in the Perfetto UI), flent (.flent.gz for flent-gui) "
            "or qlog (TCP flows, for qvis).",
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
    """Write results for Perfetto, flent or qvis.

    Writes one or more files per run.
    """
    from narrows.cli import export as work  # noqa: PLC0415

    work.export(format_.value, results, run or (), out)
