"""The page's server: uvicorn with limits on the number and the idle time of connections.

uvicorn itself limits only requests, so a connection without a request would stay open and occupy a file
descriptor.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from narrows.controller.limits import Gate, Warnings

WARNINGS = Warnings(logging.getLogger("narrows.controller.http"))


@dataclass(frozen=True)
class Bounds:
    """Limits on all connections of the page.

    Args:
        most: largest number of connections.
        most_each: largest number of connections from one address.
        request_s: time within which a request must arrive after the connection was opened or the last answer
            was sent.
        read_s: time after which a client that reads nothing is disconnected.
    """

    most: int = 256
    most_each: int = 64
    request_s: float = 10.0
    read_s: float = 30.0


class Connection(socket.socket):
    """A connection that tells the gate when it is closed, so that the gate no longer counts it."""

    gate: Gate | None = None
    address = ""

    def close(self) -> None:
        """Closes the connection."""
        super().close()
        gate, self.gate = self.gate, None
        if gate is not None:
            gate.leave(self.address)


class ListeningSocket(socket.socket):
    """A listening socket that accepts only connections that its gate admits.

    The gate counts a connection as soon as it is accepted, before the handshake of TLS.
    """

    def __init__(self, address: tuple[str, int], bounds: Bounds) -> None:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        with socket.create_server(address, family=family) as opened:
            super().__init__(fileno=opened.detach())
        self._gate = Gate(bounds.most, bounds.most_each)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection, if it is admitted.

        Raises:
            BlockingIOError: no connection waits, or the connection was refused. After this error, the event
            loop handles other events before it accepts the next connection. A flood of connections therefore
            does not block other work.
        """
        peer, address = super().accept()
        if not self._gate.enter(address[0]):
            peer.close()
            WARNINGS.warn("page: too many connections from %s: refused", address[0])
            raise BlockingIOError
        connection = Connection(fileno=peer.detach())
        connection.gate, connection.address = self._gate, address[0]
        return connection, address


def _protocol(bounds: Bounds) -> type[H11Protocol]:
    class Protocol(H11Protocol):
        """uvicorn's HTTP protocol, with deadlines for the arrival of requests."""

        _request: asyncio.TimerHandle | None = None
        _read: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._await_request()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look_for_request()

        def on_response_complete(self) -> None:
            self._await_request()
            super().on_response_complete()
            # The next request may have arrived before this answer was complete.
            self._look_for_request()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._read = self.loop.call_later(bounds.read_s, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            _cancel(self._read)

        def connection_lost(self, exc: Exception | None) -> None:
            _cancel(self._request)
            _cancel(self._read)
            super().connection_lost(exc)

        def _await_request(self) -> None:
            _cancel(self._request)
            self._request = self.loop.call_later(bounds.request_s, self.transport.abort)

        def _look_for_request(self) -> None:
            cycle = self.cycle
            if cycle is not None and not cycle.more_body and not cycle.response_complete:
                _cancel(self._request)

    return Protocol


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def server(
    app: ASGIApp, key: Path | None = None, certificate: Path | None = None, bounds: Bounds | None = None
) -> uvicorn.Server:
    """A server for the application. Pass it a `ListeningSocket`.

    Args:
        app: the application.
        key: file of the private key (None: no TLS).
        certificate: file of the certificate.
        bounds: limits on connections.
    """
    return uvicorn.Server(
        uvicorn.Config(
            app,
            # Use asyncio's event loop. Other event loops do not call the socket's own `accept`.
            loop="asyncio",
            http=_protocol(bounds or Bounds()),
            ws="none",
            lifespan="off",  # the application has no startup or shutdown
            ssl_keyfile=key,
            ssl_certfile=certificate,
            log_level="warning",
            access_log=False,
        )
    )
