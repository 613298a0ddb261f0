"""`narrows report`: one HTML page of any folder of results."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from narrows import extras
from narrows.errors import OutputError
from narrows.results.results import REPORT, Results


def report(
    results: Annotated[Path, typer.Argument(help="A folder that `narrows run` wrote.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", help="The file; report.html in that folder if left out.")
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(help="A folder for the figures as SVG, PDF and PNG, too.", show_default=False),
    ] = None,
) -> None:
    """Draw rates, windows, RTTs and queues of a run as one HTML page that needs no network."""
    extras.require("report", "report")
    from narrows.report import single  # noqa: PLC0415 (charts take a second to load)

    found = Results.read(results)
    try:
        html = single(found, files=figures)
    except OSError as error:
        raise OutputError(f"{error.filename or figures}: {error.strerror}") from None
    target = out or results / REPORT
    partial = target.with_name(f".{target.name}.part")
    try:
        # The page appears whole or not at all.
        partial.write_text(html, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise OutputError(f"{target}: {error.strerror}") from None
    print(f"report in {target}" + (f", figures in {figures}" if figures is not None else ""))
