"""Parameters that several commands share."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.commands.values import scenario_keys

INTERRUPTED = 130
"""Exit code after Ctrl-C, by the convention of shells: 128 + SIGINT."""


class On(StrEnum):
    """Backend of a run."""

    SIM = "sim"
    KERNEL = "kernel"
    VM = "vm"


ON_HELP = (
    "Backend: sim (simulator), kernel (TCP stacks of this machine, in real time, as root) or vm (TCP stacks "
    "of Debian's kernel in a guest, in virtual time; see narrows vm prepare)"
)

Backend = Annotated[On, typer.Option("--on", show_default=False, help=f"{ON_HELP} (default: sim).")]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=1024,
        show_default=False,
        help="Concurrent runs (default: one per core; with --executor slurm: 64).",
    ),
]
Executor = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="Where simulations run: local (threads), processes, ray (a Ray cluster, or a new one on this "
        "machine), ray:ADDRESS or slurm (default: local).",
    ),
]
LOCAL = "local"
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="FOLDER",
        show_default=False,
        help="Cache of simulated runs: read known runs from this folder, and add new ones (default: the "
        "folder in NARROWS_CACHE if set, else no cache; see narrows cache).",
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Do not use the cache in NARROWS_CACHE.")]
Figures = Annotated[
    bool,
    typer.Option(show_default=False, help="Also write the figures as SVG, PNG and PDF (default: figures)."),
]
Formats = Annotated[
    str | None,
    typer.Option(
        "--formats",
        metavar="NAMES",
        show_default=False,
        help="Formats of the tables, separated by commas: parquet, csv (default: both, but only parquet for "
        "tables of more than a million rows).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        autocompletion=scenario_keys,
        show_default=False,
        help="Replace a value of the scenario, e.g. topology.rate=20mbit. May be repeated.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(metavar="N", show_default=False, help="First seed (default: the scenario's)."),
]
Seeds = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, show_default=False, help="Seeds per point (default: the scenario's)."),
]
ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML).", show_default=False)
]
ResultsFolder = Annotated[
    Path, typer.Argument(metavar="RESULTS", help="Folder or URL that narrows run wrote.", show_default=False)
]


def say(line: str) -> None:
    """Print a line about the progress."""
    print(line, file=sys.stderr)
