"""A server that stands in for an Alertmanager. It stores requests, and answers as a test says."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace


@contextlib.contextmanager
def alertmanager(certificate=None):
    """Starts the server, with TLS if `certificate` is given.

    Yields its `url`, the `requests` (path, headers, alerts), and the `answers` for the next requests.
    """
    got = SimpleNamespace(requests=[], answers=[], arrived=threading.Condition(), hold=threading.Event())
    got.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            with got.arrived:
                got.requests.append((self.path, dict(self.headers), json.loads(body)))
                status, headers = got.answers.pop(0) if got.answers else (200, {})
                got.arrived.notify_all()
            got.hold.wait(30)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    got.url = f"http{'' if certificate is None else 's'}://127.0.0.1:{server.server_address[1]}"

    def wait(number):
        with got.arrived:
            assert got.arrived.wait_for(lambda: len(got.requests) >= number, timeout=30), got.requests
        return got.requests

    got.wait = wait
    yield got
    got.hold.set()
    server.shutdown()
    server.server_close()
