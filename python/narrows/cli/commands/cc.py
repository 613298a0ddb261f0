"""`narrows cc`: its parameters."""

from __future__ import annotations

from typing import Annotated

import typer

from narrows.cli.commands.values import KERNEL_CONTROLLERS, beginning
from narrows.congestion import EBPF

cc = typer.Typer(
    help="Load congestion controllers into this kernel.\n\nBBR-A, -B, -C, BBQ, BBR v2, v3 and v1 are then "
    "available to any program, e.g. iperf3 -C narrows_bbr_c.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...",
        autocompletion=beginning(lambda: KERNEL_CONTROLLERS),
        show_default=False,
        help=f"{', '.join(EBPF)} or all.",
    ),
]


@cc.command()
def load(
    names: Names,
    exit_125: Annotated[
        bool, typer.Option("--exit-125", help="bbr-a, -b, -c: probe until 1.25 BDP is in flight.")
    ] = False,
    down_needs_loss: Annotated[
        bool,
        typer.Option("--down-needs-loss", help="bbr-a, -b, -c: drain only after a probe with packet loss."),
    ] = False,
) -> None:
    """Load and register congestion controllers. They stay until they are unloaded or the machine restarts."""
    from narrows.cli import cc as work  # noqa: PLC0415

    work.load(names, exit_125=exit_125, down_needs_loss=down_needs_loss)


@cc.command(name="list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the congestion controllers, whether each is loaded, and its number of connections."""
    from narrows.cli import cc as work  # noqa: PLC0415

    work.list_(as_json=as_json)


@cc.command()
def unload(names: Names) -> None:
    """Unregister congestion controllers that no connection uses."""
    from narrows.cli import cc as work  # noqa: PLC0415

    work.unload(names)
