"""`narrows report`: its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.shared import ResultsFolder


def report(
    results: ResultsFolder,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", show_default=False, help="Page (default: RESULTS/report.html)."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            help="Also write the figures to this folder, as SVG, PDF and PNG (default: no files).",
        ),
    ] = None,
) -> None:
    """Write one HTML page about a folder of results.

    The page shows rates, windows, RTTs and queues. It works offline.
    """
    from narrows.cli import report as work  # noqa: PLC0415

    work.report(results, out, figures)
