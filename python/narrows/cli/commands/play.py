"""`narrows play`: its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def play(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCENARIO",
            show_default=False,
            help="Scenario file (TOML), or folder that narrows run wrote (default: an example).",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65535,
            show_default=False,
            help="Serve the page on this port of 127.0.0.1 until Ctrl-C; 0: any free port (default: open the "
            "page as a file).",
        ),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address instead of opening a browser.")
    ] = False,
) -> None:
    """Open a scenario in the playground, a page that simulates in the browser.

    The page needs no network. It cannot run scenarios with files, QUIC flows or controllers in Python.
    """
    from narrows.cli import play as work  # noqa: PLC0415

    work.play(scenario, port, browser=not no_browser)
