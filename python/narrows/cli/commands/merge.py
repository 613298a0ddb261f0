"""`narrows merge`: its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.shared import Formats


def merge(
    parts: Annotated[
        list[Path],
        typer.Argument(metavar="PART...", help="Folders with parts of one sweep.", show_default=False),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", show_default=False, help="Folder for the merged results.")
    ],
    formats: Formats = None,
) -> None:
    """Merge the results of narrows run --shard.

    Together, the parts must have all runs of the sweep, each run once. The results of an interrupted sweep
    can also be a part. The result is the same as if one call had run the whole sweep.
    """
    from narrows.cli import merge as work  # noqa: PLC0415

    work.merge(parts, out, formats)
