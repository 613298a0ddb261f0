"""`narrows compare`: its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.shared import Json


def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="Folder of results, or its URL.", show_default=False)
    ],
    b: Annotated[
        Path, typer.Argument(metavar="B", help="Another folder of results, or its URL.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Compare two folders of results.

    For example, compare a simulation with the same scenario on real stacks. Results agree if both have
    the same flows and links, and all judged figures are within their tolerances. Exit codes: 0 if the results
    agree, 1 if they do not agree or nothing could be judged, 2 if the folders cannot be compared.
    """
    from narrows.cli import compare as work  # noqa: PLC0415

    work.compare(a, b, as_json=as_json)
