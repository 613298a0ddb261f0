"""`narrows doctor`: its parameters."""

from __future__ import annotations

from narrows.cli.commands.shared import Json


def doctor(as_json: Json = False) -> None:
    """Check what this machine supports.

    The checks cover the simulator, the kernel and vm backends, and deployment. Exit codes: 0 if the
    simulator works, else 1.
    """
    from narrows.cli import doctor as work  # noqa: PLC0415

    work.doctor(as_json=as_json)
