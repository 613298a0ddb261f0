"""`narrows show`: its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.shared import Overrides, ScenarioFile


def show(
    scenario: ScenarioFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            show_default=False,
            help="Draw the network into this file: .svg, .png or .pdf (default: print tables).",
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="FOLDER",
            show_default=False,
            help="Folder or URL of the scenario's results: add the load of each link (default: no loads).",
        ),
    ] = None,
    override: Overrides = None,
) -> None:
    """Show a scenario's network and the paths of its flows.

    The tables include the RTT of each flow and the rate of its slowest link.
    """
    from narrows.cli import show as work  # noqa: PLC0415

    work.show(scenario, out, results, override or [])
