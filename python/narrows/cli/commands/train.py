"""`narrows train`: its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.bandwidth_model import DEPTH_MAX, TREES_MAX, Options
from narrows.cli.commands.shared import Json


def train(
    records: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORDS...",
            help="Folders of results, or files of agents, with flow records.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="File of the model (JSON).", show_default=False),
    ],
    trees: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=TREES_MAX,
            show_default=False,
            help=f"Number of trees (default: {Options.trees}).",
        ),
    ] = Options.trees,
    depth: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=DEPTH_MAX,
            show_default=False,
            help=f"Levels of a tree (default: {Options.depth}).",
        ),
    ] = Options.depth,
    quantile: Annotated[
        float,
        typer.Option(
            metavar="Q",
            show_default=False,
            help=f"Share of flows that should use at most their prediction (default: {Options.quantile}).",
        ),
    ] = Options.quantile,
    as_json: Json = False,
) -> None:
    """Train BRF's bandwidth model from flow records.

    A switch or a scenario loads the file with `predictor = "FILE"` in the parameters of `brf`. The
    model is trained with all records. For a test, a second model is trained with four fifths of the records
    and tested with the other fifth. The command prints the result of this test.
    """
    from narrows.cli import train as work  # noqa: PLC0415

    work.train(records, out, Options(trees, depth, quantile), as_json=as_json)
