"""`narrows controller`: the SDN controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from narrows import extras


def _option(metavar: str, text: str, *names: str) -> Any:
    """An option without a default on the command line, because the configuration has the default."""
    return typer.Option(*names, metavar=metavar, help=text, show_default=False)


_CERTIFICATE = _option("FILE", "Certificate of the key above, PEM (default: none).")


def controller(
    config: Annotated[
        Path | None, _option("FILE", "Configuration (TOML) (default: none).", "--config", "-c")
    ] = None,
    openflow_host: Annotated[
        str | None, _option("ADDRESS", "Address for switches (default: 127.0.0.1).")
    ] = None,
    openflow_port: Annotated[int | None, _option("PORT", "Port for switches (default: 6653).")] = None,
    openflow_key: Annotated[
        Path | None,
        _option("FILE", "Private key for switches with TLS, PEM, mode 0600 (default: none, plain TCP)."),
    ] = None,
    openflow_certificate: Annotated[Path | None, _CERTIFICATE] = None,
    openflow_ca: Annotated[
        Path | None,
        _option("FILE", "Certificate of the authority of the switches, PEM (default: none)."),
    ] = None,
    agents_host: Annotated[str | None, _option("ADDRESS", "Address for agents (default: 127.0.0.1).")] = None,
    agents_port: Annotated[int | None, _option("PORT", "Port for agents (default: 6690).")] = None,
    agents_key: Annotated[
        Path | None,
        _option(
            "FILE",
            "Private key for agents, PEM, mode 0600, made by 'narrows-agent key'. "
            "Required unless agents are on loopback (default: none).",
        ),
    ] = None,
    agents_certificate: Annotated[Path | None, _CERTIFICATE] = None,
    agents_trusted: Annotated[
        Path | None, _option("FILE", "Certificates of the agents, PEM (default: none).")
    ] = None,
    secret: Annotated[Path | None, typer.Option(hidden=True)] = None,
    http_host: Annotated[
        str | None, _option("ADDRESS", "Address of the web page (default: 127.0.0.1).")
    ] = None,
    http_port: Annotated[int | None, _option("PORT", "Port of the web page (default: 6680).")] = None,
    http_token: Annotated[
        Path | None,
        _option(
            "FILE",
            "File with the token of the web page, mode 0600: 64 hexadecimal digits. "
            "Required unless the page is on loopback (default: none).",
        ),
    ] = None,
    http_key: Annotated[
        Path | None,
        _option("FILE", "Private key of the web page for TLS, PEM, mode 0600 (default: none, plain HTTP)."),
    ] = None,
    http_certificate: Annotated[Path | None, _CERTIFICATE] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check the configuration and the files that it names, and stop.")
    ] = False,
) -> None:
    """Run the SDN controller.

    The controller forwards packets, detects congestion and serves a web page. Options replace values of the
    configuration.
    """
    extras.require("controller", "controller")
    from narrows.controller import config as configuration  # noqa: PLC0415 (needs the packages checked above)

    given: dict[str, Any] = {
        "openflow.host": openflow_host,
        "openflow.port": openflow_port,
        "openflow.key": openflow_key,
        "openflow.certificate": openflow_certificate,
        "openflow.ca": openflow_ca,
        "agents.host": agents_host,
        "agents.port": agents_port,
        "agents.key": agents_key,
        "agents.certificate": agents_certificate,
        "agents.trusted": agents_trusted,
        "agents.secret": secret,  # refused with an error that names the options above
        "http.host": http_host,
        "http.port": http_port,
        "http.token": http_token,
        "http.key": http_key,
        "http.certificate": http_certificate,
    }
    loaded = configuration.load(config, {key: value for key, value in given.items() if value is not None})
    from narrows.controller.serve import check_files, serve  # noqa: PLC0415

    if check:
        check_files(loaded)
        print(f"{config or 'controller'}: valid")
        return
    serve(loaded)
