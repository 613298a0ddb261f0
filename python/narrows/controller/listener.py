"""The listening socket for switches.

Unlike os-ken's own listening socket, this socket has TLS, limits connections and checks messages.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import struct
import threading
import time
from typing import Any

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.controller import Datapath
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER
from os_ken.controller.ofp_handler import OFPHandler
from os_ken.lib import hub

from narrows.controller import screen
from narrows.controller.limits import Gate, Warnings
from narrows.controller.tls import TICK_S, TlsSocket

LOG = logging.getLogger("narrows.controller.openflow")
WARNINGS = Warnings(LOG)

HANDSHAKE_S = 10.0
"""Time limit for the TLS handshake and the description of the switch's ports. A switch that exceeds the limit
is disconnected."""
ECHO_TICKS, SILENT_TICKS = 3, 9
"""Numbers of consecutive waits without data. After `ECHO_TICKS` waits, a switch gets an echo request. After
`SILENT_TICKS` waits, it is disconnected. Waits are counted instead of seconds, because time also passes while
the controller's own process is stopped."""
_ACCEPT_AGAIN_S = 0.5
_READ_BYTES = 1 << 16
_BACKLOG = 128


class ScreenedDatapath(Datapath):
    """A switch's connection in os-ken that checks each message before os-ken parses it."""

    def __init__(self, peer: Any, address: Any, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._screen = screen.Screen()
        self._is_closed = False
        super().__init__(peer, address)

    def serve(self) -> None:
        """Serves the connection. When the connection has ended, ends all its threads."""
        sender = threading.Thread(target=self._send_loop, name="openflow-write", daemon=True)
        sender.start()
        try:
            self.send_msg(self.ofproto_parser.OFPHello(self))
            self._receive()
        except screen.Violation as violation:
            if isinstance(violation, screen.IncompatibleVersion):
                self.send(_incompatible(str(violation)), close_socket=True)
                sender.join()
            WARNINGS.warn("switch at %s: %s: disconnected", self.address[0], violation)
        except TimeoutError:
            WARNINGS.warn("switch at %s: %s: disconnected", self.address[0], self._lateness())
        except OSError as error:
            LOG.debug("switch at %s: %s", self.address[0], error)
        except Exception as error:
            # This exception is a bug in this code or in os-ken. Such a bug must not end the connections of
            # other switches.
            WARNINGS.warn("switch at %s: cannot handle a message: %r: disconnected", self.address[0], error)
        finally:
            self.close()
            self.set_state(DEAD_DISPATCHER)
            self.send(b"", close_socket=True)  # wakes the thread
            sender.join()
            self.is_active = False

    def close(self) -> None:
        """Ends the connection in both directions. Any thread can call this method.

        The connection's own thread sends the event about the connection's end. If an event handler sent this
        event, the handler could wait for ever for space in its own queue of events.
        """
        self._is_closed = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def send(self, buf: bytes, close_socket: bool = False) -> bool:
        """Queues bytes. Returns whether the connection still exists."""
        try:
            return bool(super().send(buf, close_socket))
        except AttributeError:  # another thread has just removed os-ken's sending queue
            return False

    def _receive(self) -> None:
        data, silent = bytearray(), 0
        while not self._is_closed:
            try:
                self.socket.settimeout(self._wait_s())
                read = self.socket.recv(_READ_BYTES)
            except TimeoutError:
                silent += 1
                self._wait_s()
                if silent >= SILENT_TICKS:
                    raise
                if silent == ECHO_TICKS:
                    self.send_msg(self.ofproto_parser.OFPEchoRequest(self))
                continue
            if not read:
                return
            silent = 0
            data += read
            self._take(data)

    def _wait_s(self) -> float:
        """The maximum time to wait for data, in seconds.

        Raises:
            TimeoutError: the time for the handshake is over.
        """
        if self.state == MAIN_DISPATCHER:
            return TICK_S
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return min(TICK_S, left_s)

    def _lateness(self) -> str:
        return "silent" if self.state == MAIN_DISPATCHER else f"no handshake within {HANDSHAKE_S:.0f} s"

    def _take(self, data: bytearray) -> None:
        """Handles the complete messages at the start of `data`, and removes them from `data`."""
        while len(data) >= screen.HEADER_BYTES and not self._is_closed:
            length = self._screen.length(bytes(data[: screen.HEADER_BYTES]))
            if len(data) < length:
                return
            message = bytes(data[:length])
            del data[:length]
            match self._screen.check(message, self.state == MAIN_DISPATCHER):
                case screen.Fate.PARSE:
                    self._dispatch(message)
                case screen.Fate.REPORT:
                    kind, code = screen.error(message)
                    WARNINGS.warn("switch %016x: OpenFlow error %d/%d", self.id or 0, kind, code)

    def _dispatch(self, message: bytes) -> None:
        """Passes a message on to os-ken, in the same way as os-ken's `_recv_loop`."""
        version, kind, length, xid = struct.unpack_from("!BBHI", message)
        if kind == screen.HELLO:
            # Pass on the greeting without its elements, which have been checked. os-ken would read the
            # padding between two elements as another element.
            version, length, message = screen.VERSION, screen.HEADER_BYTES, _hello(xid)
        parsed = self.ofproto_parser.msg_parser(self, version, kind, length, xid, message)
        event = ofp_event.ofp_msg_to_ev(parsed)
        self.ofp_brick.send_event_to_observers(event, self.state)
        for handler in self.ofp_brick.get_handlers(event):
            if self.state in handler.callers[event.__class__].dispatchers:
                handler(event)


class Listener:
    """Accepts switches.

    Args:
        address: host and port; with port 0, the system chooses a free port (see the attribute `port`).
        gate: the limits on connections.
        tls: the context of TLS (None: plain TCP).

    Raises:
        OSError: the address is in use.
    """

    def __init__(self, address: tuple[str, int], gate: Gate, tls: ssl.SSLContext | None) -> None:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.create_server(address, family=family, backlog=_BACKLOG)
        self.port: int = self._socket.getsockname()[1]
        self._gate, self._tls = gate, tls

    def serve(self) -> None:
        """Accepts switches for ever."""
        while True:
            try:
                peer, address = self._socket.accept()
            except OSError as error:
                # The process has no free descriptors, or the peer has disconnected. Because switches try
                # again, the listener must accept again.
                WARNINGS.warn("switches cannot connect: %s", error.strerror)
                time.sleep(_ACCEPT_AGAIN_S)
                continue
            if not self._gate.enter(address[0]):
                peer.close()
                WARNINGS.warn("switch at %s: too many connections: refused", address[0])
                continue
            thread = threading.Thread(
                target=self._connection, args=(peer, address), name="openflow-read", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:
                peer.close()
                self._gate.leave(address[0])
                WARNINGS.warn("switches cannot connect: %s", error)
                time.sleep(_ACCEPT_AGAIN_S)

    def _connection(self, peer: socket.socket, address: Any) -> None:
        deadline_s = time.monotonic() + HANDSHAKE_S
        connection: Any = peer
        try:
            if self._tls is not None:
                connection = TlsSocket(peer, self._tls, deadline_s)
            ScreenedDatapath(connection, address, deadline_s).serve()
        except OSError as error:  # TLS's errors are OSErrors
            WARNINGS.warn("switch at %s: %s: disconnected", address[0], error)
        except RuntimeError as error:
            WARNINGS.warn("switches cannot connect: %s", error)
        finally:
            connection.close()
            self._gate.leave(address[0])


class Handler(OFPHandler):
    """os-ken's handler of handshakes, which uses the listener of this module instead of os-ken's.

    Set `listener` before the handler starts.
    """

    listener: Listener

    def start(self) -> Any:
        """Starts the threads of the handler and of the listener."""
        OSKenApp.start(self)
        return hub.spawn(self.listener.serve)


def _hello(xid: int) -> bytes:
    return struct.pack("!BBHI", screen.VERSION, screen.HELLO, screen.HEADER_BYTES, xid)


def _incompatible(text: str) -> bytes:
    """The OpenFlow error HELLO_FAILED with the code INCOMPATIBLE."""
    data = text.encode("ascii")
    return struct.pack("!BBHIHH", screen.VERSION, screen.ERROR, 12 + len(data), 0, 0, 0) + data
