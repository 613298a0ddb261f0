"""`narrows vm`: its parameters."""

from __future__ import annotations

from typing import Annotated

import typer

vm = typer.Typer(
    help="Prepare the guest of --on vm.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@vm.command()
def prepare(
    again: Annotated[bool, typer.Option("--again", help="Download the kernel package again.")] = False,
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            metavar="PACKAGE",
            help="Debian package of the guest's kernel (default: the present one, or linux-image-amd64).",
        ),
    ] = None,
) -> None:
    """Download the guest's kernel, install missing packages (as root), boot the guest once and save it."""
    from narrows.cli import vm as work  # noqa: PLC0415

    work.prepare(again=again, kernel=kernel)


@vm.command()
def status() -> None:
    """Print the state of the guest. Exit codes: 0 if the guest is ready, else 1."""
    from narrows.cli import vm as work  # noqa: PLC0415

    work.status()
