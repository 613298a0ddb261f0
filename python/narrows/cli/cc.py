"""The work of `narrows cc`: loads congestion controllers for all programs of this machine."""

from __future__ import annotations

from narrows.backends.kernel.cc import call


def load(names: list[str], *, exit_125: bool, down_needs_loss: bool) -> None:
    """Load and register congestion controllers."""
    options = ["--exit-125"] * exit_125 + ["--down-needs-loss"] * down_needs_loss
    print(call("load", *options, "--", *names, done_so_far=_print), end="")


def list_(*, as_json: bool) -> None:
    """Print the congestion controllers and their state."""
    print(call("list", *["--json"] * as_json), end="")


def unload(names: list[str]) -> None:
    """Unregister congestion controllers that no connection uses."""
    print(call("unload", "--", *names, done_so_far=_print), end="")


def _print(text: str) -> None:
    print(text, end="")
