"""The socket for switches, instead of os-ken's: bounded, screened, with TLS."""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.controller import Datapath
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER
from os_ken.controller.ofp_handler import OFPHandler
from os_ken.lib import hub

from narrows.controller import screen
from narrows.controller.limits import Gate, Warnings

LOG = logging.getLogger("narrows.controller.openflow")
T = TypeVar("T")
WARNINGS = Warnings(LOG)

HANDSHAKE_S = 10.0
"""A switch that has not described its ports by then is disconnected; this includes the handshake of TLS."""
TICK_S = 5.0
"""Longest wait for data."""
ECHO_TICKS, SILENT_TICKS = 3, 9
"""After so many waits without data the switch is asked for a sign of life, and then disconnected. Waits are
counted and not seconds, because the controller itself can be stopped."""
_ACCEPT_AGAIN_S = 0.5
_READ_BYTES = 1 << 16
_BACKLOG = 128


class TlsSocket:
    """A TLS connection on which one thread reads while another writes.

    OpenSSL does not allow that on one connection. Here each call of OpenSSL holds a lock and does not block.
    """

    def __init__(self, raw: socket.socket, context: ssl.SSLContext, deadline_s: float) -> None:
        raw.setblocking(False)
        self._ssl = context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
        self._lock = threading.Lock()
        self._timeout_s = TICK_S
        try:
            self._call(self._ssl.do_handshake, deadline_s)
        except BaseException:
            self._ssl.close()
            raise

    def recv(self, size: int) -> bytes:
        """Some data, or none at the end."""
        return self._call(lambda: self._ssl.recv(size), time.monotonic() + self._timeout_s)

    def sendall(self, data: bytes) -> None:
        """Writes all data."""
        deadline_s, rest = time.monotonic() + TICK_S, memoryview(data)
        while rest:
            rest = rest[self._call(partial(self._ssl.send, rest), deadline_s) :]

    def settimeout(self, seconds: float) -> None:
        """The longest wait of `recv`."""
        self._timeout_s = seconds

    def setsockopt(self, *option: Any) -> None:
        """Sets an option of the socket."""
        self._ssl.setsockopt(*option)

    def shutdown(self, how: int) -> None:
        """Ends the connection without OpenSSL, which another thread can be using."""
        socket.socket.shutdown(self._ssl, how)

    def close(self) -> None:
        """Frees the socket."""
        with self._lock:
            self._ssl.close()

    def _call(self, step: Callable[[], T], deadline_s: float) -> T:
        while True:
            try:
                with self._lock:
                    return step()
            except ssl.SSLWantReadError:
                events = select.POLLIN
            except ssl.SSLWantWriteError:
                events = select.POLLOUT
            poll = select.poll()
            poll.register(self._ssl, events)
            wait_s = deadline_s - time.monotonic()
            if wait_s <= 0 or not poll.poll(1000 * wait_s):
                raise TimeoutError("timed out")


class ScreenedDatapath(Datapath):
    """os-ken's connection of a switch, with each message checked before it is parsed."""

    def __init__(self, peer: Any, address: Any, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._screen = screen.Screen()
        self._is_closed = False
        super().__init__(peer, address)

    def serve(self) -> None:
        """Serves the connection until it ends, and ends all its threads."""
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
            # Only a defect of ours or of os-ken comes here. It must not end other connections.
            WARNINGS.warn("switch at %s: cannot handle a message: %r: disconnected", self.address[0], error)
        finally:
            self.close()
            self.set_state(DEAD_DISPATCHER)
            self.send(b"", close_socket=True)  # wakes the thread
            sender.join()
            self.is_active = False

    def close(self) -> None:
        """Ends the connection in both directions; any thread can call it.

        The connection's own thread sends the event, because a handler that waits for the queue of its own
        events would wait for ever.
        """
        self._is_closed = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def send(self, buf: bytes, close_socket: bool = False) -> bool:
        """Queues bytes. Returns whether the connection still exists."""
        try:
            return bool(super().send(buf, close_socket))
        except AttributeError:  # the queue was removed at this moment
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
        """The longest wait for data.

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
        """Handles the whole messages in `data`, and removes them."""
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
        """Passes a message on as os-ken's `_recv_loop` does."""
        version, kind, length, xid = struct.unpack_from("!BBHI", message)
        if kind == screen.HELLO:
            # The elements are checked. os-ken would read the padding between them as an element.
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
        address: host and port; port 0 takes a free one, see `port`.
        gate: the bounds for connections.
        tls: the context of TLS, or none.

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
                # Out of descriptors, or the peer has disconnected. Switches retry, so retry as well.
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
    """os-ken's handshake with our listener, which is set before it starts."""

    listener: Listener

    def start(self) -> Any:
        """Starts the handler's thread and the listener's."""
        OSKenApp.start(self)
        return hub.spawn(self.listener.serve)


def _hello(xid: int) -> bytes:
    return struct.pack("!BBHI", screen.VERSION, screen.HELLO, screen.HEADER_BYTES, xid)


def _incompatible(text: str) -> bytes:
    """The error HELLO_FAILED, INCOMPATIBLE."""
    data = text.encode("ascii")
    return struct.pack("!BBHIHH", screen.VERSION, screen.ERROR, 12 + len(data), 0, 0, 0) + data


def own_certificate(key: str, certificate: str) -> ssl.SSLContext:
    """TLS with a certificate of this side.

    Raises:
        OSError: a file cannot be read, or contains no key or certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key, password=lambda: b"")  # never ask the terminal for one
    return context


def tls_context(key: str, certificate: str, ca: str) -> ssl.SSLContext:
    """TLS in which both sides must have a certificate.

    Raises:
        OSError: a file cannot be read, or contains no key or certificate.
    """
    context = own_certificate(key, certificate)
    context.load_verify_locations(ca)
    context.verify_mode = ssl.CERT_REQUIRED
    return context
