"""Limits on the number and duration of connections to the page."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time

import pytest

pytest.importorskip("uvicorn")
from narrows.controller.page_server import Bounds, ListeningSocket, server
from running_controller import Controller

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
GUARD_S = 30.0


async def application(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    body = b"x" * 100_000 if scope["path"] == "/flood" else b"hello"
    while scope["path"] != "/":
        await send({"type": "http.response.body", "body": body, "more_body": True})
        if scope["path"] == "/live":
            await receive_disconnect(receive)
            return
    await send({"type": "http.response.body", "body": body})


async def receive_disconnect(receive):
    while (await receive())["type"] != "http.disconnect":
        pass


@contextlib.contextmanager
def page(**bounds):
    bounds = Bounds(**bounds)
    listening = ListeningSocket(("127.0.0.1", 0), bounds)
    served = server(application, bounds=bounds)
    thread = threading.Thread(target=served.run, args=([listening],), daemon=True)
    thread.start()
    while not served.started:
        thread.join(0.02)
    yield listening.getsockname()[1]
    served.should_exit = served.force_exit = True
    thread.join(GUARD_S)


def connect(port, source="127.0.0.1", send=b""):
    connection = socket.create_connection(("127.0.0.1", port), GUARD_S, (source, 0))
    connection.sendall(send)
    return connection


def ends(connection):
    """Whether the server closes the connection."""
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(1 << 16):
            pass
    return True


def is_served(connection):
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        connection.sendall(REQUEST)
        return connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
    return False


def test_connections_are_bounded_by_address_and_in_all():
    with page(most=4, most_each=3, request_s=GUARD_S) as port:
        first = [connect(port) for _ in range(3)]
        assert not is_served(connect(port))
        other = connect(port, "127.0.0.2")
        assert is_served(other)
        assert not is_served(connect(port, "127.0.0.3")), "at most four connections in all are served"
        assert all(is_served(connection) for connection in first)
        first.pop().close()
        deadline_s = time.monotonic() + GUARD_S
        while not is_served(connect(port, "127.0.0.3")):
            assert time.monotonic() < deadline_s, "a closed connection frees its place"


def test_refused_connections_do_not_keep_the_event_loop_from_its_work():
    with ListeningSocket(("127.0.0.1", 0), Bounds(most=1)) as listening:
        listening.setblocking(False)
        admitted, refused, waiting = [connect(listening.getsockname()[1]) for _ in range(3)]
        served, _ = listening.accept()
        with pytest.raises(BlockingIOError):
            listening.accept()
        assert ends(refused)
        waiting.setblocking(False)
        with pytest.raises(BlockingIOError):
            waiting.recv(1)
        for connection in (admitted, refused, waiting, served):
            connection.close()


def test_idle_connections_end_and_free_their_places():
    with page(most_each=3, request_s=0.3) as port:
        idle = [connect(port, send=begun) for begun in (b"", b"GET /", REQUEST[:-2])]
        assert all(map(ends, idle))
        answered = connect(port, send=REQUEST)
        assert ends(answered), "the deadline also applies after an answer"
        assert is_served(connect(port))


def test_a_slow_request_ends():
    with page(request_s=0.5) as port:
        slow = connect(port, send=REQUEST[:-2])
        deadline_s = time.monotonic() + GUARD_S
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            while time.monotonic() < deadline_s:
                slow.sendall(b"X: y\r\n")
                time.sleep(0.05)
        assert time.monotonic() < deadline_s


def test_a_stream_stays_while_its_client_reads_and_ends_if_it_does_not():
    with page(request_s=0.2, read_s=0.5) as port:
        live = connect(port, send=REQUEST.replace(b"/ ", b"/live "))
        assert live.recv(1 << 16).startswith(b"HTTP/1.1 200")
        flood = connect(port, send=REQUEST.replace(b"/ ", b"/flood "))
        time.sleep(2)
        assert ends(flood), "the server disconnects a client that reads nothing"
        live.settimeout(0.1)
        with contextlib.suppress(TimeoutError):
            while True:
                assert live.recv(1 << 16), "the stream has no deadline"


def test_the_deployed_page_bounds_idle_connections(tmp_path):
    controller = Controller(tmp_path)
    try:
        port = int(re.search(r"page at http://[0-9.]+:(\d+)", controller.log.read_text())[1])
        before = controller.descriptors()
        idle = [connect(port) for _ in range(100)]
        request = REQUEST.replace(b"/ ", b"/api/v1/agents ")
        other = connect(port, "127.0.0.2", request)
        assert other.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert controller.descriptors() - before <= 64 + 1 + 2
        assert "page: too many connections from 127.0.0.1: refused" in controller.log.read_text()
        for connection in idle:
            connection.close()
    finally:
        controller.close()
