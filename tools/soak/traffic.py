"""The traffic of the soak, one process per network namespace. Each process runs until SIGTERM.

    traffic.py server ADDRESS
    traffic.py client ADDRESS FIRST COUNT SEED   # COUNT long flows, whose ids start at FIRST, and short flows

The server reports the bytes that it received, and the clients report the outcomes of their connections. Each
report is a JSON object in one line. The first eight bytes of each connection are the flow's id.
"""

from __future__ import annotations

import random
import selectors
import socket
import struct
import sys
import threading
import time

from reports import say

PORT = 5001
SHORT = 1 << 32
"""Smallest id of a short flow."""
REPORT_S = 0.25
LONG_S = (10, 40)
"""Range of the duration of a long flow's connection, s. After each connection, the flow opens a new one."""
SEND_BUFFER = 500_000
"""Send buffer in bytes. At a fair share, the buffer is sent in less than a second, so a connection ends soon
after the client closes it.
"""
SHORT_EVERY_S = 0.5
SHORT_BYTES = (10_000, 2_000_000)
"""Smallest and largest size of a short flow. The sizes have a Pareto distribution."""
SHAPE = 1.1
KEEPALIVE_S = 20


class Server:
    """Accepts connections, discards their data, and reports how much of each long flow has arrived."""

    def __init__(self, address: str) -> None:
        self._listener = socket.create_server((address, PORT), backlog=256)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._flows: dict[socket.socket, int | None] = {}
        self._peers: dict[socket.socket, tuple[str, int]] = {}
        self._received: dict[int, int] = {}
        self._since_s: dict[int, float] = {}

    def serve(self) -> None:
        """Serves forever."""
        due_s = time.monotonic()
        while True:
            for key, _ in self._selector.select(timeout=REPORT_S / 2):
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    self._read(key.fileobj)
            if (now_s := time.monotonic()) >= due_s:
                due_s = now_s + REPORT_S
                since = {"since_s": self._since_s, "peers": list(self._peers.values())}
                say(at_s=now_s, open=len(self._flows), received=self._received, **since)

    def _accept(self) -> None:
        connection, peer = self._listener.accept()
        connection.setblocking(False)
        # If a peer vanishes while its interface is down, keepalive ends the connection.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_S)
        self._flows[connection] = None
        self._peers[connection] = peer[:2]
        self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(connection)
            del self._flows[connection], self._peers[connection]
            connection.close()
            return
        flow = self._flows[connection]
        if flow is None and len(data) >= 8:
            flow = self._flows[connection] = struct.unpack_from("!Q", data)[0]
            if flow < SHORT:
                self._since_s[flow] = time.monotonic()
        if flow is not None and flow < SHORT:
            self._received[flow] = self._received.get(flow, 0) + len(data)


class Client:
    """Long and short flows. A long flow is a sequence of connections, and a short flow is one connection."""

    def __init__(self, address: str, flows: range, seed: int) -> None:
        self._address, self._flows, self._seed = address, flows, seed
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("long", "short", "broken", "refused"), 0)

    def run(self) -> None:
        """Sends forever."""
        for flow in self._flows:
            threading.Thread(target=self._send, args=(flow,), daemon=True).start()
        number, dice = SHORT, random.Random(self._seed)
        while True:
            time.sleep(dice.expovariate(1 / SHORT_EVERY_S))
            size = min(SHORT_BYTES[1], int(SHORT_BYTES[0] * dice.paretovariate(SHAPE)))
            number += 1
            threading.Thread(target=self._finish, args=(number, size), daemon=True).start()
            with self._lock:
                say(**self._counts)

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1

    def _connect(self, flow: int) -> socket.socket | None:
        """A new connection, or none if there is no route or no answer."""
        try:
            connection = socket.create_connection((self._address, PORT), timeout=30)
        except OSError:
            self._count("refused")
            return None
        connection.settimeout(None)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        connection.sendall(struct.pack("!Q", flow))
        return connection

    def _send(self, flow: int) -> None:
        data, dice = bytes(1 << 16), random.Random(f"{self._seed} {flow}")
        while True:
            try:
                if (connection := self._connect(flow)) is None:
                    time.sleep(0.2)
                    continue
                end_s = time.monotonic() + dice.uniform(*LONG_S)
                with connection:
                    while time.monotonic() < end_s:
                        connection.sendall(data)
                self._count("long")
            except OSError:
                self._count("broken")

    def _finish(self, flow: int, size: int) -> None:
        try:
            if (connection := self._connect(flow)) is not None:
                with connection:
                    connection.sendall(bytes(size))
                self._count("short")
        except OSError:
            self._count("broken")


def main() -> None:
    """Runs one of the roles in the module's docstring."""
    match sys.argv[1:]:
        case ["server", address]:
            Server(address).serve()
        case ["client", address, first, count, seed]:
            flows = range(int(first), int(first) + int(count))
            Client(address, flows, int(seed)).run()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
