"""`narrows cc`: congestion controls of the papers for any program of this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from narrows.backends.kernel.cc import call

cc = typer.Typer(
    help="Load BBR-A, -B, -C and BBR v1 into this kernel, for any program (iperf3 -C narrows_bbr_c).",
    no_args_is_help=True,
)

NAMES = "bbr, bbr-a, bbr-b, bbr-c or all"


@cc.command()
def load(
    names: Annotated[list[str], typer.Argument(help=f"{NAMES}.", show_default=False)],
    exit_125: Annotated[
        bool, typer.Option("--exit-125", help="bbr-a, -b, -c: probe until 1.25 BDP is in flight.")
    ] = False,
    down_needs_loss: Annotated[
        bool,
        typer.Option("--down-needs-loss", help="bbr-a, -b, -c: drain only after a probe that lost packets."),
    ] = False,
) -> None:
    """Load and register congestion controls; they stay until they are unloaded or the machine restarts."""
    options = ["--exit-125"] * exit_125 + ["--down-needs-loss"] * down_needs_loss
    print(call("load", *options, "--", *names, done_so_far=_print), end="")


@cc.command(name="list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Say which there are, which are loaded, and how many connections have them."""
    print(call("list", *["--json"] * as_json), end="")


@cc.command()
def unload(
    names: Annotated[list[str], typer.Argument(help=f"{NAMES} that are loaded.", show_default=False)],
) -> None:
    """Unregister congestion controls that no connection has."""
    print(call("unload", "--", *names, done_so_far=_print), end="")


def _print(text: str) -> None:
    print(text, end="")
