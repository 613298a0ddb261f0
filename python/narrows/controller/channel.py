"""The controller's end of the agents' channel: its sockets and threads. `wire.Session` handles the lines."""

from __future__ import annotations

import contextlib
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable

from narrows._native import ALIVE
from narrows.controller import wire
from narrows.controller.limits import Warnings
from narrows.controller.messages import AgentDown, AgentMessage, AgentUp, Event
from narrows.controller.pair import TELL_S, Pair
from narrows.controller.tls import Keys, TlsSocket, drain

LOG = logging.getLogger("narrows.controller.channel")
WARNINGS = Warnings(LOG)

CONNECTIONS_MAX = 256
GREETING_S = 5.0
"""An agent is disconnected if it has not finished the handshake and sent its greeting within this time."""
SILENT_S = 30.0
"""An agent that is silent for this time is disconnected. Agents send their flows every second."""
_ACCEPT_AGAIN_S = 1.0
_LATE = f"no greeting within {GREETING_S:.0f} s"
ALIVE_S = 1.0
"""Maximum time between two lines that are sent to an agent."""
WAITING_MAX = 4096
"""Maximum number of message bodies that are queued for a slow agent. If more would be queued, the connection
is closed. After that, the agent connects again, and both sides begin with an empty state."""


class _Connection:
    """The connection of an agent. One thread reads from the connection, and another thread writes to it."""

    def __init__(self, server: Channel, peer: socket.socket, address: str) -> None:
        self.server, self.address = server, address
        self.socket: socket.socket | TlsSocket = peer
        self.session = wire.Session(server.name, None, server.other)
        self.waiting: queue.Queue[str | None] = queue.Queue(WAITING_MAX)
        self._accepted = False

    def run(self) -> None:
        """Serves the connection until it ends."""
        reason, is_expected = "it closed the connection", False
        # The deadline applies to the handshake and the greeting together. A timeout of the socket would start
        # again with each byte.
        deadline = threading.Timer(GREETING_S, self._late)
        deadline.daemon = True
        deadline.start()
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._handshake()
            self.socket.settimeout(SILENT_S)
            while data := self.socket.recv(1 << 16):
                bodies = self.session.receive(data)
                if not self._accepted and self.session.agent:
                    self._accept()
                    deadline.cancel()
                if not self.session.is_controller:  # the other controller's bodies only show that it is alive
                    for body in bodies:
                        self.server.on_event(AgentMessage(self.session.agent, body))
        except wire.Refused as refused:
            reason, is_expected = f"refused: {refused}", isinstance(refused, wire.StandbyRefusal)
            if not self._accepted:
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
            if not self.server.leave(self, reason) and not is_expected and not self.session.is_controller:
                WARNINGS.warn("agent at %s: %s", self.address, reason)

    def _accept(self) -> None:
        """Answers a valid greeting.

        Raises:
            Refused: this controller is a standby, and the peer is an agent.
        """
        pair = self.server.pair
        if pair is not None and not pair.is_active and not self.session.is_controller:
            raise wire.StandbyRefusal(f"it is the standby of {pair.other}")
        self._accepted = True
        self.socket.sendall(self.session.answer())
        if self.session.is_controller:
            threading.Thread(target=self._tell, name="channel-tell", daemon=True).start()
            return
        self.server.join(self)
        threading.Thread(target=self._write, name="channel-write", daemon=True).start()

    def _tell(self) -> None:
        """Sends the state of this controller to the other controller until the connection ends."""
        pair = self.server.pair
        with contextlib.suppress(OSError):
            while pair is not None:
                self.socket.sendall(wire.line(pair.state()))
                time.sleep(TELL_S)

    def _handshake(self) -> None:
        if self.server.keys is None or not isinstance(self.socket, socket.socket):
            return
        self.socket, name = self.server.keys.accept(self.socket, time.monotonic() + GREETING_S)
        self.session = wire.Session(self.server.name, name, self.server.other)

    def send(self, body: str) -> None:
        """Queues a message body. Never blocks."""
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
        if not self._accepted:
            self.close()

    def _write(self) -> None:
        try:
            while (body := self._next()) is not None:
                self.socket.sendall(wire.line(body))
        except OSError:
            self.close()

    def _next(self) -> str | None:
        """The next message body (None: the connection ends).

        If there is no body for `ALIVE_S`, the result is a line that shows that the controller is alive.
        """
        try:
            return self.waiting.get(timeout=ALIVE_S)
        except queue.Empty:
            return ALIVE


class Channel:
    """Listens for agents.

    Args:
        address: host and port; with port 0, the system chooses a free port (see the attribute `port`).
        keys: files of the keys (None: no keys). The configuration allows None only on loopback.
        name: name of the controller.
        on_event: called with `AgentUp`, `AgentMessage` and `AgentDown`, from many threads.
        pair: this controller and its standby (None: no standby). A standby refuses agents.
    """

    def __init__(
        self,
        address: tuple[str, int],
        keys: Keys | None,
        name: str,
        on_event: Callable[[Event], None],
        pair: Pair | None = None,
    ) -> None:
        self.keys, self.name, self.on_event, self.pair = keys, name, on_event, pair
        self.other = None if pair is None else pair.other
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.create_server(address, family=family)
        self.port: int = self._socket.getsockname()[1]
        self._lock = threading.Lock()
        self._connections: set[_Connection] = set()
        self._known: dict[str, _Connection] = {}
        """Connections of accepted agents, by name."""
        self._slots = threading.BoundedSemaphore(CONNECTIONS_MAX)
        threading.Thread(target=self._accept, name="channel", daemon=True).start()

    def send(self, agent: str, body: str) -> None:
        """Queues a message body for an agent, unless the agent has disconnected."""
        with self._lock:
            connection = self._known.get(agent)
        if connection is not None:
            connection.send(body)

    def close(self) -> None:
        """Closes the channel and all connections."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.close()

    def join(self, connection: _Connection) -> None:
        """Adds the connection of an accepted agent.

        If the agent has an older connection, that connection is closed: an agent connects again only if its
        old connection is dead.
        """
        with self._lock:
            before = self._known.get(connection.session.agent)
            self._known[connection.session.agent] = connection
            self.on_event(AgentUp(connection.session.agent, connection.address))
        if before is not None:
            before.close()

    def leave(self, connection: _Connection, reason: str) -> bool:
        """Removes a connection that has ended.

        Returns whether this connection was the agent's current one.
        """
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
                # The process has no free file descriptors, or the peer has disconnected. Because agents try
                # again, the channel must accept again.
                WARNINGS.warn("agents cannot connect: %s", error.strerror)
                time.sleep(_ACCEPT_AGAIN_S)
                continue
            if not self._slots.acquire(blocking=False):
                peer.close()
                continue
            connection = _Connection(self, peer, f"{address[0]}:{address[1]}")

            def serve(connection: _Connection = connection) -> None:
                with self._lock:
                    self._connections.add(connection)
                try:
                    connection.run()
                finally:
                    with self._lock:
                        self._connections.discard(connection)
                    self._slots.release()

            try:
                threading.Thread(target=serve, name="channel-read", daemon=True).start()
            except RuntimeError as error:
                peer.close()
                self._slots.release()
                WARNINGS.warn("agents cannot connect: %s", error)
                time.sleep(_ACCEPT_AGAIN_S)
