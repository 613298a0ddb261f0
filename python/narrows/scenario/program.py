"""The model of flows on real stacks for which unmodified programs exchange the data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from narrows.errors import Expected, ScenarioError, found
from narrows.parameters import Value
from narrows.plan import FlowEnd, ProgramTransportPlan, Protocol
from narrows.scenario.fields import Int, Table

FIRST_PORT = 20_000
"""Default port of the server of a plan's flow 0, on real stacks. The default for flow n is this port plus
n."""


def _words(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Expected(f"a command as a shell would split it ({str(error).lower()})") from None
    if not words:
        raise Expected("a program and its arguments")
    return command


Command = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_words)]
"""A command, split into words as a shell does. No shell runs it."""


class Program(Table):
    """Unmodified programs that carry a flow, on real stacks only (`--on kernel`, `--on vm`).

    Commands may contain `{server}` (the server's address), `{port}` and `{seconds}` (the time from the flow's
    start to its stop).
    """

    server: Command
    """Command of the server. The server starts before the run, and must listen at the port."""
    client: Command
    """Command of the client. The client starts at the flow's start, and gets SIGINT at the flow's stop."""
    port: Annotated[Int, Field(ge=1, le=65535)] | None = None
    """Port of the server (default: a port that no other flow uses). Commands can refer to it as `{port}`."""
    protocol: Protocol = "tcp"
    """Protocol of the port. QUIC uses `udp`."""
    client_at: FlowEnd = "from"
    """End of the flow at which the client runs. The goodput of a flow counts only data that go from `from` to
    `to`. A client that downloads must therefore be at `to`."""
    files: list[Annotated[str, Field(min_length=1, max_length=4096)]] = []
    """Files and folders, relative to the scenario file, that the programs find in their working folder."""

    @property
    def name(self) -> str:
        """The name of the client's program."""
        return default_name(self.client)


def default_name(client: str) -> str:
    """The default name of a flow: the name of the client's program."""
    return Path(shlex.split(client)[0]).name


def plan(
    program: Program, cc: str | dict[str, Value] | None, number: int, folder: Path, key: str
) -> ProgramTransportPlan:
    """The programs with all values that a run needs.

    Args:
        program: the programs.
        cc: the congestion controller of the sending host.
        number: the flow's number in the plan, which decides the default port.
        folder: the folder of the scenario file.
        key: the flow's key, for messages.

    Raises:
        ScenarioError: if a file does not exist, or if two files have the same name.
    """
    return {
        "kind": "program",
        "server": shlex.split(program.server),
        "client": shlex.split(program.client),
        "protocol": program.protocol,
        "port": FIRST_PORT + number if program.port is None else program.port,
        "client_at": program.client_at,
        "cc": cc,
        "files": _paths(program, folder, f"{key}.program.files"),
    }


def _paths(program: Program, folder: Path, key: str) -> list[str]:
    result: dict[str, str] = {}
    for number, name in enumerate(program.files):
        path = (folder / name).resolve()
        if not (path.is_file() or path.is_dir()):
            raise ScenarioError(
                f"found {found(name)}, expected an existing file or folder", f"{key}.{number}"
            )
        if path.name in result:
            raise ScenarioError(f"found two files with the name {path.name}, expected different names", key)
        result[path.name] = str(path)
    return list(result.values())
