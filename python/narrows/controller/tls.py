"""TLS for switches, agents and the page: contexts, pinned certificates, and a socket for two threads."""

from __future__ import annotations

import contextlib
import errno
import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from narrows.controller.files import check_private
from narrows.errors import NarrowsError

T = TypeVar("T")

TICK_S = 5.0
"""Longest time for which a call waits for data, in seconds."""
_DRAIN_S, _DRAIN_BYTES = 1.0, 4096
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


class TlsSocket:
    """A TLS connection on which one thread reads while another thread writes.

    OpenSSL does not allow two threads to use one connection at the same time. Each call of OpenSSL therefore
    holds a lock, and returns without waiting for the network.
    """

    def __init__(self, raw: socket.socket, context: ssl.SSLContext, deadline_s: float) -> None:
        raw.setblocking(False)
        self._ssl = context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
        self._lock = threading.Lock()
        self._timeout_s = TICK_S
        try:
            self._call(self._ssl.do_handshake, deadline_s)
        except BaseException:
            self.drain()
            self._ssl.close()
            raise

    def recv(self, size: int) -> bytes:
        """Waits for data. At the end of the connection, returns an empty value."""
        return self._call(lambda: self._ssl.recv(size), time.monotonic() + self._timeout_s)

    def sendall(self, data: bytes) -> None:
        """Writes all data."""
        deadline_s, rest = time.monotonic() + TICK_S, memoryview(data)
        while rest:
            rest = rest[self._call(partial(self._ssl.send, rest), deadline_s) :]

    def settimeout(self, seconds: float) -> None:
        """Sets the longest wait of `recv`."""
        self._timeout_s = seconds

    def setsockopt(self, *option: Any) -> None:
        """Sets an option of the socket."""
        self._ssl.setsockopt(*option)

    def drain(self) -> None:
        """Calls this module's function `drain` for the socket, without OpenSSL."""
        drain(self._ssl)

    def shutdown(self, how: int) -> None:
        """Ends the connection without OpenSSL, because another thread may be using OpenSSL."""
        socket.socket.shutdown(self._ssl, how)

    def close(self) -> None:
        """Frees the socket."""
        with self._lock:
            self._ssl.close()

    def peer(self) -> tuple[str, bytes]:
        """The common name of the peer's certificate, and the certificate itself."""
        with self._lock:
            fields, der = self._ssl.getpeercert(), self._ssl.getpeercert(binary_form=True)
        return common_name(fields), der or b""

    def _call(self, step: Callable[[], T], deadline_s: float) -> T:
        while True:
            try:
                with self._lock:
                    return step()
            except ssl.SSLWantReadError:
                events = select.POLLIN
            except ssl.SSLWantWriteError:
                events = select.POLLOUT
            fd = self._ssl.fileno()
            if fd < 0:
                raise OSError(errno.EBADF, "another thread has closed the connection")
            poll = select.poll()
            poll.register(fd, events)
            wait_s = deadline_s - time.monotonic()
            if wait_s <= 0 or not poll.poll(1000 * wait_s):
                raise TimeoutError("timed out")


def drain(connection: socket.socket) -> None:
    """Lets the last bytes reach the peer.

    If a socket is closed while received data are unread, the last bytes that were sent can be lost.
    """
    deadline_s = time.monotonic() + _DRAIN_S
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_WR)
        while (left_s := deadline_s - time.monotonic()) > 0:
            connection.settimeout(left_s)
            if not socket.socket.recv(connection, _DRAIN_BYTES):
                return


def own_certificate(key: str, certificate: str) -> ssl.SSLContext:
    """A context for TLS in which only this side has a certificate.

    Raises:
        OSError: a file cannot be read, or contains no key or certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key, password=lambda: b"")  # never ask the terminal for a password
    return context


def tls_context(key: str, certificate: str, ca: str) -> ssl.SSLContext:
    """A context for TLS in which both sides must have a certificate.

    Raises:
        OSError: a file cannot be read, or contains no key or certificate.
    """
    context = own_certificate(key, certificate)
    context.load_verify_locations(ca)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def common_name(fields: Mapping[str, Any] | None) -> str:
    """The common name in a certificate's fields (`ssl.SSLSocket.getpeercert`), or an empty text."""
    names = [
        value for part in (fields or {}).get("subject", ()) for key, value in part if key == "commonName"
    ]
    return names[0] if len(names) == 1 else ""


class Keys(NamedTuple):
    """Files of the agents' channel (PEM).

    A peer's certificate must be one of `trusted`. There is no certificate authority: a signature by
    a trusted certificate does not make another certificate trusted.
    """

    key: Path
    certificate: Path
    trusted: Path

    def check(self, table: str) -> None:
        """Checks the files.

        Args:
            table: name of the configuration's table that has these files.

        Raises:
            NarrowsError: a file is invalid. The message has one line with the file and the reason.
        """
        check_private(f"{table}.key", self.key)
        try:
            self.context()
        except OSError as error:  # includes ssl.SSLError
            raise NarrowsError(
                f"{table}: cannot use {self.key}, {self.certificate} and {self.trusted}: "
                f"{error.strerror or error}"
            ) from None
        if not self._pinned():
            raise NarrowsError(f"{table}.trusted: {self.trusted}: found no certificate, expected PEM")

    def accept(self, raw: socket.socket, deadline_s: float) -> tuple[TlsSocket, str]:
        """Performs the handshake with a peer. Returns the connection and the name in the peer's certificate.

        The files are read again for each handshake, so an agent can be added without a restart.

        Raises:
            OSError: the peer's certificate is not one of `trusted`, or the peer is too slow or does not use
                TLS 1.3.
        """
        context, pinned = self.context(), self._pinned()
        connection = TlsSocket(raw, context, deadline_s)
        name, certificate = connection.peer()
        if certificate not in pinned:
            connection.close()
            raise OSError(f"the certificate of {name!r} is not in {self.trusted}")
        return connection, name

    def connect(self, raw: socket.socket, name: str) -> ssl.SSLSocket:
        """Performs the handshake with the listener of this name.

        Raises:
            OSError: the listener's certificate is not one of `trusted` or has another name, or the listener
                does not use TLS 1.3.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False  # the certificate itself is compared
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
        context.load_verify_locations(self.trusted)
        pinned = self._pinned()
        connection = context.wrap_socket(raw)
        found = common_name(connection.getpeercert())
        if connection.getpeercert(binary_form=True) not in pinned or found != name:
            connection.close()
            raise OSError(f"found the certificate of {found!r}, expected that of {name!r} in {self.trusted}")
        return connection

    def context(self) -> ssl.SSLContext:
        """A context for TLS 1.3 with certificates on both sides.

        Raises:
            OSError: a file cannot be read, or contains no key or certificate.
        """
        context = tls_context(str(self.key), str(self.certificate), str(self.trusted))
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # Do not resume sessions: each connection must have a complete handshake, in which the certificates
        # are checked.
        context.num_tickets = 0
        return context

    def _pinned(self) -> set[bytes]:
        text = self.trusted.read_text(encoding="ascii", errors="replace")
        return {ssl.PEM_cert_to_DER_cert(pem) for pem in _CERTIFICATE.findall(text)}
