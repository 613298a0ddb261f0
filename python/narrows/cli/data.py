"""`narrows data`: list the data sets of recorded traces, and download them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrows.cli.commands.shared import say
from narrows.cli.commands.values import beginning
from narrows.data.catalogue import DATA_SETS, DataSet
from narrows.data.folder import VARIABLE, State, check_folder, data_folder, state

if TYPE_CHECKING:
    from rich.console import Console

data = typer.Typer(
    help="List the data sets of recorded traces, and download them.",
    add_completion=False,
    rich_markup_mode=None,
)

Folder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FOLDER",
        help=f"Data folder (default: {VARIABLE} if set, else the user data folder).",
        show_default=False,
    ),
]


@data.callback(invoke_without_command=True)
def _list(
    context: typer.Context,
    folder: Folder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the data sets of recorded traces: state, size, licence, source and citation."""
    context.obj = folder
    if context.invoked_subcommand is not None:
        return
    where = data_folder(folder)
    check_folder(where)
    known = [_facts(one, where) for one in DATA_SETS]
    if as_json:
        print(json.dumps({"folder": str(where), "data_sets": known}, indent=2))
        return
    from narrows.cli.console import plain  # noqa: PLC0415 (needs rich)

    print(f"data folder: {where}{'' if where.is_dir() else ' (does not exist)'}")
    console = plain()
    for facts in known:
        _show(facts, console)


@data.command()
def fetch(
    context: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            autocompletion=beginning(lambda: [one.name for one in DATA_SETS]),
            help="Data sets, by name.",
        ),
    ],
    folder: Folder = None,
) -> None:
    """Download data sets into the data folder, and verify their SHA-256."""
    from narrows.data import fetch as fetching  # noqa: PLC0415 (tempfile, zipfile: only for this command)

    where = data_folder(folder or context.obj)
    wanted = [fetching.find(name) for name in names]
    for one in wanted:
        fetching.check(one, where)
    for one in wanted:
        written = fetching.fetch(one, where, say)
        for path in written:
            print(path)
        if not written:
            print(f"{one.name}: all files are present in {where}")


def _facts(one: DataSet, folder: Path) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "licence": one.licence,
        "source": one.source,
        "citation": one.citation,
        "bytes": sum(file.size for file in one.files),
        "files": [
            {"path": file.path, "bytes": file.size, "sha256": file.sha256, "state": state(file, folder)}
            for file in one.files
        ],
        "fetchable": one.is_fetchable,
        "by_hand": one.by_hand,
    }


def _show(facts: dict[str, Any], console: Console) -> None:
    from narrows.cli.table import Table  # noqa: PLC0415 (needs rich)

    console.print(f"\n{facts['name']}: {facts['title']}")
    states = [file["state"] for file in facts["files"]]
    size = f", {_size(facts['bytes'])}" if facts["bytes"] else ""
    console.print(f"  files:    {states.count(State.PRESENT)} of {len(states)} present{size}")
    for file in facts["files"]:
        console.print(f"    {file['path']}: {file['state']}")
    table = Table()
    table.add_name()
    table.add_text()
    table.add_row("  licence:", facts["licence"])
    table.add_row("  source:", facts["source"])
    table.add_row("  cite:", facts["citation"])
    if State.PRESENT not in states or State.MISSING in states:
        command = f"narrows data fetch {facts['name']}" if facts["fetchable"] else facts["by_hand"]
        table.add_row("  get it:", command)
    table.print(console)


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
