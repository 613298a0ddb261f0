"""Checks the flows that the user's own programs generate, and makes their commands. No side effects."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TypeVar

from narrows.backends.kernel.agents import by_agent
from narrows.backends.kernel.layout import Endpoints, Layout
from narrows.backends.kernel.load import Call, check_names, log_name
from narrows.errors import ScenarioError, found
from narrows.plan import Plan, ProgramTransportPlan
from narrows.units import NANOS_PER_SEC

_End = TypeVar("_End")


def transports(plan: Plan) -> dict[int, ProgramTransportPlan]:
    """The programs of a plan, by the number of their flow."""
    return {
        number: flow["transport"]
        for number, flow in enumerate(plan["flows"])
        if flow["transport"]["kind"] == "program"
    }


def check(plan: Plan) -> None:
    """Check that the programs can carry their flows.

    Raises:
        ScenarioError: for the first program that cannot carry its flow.
    """
    check_names(plan)
    servers: dict[tuple[int, str, int], int] = {}
    for number, transport in transports(plan).items():
        flow, key = plan["flows"][number], f"flows.{number}"
        if name := by_agent(flow):
            raise ScenarioError(
                f"found {name} with a program, expected kernel.tool = 'iperf3' for iperf3 with {name}, "
                "or another algorithm",
                f"{key}.cc",
            )
        for role, words in (("server", transport["server"]), ("client", transport["client"])):
            if place(words[0], transport) is None:
                raise ScenarioError(
                    f"found {found(words[0])}, expected a program that is installed, "
                    "or './NAME' for one of the files",
                    f"{key}.program.{role}",
                )
        at = _ends(transport, flow["from"], flow["to"])[1]
        other = servers.setdefault((at, transport["protocol"], transport["port"]), number)
        if other != number:
            raise ScenarioError(
                f"found port {transport['port']}, which flows.{other} has at the same node, "
                "expected another port",
                f"{key}.program.port",
            )


def place(word: str, transport: ProgramTransportPlan) -> Path | None:
    """The file of a program.

    A relative path with a slash names one of the plan's files. A word without a slash is looked up in PATH.
    An absolute path is used as it is.
    """
    path = Path(word)
    if "/" not in word or path.is_absolute():
        installed = shutil.which(word)
        return None if installed is None else Path(installed)
    for file in map(Path, transport.get("files", [])):
        if file.name == path.parts[0]:
            program = file.joinpath(*path.parts[1:])
            return program if program.is_file() and os.access(program, os.X_OK) else None
    return None


def calls(plan: Plan, layout: Layout) -> list[Call]:
    """The programs of all flows."""
    return [
        _call(plan, layout, number, layout.endpoints[layout.of_flow[number]], transport)
        for number, transport in transports(plan).items()
    ]


def _call(plan: Plan, layout: Layout, number: int, ends: Endpoints, transport: ProgramTransportPlan) -> Call:
    flow = plan["flows"][number]
    (client_in, _), (server_in, address) = _ends(
        transport,
        (layout.namespace(ends.source), ends.source_address),
        (layout.namespace(ends.to), ends.to_address),
    )
    stop = min(flow["stop"] or plan["duration"], plan["duration"])
    values = {
        "{server}": address,
        "{port}": str(transport["port"]),
        "{seconds}": f"{(stop - flow['start']) / NANOS_PER_SEC:g}",
    }
    name = log_name(flow["name"])
    return Call(
        number=number,
        name=flow["name"],
        start=flow["start"],
        stop=stop,
        client_in=client_in,
        server_in=server_in,
        server=_filled(transport["server"], values),
        client=_filled(transport["client"], values),
        port=transport["port"],
        protocol=transport["protocol"],
        kept={role: f"{name}-{role}.log" for role in ("server", "client")},
        files=transport.get("files", []),
    )


def _ends(transport: ProgramTransportPlan, source: _End, to: _End) -> tuple[_End, _End]:
    """The ends at which the client and the server run."""
    return (source, to) if transport.get("client_at", "from") == "from" else (to, source)


def _filled(words: list[str], values: dict[str, str]) -> list[str]:
    """Replace the placeholders in the words of a command. Other braces stay unchanged."""
    for placeholder, value in values.items():
        words = [word.replace(placeholder, value) for word in words]
    return words
