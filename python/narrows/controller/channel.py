"""The controller's end of the agents' channel: sockets and threads for `wire.Session`."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from narrows.controller import wire
from narrows.controller.messages import AgentDown, AgentMessage, AgentUp, Event
from narrows.controller.tls import Keys, TlsSocket, drain

LOG = logging.getLogger("narrows.controller.channel")

CONNECTIONS_MAX = 256
GREETING_S = 5.0
"""An agent must have finished the handshake and greeted within this time; otherwise it is disconnected."""
SILENT_S = 30.0
"""An agent that is silent for this time is disconnected. Agents send their flows every second."""
_ACCEPT_AGAIN_SECONDS = 1.0
_LATE = f"no greeting within {GREETING_S:.0f} s"
WAITING_MAX = 4096
"""Largest number of bodies that are queued for a slow agent. Beyond it the connection is closed, and the
agent reconnects with a clean state."""


class _Connection:
    """The connection of one agent, with one thread that reads and another that writes."""

    def __init__(self, server: Channel, peer: socket.socket, address: str) -> None:
        self.server, self.address = server, address
        self.socket: socket.socket | TlsSocket = peer
        self.session = wire.Session(server.name, None)
        self.waiting: queue.Queue[str | None] = queue.Queue(WAITING_MAX)

    def run(self) -> None:
        """Serves the connection until it ends."""
        reason = "it closed the connection"
        # The deadline is for the handshake and the whole greeting, not for each byte.
        deadline = threading.Timer(GREETING_S, self._late)
        deadline.daemon = True
        deadline.start()
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._handshake()
            self.socket.settimeout(SILENT_S)
            while data := self.socket.recv(1 << 16):
                known = self.session.agent
                bodies = self.session.receive(data)
                if not known and self.session.agent:
                    deadline.cancel()
                    self.socket.sendall(self.session.answer())
                    self.server.join(self)
                    threading.Thread(target=self._write, name="channel-write", daemon=True).start()
                for body in bodies:
                    self.server.on_event(AgentMessage(self.session.agent, body))
        except wire.Refused as refused:
            reason = f"refused: {refused}"
            if not self.session.agent:
                with contextlib.suppress(OSError):
                    self.socket.sendall(self.session.refusal(str(refused)))
                    self.socket.drain() if isinstance(self.socket, TlsSocket) else drain(self.socket)
        except TimeoutError:
            reason = f"silent for {SILENT_S:.0f} s" if self.session.agent else _LATE
        except OSError as error:
            reason = error.strerror or str(error)
        finally:
            deadline.cancel()
            self.close()
            if not self.server.leave(self, reason):
                LOG.warning("agent at %s: %s", self.address, reason)

    def _handshake(self) -> None:
        if self.server.keys is None or not isinstance(self.socket, socket.socket):
            return
        self.socket, name = self.server.keys.accept(self.socket, time.monotonic() + GREETING_S)
        self.session = wire.Session(self.server.name, name)

    def send(self, body: str) -> None:
        """Queues a body; never blocks."""
        try:
            self.waiting.put_nowait(body)
        except queue.Full:
            LOG.warning("agent %s is too slow: disconnected", self.session.agent)
            self.close()

    def close(self) -> None:
        """Ends both threads."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        with contextlib.suppress(queue.Full):
            self.waiting.put_nowait(None)

    def _late(self) -> None:
        if not self.session.agent:
            self.close()

    def _write(self) -> None:
        try:
            while (body := self.waiting.get()) is not None:
                self.socket.sendall(wire.line(body))
        except OSError:
            self.close()


class Channel:
    """Listens for agents.

    Args:
        address: host and port; port 0 takes a free one, see `port`.
        keys: files of the keys; None for loopback only, which the configuration checks.
        name: name of the controller.
        on_event: takes `AgentUp`, `AgentMessage` and `AgentDown`; called from many threads.
    """

    def __init__(
        self, address: tuple[str, int], keys: Keys | None, name: str, on_event: Callable[[Event], None]
    ) -> None:
        self.keys, self.name, self.on_event = keys, name, on_event
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.create_server(address, family=family)
        self.port: int = self._socket.getsockname()[1]
        self._lock = threading.Lock()
        self._known: dict[str, _Connection] = {}
        self._slots = threading.BoundedSemaphore(CONNECTIONS_MAX)
        threading.Thread(target=self._accept, name="channel", daemon=True).start()

    def send(self, agent: str, body: dict[str, Any]) -> None:
        """Queues a body for an agent, unless the agent has disconnected."""
        with self._lock:
            connection = self._known.get(agent)
        if connection is not None:
            connection.send(json.dumps(body))

    def close(self) -> None:
        """Closes the channel and all connections."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            connections = list(self._known.values())
        for connection in connections:
            connection.close()

    def join(self, connection: _Connection) -> None:
        """Adds an accepted agent. It replaces an older connection of the same name, which is dead."""
        with self._lock:
            before = self._known.get(connection.session.agent)
            self._known[connection.session.agent] = connection
            self.on_event(AgentUp(connection.session.agent, connection.address))
        if before is not None:
            before.close()

    def leave(self, connection: _Connection, reason: str) -> bool:
        """Removes a connection that has ended. Returns whether it was the agent's current connection."""
        with self._lock:
            if self._known.get(connection.session.agent) is not connection:
                return False
            del self._known[connection.session.agent]
            self.on_event(AgentDown(connection.session.agent, reason))
            return True

    def _accept(self) -> None:
        while True:
            try:
                peer, address = self._socket.accept()
            except OSError as error:
                if self._socket.fileno() < 0:
                    return
                # Out of file descriptors, or the peer has disconnected. Agents retry, so retry as well.
                LOG.warning("agents cannot connect: %s", error.strerror)
                time.sleep(_ACCEPT_AGAIN_SECONDS)
                continue
            if not self._slots.acquire(blocking=False):
                peer.close()
                continue
            connection = _Connection(self, peer, f"{address[0]}:{address[1]}")

            def serve(connection: _Connection = connection) -> None:
                try:
                    connection.run()
                finally:
                    self._slots.release()

            threading.Thread(target=serve, name="channel-read", daemon=True).start()
