"""`narrows list`: its parameters."""

from __future__ import annotations

from typing import Annotated

import typer

from narrows.cli.commands.shared import Json
from narrows.cli.commands.values import KINDS, beginning


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            autocompletion=beginning(lambda: KINDS),
            show_default=False,
            help=f"One of {', '.join(KINDS)} (default: all).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the names that a scenario may use.

    The kinds are congestion controllers, rate controllers, queues, topologies, networks and loss models.
    """
    from narrows.cli import listing as work  # noqa: PLC0415

    work.list_names(kind, as_json=as_json)
