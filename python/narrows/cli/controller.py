"""`narrows controller`: the OpenFlow controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from narrows import extras


def controller(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Configuration (TOML).", show_default=False)
    ] = None,
    openflow_host: Annotated[
        str | None, typer.Option(help="Where switches connect.", show_default="127.0.0.1")
    ] = None,
    openflow_port: Annotated[int | None, typer.Option(show_default="6653")] = None,
    agents_host: Annotated[
        str | None, typer.Option(help="Where agents connect.", show_default="127.0.0.1")
    ] = None,
    agents_port: Annotated[int | None, typer.Option(show_default="6690")] = None,
    secret: Annotated[
        Path | None,
        typer.Option(
            help="File with the secret shared with the agents, 64 hexadecimal digits.", show_default=False
        ),
    ] = None,
    http_host: Annotated[
        str | None, typer.Option(help="Where the page is.", show_default="127.0.0.1")
    ] = None,
    http_port: Annotated[int | None, typer.Option(show_default="6680")] = None,
    check: Annotated[bool, typer.Option("--check", help="Check the configuration and stop.")] = False,
) -> None:
    """Run the OpenFlow controller: forwarding, congestion detection, a page."""
    extras.require("controller", "controller")
    from narrows.controller import config as configuration  # noqa: PLC0415 (needs what was just looked for)

    given: dict[str, Any] = {
        "openflow.host": openflow_host,
        "openflow.port": openflow_port,
        "agents.host": agents_host,
        "agents.port": agents_port,
        "agents.secret": secret,
        "http.host": http_host,
        "http.port": http_port,
    }
    loaded = configuration.load(config, {key: value for key, value in given.items() if value is not None})
    if check:
        print(f"{config or 'controller'}: in order")
        return
    from narrows.controller.serve import serve  # noqa: PLC0415

    serve(loaded)
